"""Machine code on disk: used again, and compiled anew when any kernel's source has changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import flipopt.kernels.compiled

INNER = """
from flipopt.kernels.compiled import inline

@inline
def value():
    return {}
"""
OUTER = """
from flipopt.kernels.compiled import compiled
from flipopt.kernels.inner import value

@compiled
def kernel(out):
    out[0] = value()
"""
PROGRAM = """
import numpy as np
from flipopt.kernels.outer import kernel
out = np.zeros(1)
kernel(out)
print(int(out[0]), sum(kernel.stats.cache_hits.values()))
"""


def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    kernels = tmp_path / "flipopt" / "kernels"
    kernels.mkdir(parents=True)
    for folder in (kernels, kernels.parent):
        (folder / "__init__.py").touch()
    shutil.copy(flipopt.kernels.compiled.__file__, kernels)
    (kernels / "outer.py").write_text(OUTER)

    def run(constant: int) -> tuple[int, int]:
        """The kernel's result, and how often its code was found on disk."""
        (kernels / "inner.py").write_text(INNER.format(constant))
        done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        value, hits = done.stdout.split()
        return int(value), int(hits)

    assert run(1) == (1, 0)
    assert run(1) == (1, 1)
    assert run(2) == (2, 0)
