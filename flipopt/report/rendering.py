"""Self-contained pages: a template, its style and script in one file that needs no other and no network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.writing import atomic_path


def write_html(path: str | Path, template: str, data: Any, **context: Any) -> None:
    """Render a template of ``flipopt/report/templates`` to one file, whole or not at all.

    ``data`` are what its script draws, as JSON. All else that a template shows is escaped.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("flipopt.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = environment.get_template(template).render(data=Markup(as_json(data)), **context)
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def as_json(data: Any) -> str:
    """JSON that may stand in a script: only "<" could end that, and JSON has an escape for it."""
    return json.dumps(plain(data), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def plain(value: Any) -> Any:
    """Arrays as lists, numbers as Python's own, and those that are not finite as None, which JSON calls null."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
