"""Settings shared by all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline: these machines are noisy, and the first call compiles the erf kernel.
settings.register_profile("flipopt", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("flipopt")
