"""The page that people label images on: served with its answers kept here, or a form that stands alone."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from flipopt.common.checks import Array, as_sequence
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.disagreement.labelling.images import as_pixels, png
from flipopt.disagreement.votes import MOST_CLASSES

DIGITS = tuple("0123456789")
LONGEST_WORD = 60


@dataclass(frozen=True, eq=False)
class Task:
    """What people are asked.

    Attributes
    ----------
    images
        (k, height, width) or (k, height, width, 3), uint8.
    classes
        What they may say.
    question
        Above every image.
    """

    images: Array
    classes: tuple[str, ...] = DIGITS
    question: str = "Which digit is this?"

    @classmethod
    def of(cls, images: Array, classes: Sequence[str] = DIGITS, question: str | None = None) -> Task:
        """Of images as :func:`as_pixels` takes them; the question fits the classes if there is none."""
        names = tuple(str(name) for name in as_sequence(classes, "classes", "names"))
        if not 2 <= len(names) <= MOST_CLASSES or len(set(names)) < len(names):
            raise InputError(f"classes: expected at least two different names, found {len(set(names))}")
        bad = [name for name in names if not name.strip() or len(name) > LONGEST_WORD or not name.isprintable()]
        if bad:
            raise InputError(f"classes: expected names of 1 to {LONGEST_WORD} characters, found {bad[0]!r}")
        fitting = cls.question if set(names) <= set(DIGITS) else "Which of these is this?"
        return cls(as_pixels(images, "images"), names, question or fitting)

    @property
    def name(self) -> str:
        """One that other images or classes do not have."""
        content = hashlib.sha256(self.images.tobytes())
        content.update(json.dumps([self.images.shape, self.classes]).encode())
        return content.hexdigest()[:16]


@dataclass(frozen=True)
class Page:
    """A page and its policy: which scripts and styles may run on it, and that it talks to nobody else."""

    html: str
    policy: str

    @classmethod
    def served(cls, task: Task) -> Page:
        """One that fetches its pictures from, and sends answers to, the address that it came from."""
        return cls._of(task, None, "img-src 'self' data:; connect-src 'self'")

    @classmethod
    def form(cls, task: Task) -> Page:
        """One that holds its pictures, keeps answers in the browser and gives them out as a file."""
        pictures = [f"data:image/png;base64,{base64.b64encode(png(image)).decode()}" for image in task.images]
        return cls._of(task, pictures, "img-src data:")

    @classmethod
    def _of(cls, task: Task, pictures: list[str] | None, sources: str) -> Page:
        import jinja2
        from markupsafe import Markup

        folder = files("flipopt.disagreement.labelling")
        template, style, script = (
            (folder / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
        )
        data = {"classes": task.classes, "count": len(task.images), "set": task.name, "pictures": pictures}
        literal = json.dumps(data).replace("<", "\\u003c")  # "<" alone could end the script
        script = f"const DATA = {literal};\n{script}"
        policy = (
            f"default-src 'none'; {sources}; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
            "base-uri 'none'; form-action 'none'"
        )
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        html = environment.from_string(template).render(
            question=task.question,
            count=len(task.images),
            policy=policy,
            style=Markup(style),
            script=Markup(script),
        )
        return cls(html, policy)


def write_form(path: str | Path, images: Array, classes: Sequence[str] = DIGITS, question: str | None = None) -> None:
    """Write a page that needs nothing else, for people elsewhere: what they download there is a file of labels.

    Parameters
    ----------
    path
        The .html file.
    images
        (k, height, width) or (k, height, width, 3), bytes or numbers from 0 to 1; channels may come first.
    classes, question
        What people may say, and what they are asked.
    """
    page = Page.form(Task.of(images, classes, question))
    with atomic_path(path) as temporary:
        temporary.write_text(page.html, encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
