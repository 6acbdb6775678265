"""The images between digits: what the paper made by hand, by a rule with a seed, five times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from flipopt.common.checks import Array
from flipopt.common.files import write_npz
from flipopt.generative import Generator
from flipopt.runs.fingerprint import digest, fingerprint

GENERATOR = Path(__file__).parents[3] / "models" / "generators" / "dcgan-mnist.generator.onnx"
JUDGE = "mnist-fcn"
"""The shipped network that says which latent vector is seen clearly as a digit; it is not studied itself."""
CHOICES = 5
"""Of latent vectors, by seeds from 0 on."""
ALPHAS = 11
IMAGES = "004-images.npz"
"""The images of the first choice, as people are shown them."""
LABELS = "004-labels.csv"
"""Where the answers of people are looked for, in the folder of what is kept."""


@dataclass(frozen=True, eq=False)
class Sets:
    """Images by the choice of latent vectors.

    Attributes
    ----------
    choices
        Images on lines between ten latent vectors each.
    key
        Tells them from others.
    """

    choices: tuple[fo.disagreement.Interpolations, ...]
    key: str

    @property
    def first(self) -> fo.disagreement.Interpolations:
        """Those that are shown to people, and in the pictures."""
        return self.choices[0]

    @property
    def images(self) -> Array:
        """All of them, (choices * images, n_pixels)."""
        return np.concatenate([one.images.reshape(len(one), -1) for one in self.choices])

    def part(self, choice: int) -> slice:
        """The rows of a choice among all."""
        size = len(self.first)
        return slice(choice * size, (choice + 1) * size)


def sets(desk: Desk) -> Sets:
    """Those of the run."""
    return _made(desk.few(CHOICES, 2), desk.few(ALPHAS, 5))


@cache
def _made(choices: int, alphas: int) -> Sets:
    generator, judge = Generator(GENERATOR), fo.load_shipped(JUDGE).network
    latents = [fo.disagreement.choose_latents(generator, [judge], seed=seed) for seed in range(choices)]
    made = tuple(fo.disagreement.interpolations(generator, one, alphas=alphas) for one in latents)
    key = fingerprint(digest(GENERATOR.read_bytes()), [one.latents.round(6) for one in made], made[0].pairs, alphas)
    return Sets(made, key)


def show(desk: Desk, images: fo.disagreement.Interpolations) -> Path:
    """Write what people are asked about as bytes; the file."""
    path = desk.picture(IMAGES)
    pixels = np.rint(255 * np.clip(images.images.reshape(-1, 28, 28), 0, 1)).astype(np.uint8)
    write_npz(path, {"images": pixels, "line": images.line, "classes": images.classes, "alpha": images.alpha})
    return path


def labels(desk: Desk) -> fo.disagreement.Labels | None:
    """What people say of the first choice, if they have been asked."""
    path = desk.work / LABELS
    if not path.exists():
        return None
    found = fo.disagreement.read_labels(path, len(sets(desk).first), 10)
    found.require_complete()
    return found


def collect(study: str) -> str:
    """How people are asked."""
    return (
        f"`flipopt label benchmarks/results/reproduction/{IMAGES} --out reproduction/{LABELS}` asks people about these "
        f"very images, and then `python -m benchmarks reproduce {study} --no-training` has the figures in seconds, "
        "as what the models say is kept."
    )


NEEDED = f"Not run: needs labels by people, for whom nobody is invented here: `flipopt label {IMAGES}`, see above."
"""In place of a figure that people decide."""
