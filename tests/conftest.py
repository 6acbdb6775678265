"""Settings shared by all tests: the same examples at every run, or with FLIPOPT_PROFILE=explore ten times as many new
ones. No deadline: the first call compiles, and machines are noisy."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.strategies import EXAMPLES

ALL = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("flipopt", derandomize=True, max_examples=EXAMPLES, **ALL)  # type: ignore[arg-type]
settings.register_profile("explore", derandomize=False, print_blob=True, max_examples=10 * EXAMPLES, **ALL)  # type: ignore[arg-type]
settings.load_profile(os.environ.get("FLIPOPT_PROFILE", "flipopt"))
