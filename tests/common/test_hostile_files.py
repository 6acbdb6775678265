"""Files made by hand to do harm: refused in a line that names them, in little memory and time, or read without harm."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from tests.common.hostile import HOSTILE
from tools.fuzz_files import MEMORY, SECONDS, kind_of, peak, reset_peak, too_late
from tools.mutants import KINDS, mutant

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured by /proc")


FOUND = [(1, 86), (7, 16423), (7, 14470), (2026, 3086), (2026, 9946), (2026, 18372)]
"""Seeds and numbers of mutants: a name too long for the system, scores without classes, two footers for which pyarrow
ends the process, and bytes that are no text, in a table and in the name of a file."""


@pytest.fixture
def bounded() -> Iterator[None]:
    """A test that has 2 GB more than now, and ten seconds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_does_no_harm(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounded: None) -> None:
    pytest.importorskip("torch")
    build, load, message = HOSTILE[name]
    for folder in ("home", "here"):
        (tmp_path / folder).mkdir()
    for place in (tmp_path, tmp_path / "here"):
        (place / "secret.bin").write_bytes(b"\0" * 36)
    monkeypatch.chdir(tmp_path / "here")
    path = build(tmp_path / "home")
    before = reset_peak()
    if message:
        with pytest.raises(fo.FileFormatError, match=message) as caught:
            load(path)
        said = str(caught.value)
        assert path.name in said
        assert said.isprintable()
        assert len(said) < 600
        assert "more memory than there is" not in said
    else:
        load(path)
    assert peak() - before < MEMORY / 1e6


@pytest.mark.parametrize(("seed", "number"), FOUND)
def test_what_the_fuzzer_found_is_read_or_refused(seed: int, number: int, tmp_path: Path) -> None:
    kind = KINDS[kind_of(number, None)]
    path = mutant(kind, tmp_path, np.random.default_rng([seed, number]))
    with contextlib.suppress(fo.FlipoptError):
        kind.load(path)
    assert path.exists()


def test_forty_files() -> None:
    assert len(HOSTILE) >= 40
