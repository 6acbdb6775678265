"""Facts about the machine and the versions, which go into every row that a measurement leaves."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from flipopt.runs.threads import cores

PACKAGES = ("flipopt", "numpy", "scipy", "casadi", "nlopt", "torch", "foolbox", "adv-lib", "openturns")
HERE = Path(__file__).parents[1]


def facts() -> dict[str, Any]:
    """Processor, cores, versions and commit."""
    versions = [f"python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return {"cpu": cpu(), "cores": cores(), "versions": "; ".join(versions), "commit": commit()}


def cpu() -> str:
    """The name of the processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def commit(package: Path = HERE) -> str:
    """The commit of the checkout that ``package`` is a folder of; unknown if it is not.

    A package that is installed inside somebody's repository has nothing to do with that repository's commit.
    """
    own = (package.parent / ".git").exists() and _git(package, "ls-files", "__init__.py")
    return (own and _git(package, "rev-parse", "--short", "HEAD")) or "unknown"


def _git(folder: Path, *command: str) -> str:
    """What git prints about a folder; nothing if it fails or is not there."""
    try:
        return subprocess.run(
            ["git", "-C", folder, *command], capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""
