"""Settings of the documentation: python -m sphinx -W -b html docs docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import flipopt

project = "flipopt"
author = "the flipopt authors"
version = release = flipopt.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"flipopt {version}"


def keep_colons(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Napoleon would take what stands before a colon for the type of an attribute; a blank first line stops it."""
    if what in ("property", "attribute", "data"):
        lines.insert(0, "")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", keep_colons, priority=400)
