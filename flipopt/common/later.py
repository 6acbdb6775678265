"""Functions of rooms further on, by their names: what a result offers but does not import.

A result has a plot(), which is drawn by flipopt.report, and report imports results. The name keeps the imports in one
direction, and matplotlib out of sight until something is drawn.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def later(name: str) -> Any:
    """The function "module:name" of flipopt, imported now."""
    module, _, function = name.partition(":")
    return getattr(import_module(f"flipopt.{module}"), function)
