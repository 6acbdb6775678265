"""Which commit a row names: that of flipopt's own checkout, and no other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from flipopt.runs.machine import commit, facts


def git(folder: Path, *command: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", "-C", folder, *settings, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    git(tmp_path, "init", "-q")
    (tmp_path / "notes").write_text("notes")
    git(tmp_path, "add", "notes")
    git(tmp_path, "commit", "-qm", "notes")
    return tmp_path


def package(folder: Path) -> Path:
    made = folder / "flipopt"
    made.mkdir(parents=True)
    (made / "__init__.py").write_text("")
    return made


def test_a_checkout_names_its_commit(repository: Path) -> None:
    made = package(repository)
    git(repository, "add", "flipopt")
    git(repository, "commit", "-qm", "package")
    assert commit(made) == git(repository, "rev-parse", "--short", "HEAD")


def test_an_installed_package_does_not_name_the_commit_of_the_repository_around_it(repository: Path) -> None:
    installed = package(repository / ".venv" / "lib" / "site-packages")
    assert commit(installed) == "unknown"
    git(repository, "add", "-f", ".venv")
    git(repository, "commit", "-qm", "with its environment")
    assert commit(installed) == "unknown"


def test_a_package_that_is_not_tracked_or_not_in_a_repository_has_no_commit(repository: Path, tmp_path: Path) -> None:
    assert commit(package(repository)) == "unknown"
    assert commit(package(tmp_path / "elsewhere")) == "unknown"


def test_without_git_the_commit_is_unknown(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = package(repository)
    git(repository, "add", "flipopt")
    monkeypatch.setenv("PATH", "")
    assert commit(made) == "unknown"


def test_facts_name_the_machine_and_the_versions() -> None:
    found = facts()
    assert found["cpu"]
    assert found["cores"] >= 1
    assert "numpy" in found["versions"]
