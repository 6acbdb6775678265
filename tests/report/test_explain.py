from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt import report
from tests.explain.tables import plane, table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 12))
NET, FLIPS = plane(np.arange(-5.0, 7.0), X)
LABELS = np.where(FLIPS.distance < 0.3, FLIPS.classes[:, 1], FLIPS.classes[:, 0])
NOTHING = table([], [], np.empty((0, 12)), [])


def is_a_picture(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 5000


def test_every_analysis_has_a_picture(tmp_path: Path) -> None:
    explain = fo.explain
    pictures = {
        "trust": lambda path: report.draw_trust(path, explain.trust(FLIPS, NET, X, LABELS)),
        "alternate": lambda path: report.draw_alternate(path, explain.alternate(FLIPS, LABELS, ("no", "certainly"))),
        "bars": lambda path: report.draw_directions(path, explain.directions(FLIPS, X, method="qr")),
        "grey": lambda path: report.draw_directions(path, explain.directions(FLIPS, X, features=(3, 4))),
        "colours": lambda path: report.draw_directions(path, explain.directions(FLIPS, X, features=(2, 2, 3))),
        "radius": lambda path: report.draw_ambiguity(path, explain.ambiguity(FLIPS, 0.3)),
        "influence": lambda path: report.draw_influence(path, explain.influence(FLIPS, LABELS), FLIPS.distance),
        "taylor": lambda path: report.draw_taylor(path, explain.compare_taylor(fo.paths.taylor(NET, X), FLIPS, X)),
        "attack": lambda path: report.draw_adversarial(path, explain.adversarial(NET, X, flips=FLIPS)),
    }
    for name, draw in pictures.items():
        draw(tmp_path / f"{name}.png")
        assert is_a_picture(tmp_path / f"{name}.png"), name


def test_names_of_features_are_on_the_bars(tmp_path: Path) -> None:
    names = [f"feature number {k}" for k in range(12)]
    report.draw_directions(tmp_path / "bars.svg", fo.explain.directions(FLIPS, X), names=names)
    assert "feature number 11" in (tmp_path / "bars.svg").read_text()


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    path = tmp_path / "nothing.png"
    with pytest.raises(fo.InputError, match="directions: expected at least one flip, found none"):
        report.draw_directions(path, fo.explain.directions(NOTHING, X))
    with pytest.raises(fo.InputError, match="ambiguity: expected at least one flip, found none"):
        report.draw_ambiguity(path, fo.explain.ambiguity(NOTHING, 1.0))
    with pytest.raises(fo.InputError, match="comparison: expected at least one estimate, found none"):
        report.draw_taylor(path, fo.explain.compare_taylor(fo.paths.taylor(NET, X), NOTHING, X))
    with pytest.raises(fo.InputError, match="adversarial: expected at least one input with a flip, found none"):
        report.draw_adversarial(path, fo.explain.adversarial(NET, X, flips=NOTHING))
    assert not path.exists()
    report.draw_trust(path, fo.explain.trust(NOTHING, NET, X, LABELS))
    assert is_a_picture(path)
