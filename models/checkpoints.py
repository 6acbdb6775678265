"""What an interrupted training goes on from."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from flipopt.common.writing import atomic_path

SECONDS = 300.0
"""What an interruption may cost, on the CPU, where an epoch can take half an hour."""

Losses = TypeVar("Losses", float, tuple[float, float])
"""Of one step: one number, or one for each of two networks."""


class Checkpoint(Generic[Losses]):
    """A file with the state of all ``parts`` of a training and how far it is, written after every epoch and within.

    Within an epoch the state of the random numbers is kept too: what comes out does not depend on interruptions.

    Attributes
    ----------
    epochs
        How many are done.
    losses
        Of the steps that are done of the next one.
    """

    def __init__(self, path: Path | None, parts: Mapping[str, Any], device: torch.device) -> None:
        self.path, self.parts = path, parts
        self.within = path is not None and device.type == "cpu"  # other devices have random numbers of their own
        self.epochs = 0
        self.losses: list[Losses] = []
        self._random = torch.get_rng_state()
        self._written = time.monotonic()
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        saved = torch.load(path, weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])
        self.epochs = int(saved["epoch"])
        self.losses, self._random = saved.get("losses", []), saved.get("random", self._random)

    def begun(self) -> None:
        """The epoch's order is drawn: the random numbers are those that its next step had."""
        if self.losses:
            torch.set_rng_state(self._random)

    def step(self, loss: Losses) -> None:
        """A step is done."""
        self.losses.append(loss)
        if self.within and time.monotonic() - self._written > SECONDS:
            self._write({"losses": self.losses, "random": torch.get_rng_state()})

    def epoch(self) -> None:
        """An epoch is done."""
        self.epochs, self.losses = self.epochs + 1, []
        self._write({})

    def _write(self, within: dict[str, Any]) -> None:
        if self.path is None:
            return
        buffer = io.BytesIO()
        parts = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({"epoch": self.epochs, **within, **parts}, buffer)
        with atomic_path(self.path) as temporary:
            temporary.write_bytes(buffer.getvalue())
        self._written = time.monotonic()
