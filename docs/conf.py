"""Settings of the documentation: python -m sphinx -W -b html docs docs/_build/html."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.inspect import TypeAliasForwardRef

import flipopt

project = "flipopt"
author = "the flipopt developers"
version = release = flipopt.__version__

copyright = "2026, the flipopt developers"  # noqa: A001 - Sphinx's name for it

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "jupyter_execute"]

nb_execution_mode = "force"
nb_execution_in_temp = True  # it writes files
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_typehints = "description"
TypeAliasForwardRef.__repr__ = lambda self: str(self.name)  # "ArrayLike | None", not the name of Sphinx's stand-in
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Targets")}
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = f"flipopt {version}"

_as_written: dict[str, list[str]] = {}


def before_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Napoleon takes what stands before a colon for the type of an attribute: remember the docstring."""
    if what in ("property", "attribute", "data"):
        _as_written[name] = list(lines)


def after_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put the docstring of an attribute back as it was written; describe attributes that share a line one by one."""
    lines[:] = _as_written.pop(name, _one_by_one(lines))


def _one_by_one(lines: list[str]) -> list[str]:
    """``:ivar a, b: text`` as ``:ivar a: text`` and ``:ivar b: text``."""
    split: list[str] = []
    names: list[str] = []
    head, body = "", list[str]()
    for line in [*lines, ""]:
        if line.startswith(" "):
            (body if names else split).append(line)
            continue
        for name in names if head else []:
            split += [f":ivar {name}:{head}", *body]
        match = re.match(r":ivar ([^:]+, [^:]+):(.*)", line)
        names, head, body = (match[1].split(", "), match[2], []) if match else ([], "", [])
        if not match:
            split.append(line)
    return split


def inline_mathml(self: Any, node: Any) -> None:
    """Formulas as MathML, which browsers draw by themselves: nothing is fetched from a network."""
    self.body.append(tex2mathml(node.astext()))
    raise SkipNode


def display_mathml(self: Any, node: Any) -> None:
    """A displayed formula as MathML."""
    self.body.append(f'<div class="math">{tex2mathml(node.astext().strip(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> None:
    """Connect the functions above; called by Sphinx."""
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.add_html_math_renderer("mathml", (inline_mathml, None), (display_mathml, None))
