"""The section between the classes: every pair, whatever the names, and what is said where something is missing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.borderline import Measuring, Profile
from flipopt.common.errors import InputError, StorageError
from flipopt.report import characterise, write_report
from flipopt.report.audit.boundaries import boundaries, correlation, missing
from flipopt.report.audit.heat import MOST_CLASSES, heat_maps
from flipopt.report.audit.pairs import sentence
from flipopt.report.audit.section import NONE
from flipopt.report.audit.study import Given
from tests.borderline.cases import blobs
from tests.browser import needs_browser, outcome

FEW = Measuring(pairs=8, flips=3, starts=4)
HOSTILE = ("</script><script>window.injected = 1</script>", '"><img src=x onerror="window.injected = 1">', "c & d")


def cells(page: str, caption: str) -> list[str]:
    """Of the heat map with a caption, line by line."""
    table = next(one for one in re.findall(r"<table class=\"heat.*?</table>", page, re.S) if caption in one)
    return re.findall(r"<td[^>]*>(.*?)</td>", table)


def test_the_page_has_every_pair_and_says_what_the_profile_says(tmp_path: Path) -> None:
    net, X, labels = blobs()
    found = characterise(tmp_path / "p.html", net, X, labels, measuring=FEW, class_names=("red", "green", "blue"))
    page = (tmp_path / "p.html").read_text()
    assert isinstance(found, Profile)
    assert found.class_names == ("red", "green", "blue")
    shown = cells(page, "Distance to the closest flip point")
    expected = found.matrix("closest_distance").reshape(-1)
    assert [text == "" for text in shown] == np.isnan(expected).tolist()
    np.testing.assert_allclose([float(text) for text in shown if text], expected[np.isfinite(expected)], rtol=0.05)
    for s, t in found.classes:
        assert f"<td>“{found.name_of(s)}” to “{found.name_of(t)}”</td>" in page
    (s, t), nearest = found.most_fragile(1).classes[0], found.closest_distance.min()
    assert f"from “{found.name_of(s)}” to “{found.name_of(t)}”, where the closest flip is {nearest:.3g}" in page
    assert f"n = {found.correlation('idc', 'edc2_borderline').n} boundaries" in page
    assert "What the model is" in page
    assert "plane differs from that layer" in page
    assert "http" not in page.split("</style>")[1]


def test_a_pair_is_shown_by_a_sample_and_its_closest_flip(tmp_path: Path) -> None:
    net, X, labels = blobs()
    given = Given.read(net, X, labels)
    found = fo.borderline.profile(net, X, labels, [(0, 1)], options=FEW)
    cards = boundaries(given, found, FEW).facts["cards"]
    assert len(cards) == 2
    closest = fo.borderline.closest(net, X, labels, *found.most_fragile(1).classes[0], FEW.flips).found
    assert cards[0]["row"] in closest.row
    assert cards[0]["what"] == "closest flip"
    assert float(cards[0]["distance"]) == pytest.approx(found.most_fragile(1).closest_distance[0], rel=0.01)
    changes = {line[0]: line[1:3] for line in cards[0]["changes"].rows}
    moved = np.array([float(changes[name][1]) - float(changes[name][0]) for name in ("x0", "x1")])
    assert np.linalg.norm(moved) == pytest.approx(float(cards[0]["distance"]), rel=0.02)


def test_images_are_shown_before_and_after(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    net, X = fo.DenseNetwork([rng.standard_normal((12, 3))], [np.zeros(3)], []), rng.random((40, 12))
    characterise(tmp_path / "p.html", net, X, shape=(3, 4), measuring=FEW)
    page = (tmp_path / "p.html").read_text()
    assert page.count('<img src="data:image/png;base64,') % 3 == 0
    assert page.count("<figcaption>closest flip at") == page.count("<figcaption>row ") > 0


def test_two_classes_without_labels(tmp_path: Path) -> None:
    net, X, _ = blobs()
    two = fo.DenseNetwork([net.weights[0], net.weights[1][:, :2]], [net.biases[0], net.biases[1][:2]], fo.ReLU())
    found = characterise(tmp_path / "p.html", two, X, measuring=FEW, title="<b>two")
    page = (tmp_path / "p.html").read_text()
    assert found.classes.tolist() == [[0, 1], [1, 0]]
    assert "needs 3 boundaries with both, and 1 have" in page
    assert "without labels nothing can be said" in page
    assert "&lt;b&gt;two" in page
    assert "<b>two" not in page


def test_names_are_escaped_and_the_page_needs_no_script(tmp_path: Path) -> None:
    net, X, labels = blobs()
    characterise(tmp_path / "p.html", net, X, labels, measuring=FEW, class_names=HOSTILE)
    page = (tmp_path / "p.html").read_text()
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "c &amp; d" in page


@needs_browser
def test_a_narrow_window_shows_it_without_errors(tmp_path: Path) -> None:
    net, X, labels = blobs()
    characterise(tmp_path / "p.html", net, X, labels, measuring=FEW, class_names=HOSTILE)
    found = outcome(
        tmp_path / "p.html",
        "report.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;"
        "report.tables = document.querySelectorAll('.heat').length;",
        360,
    )
    assert found["faults"] == []
    assert found["fetched"] == []
    assert found["wide"] <= 0
    assert found["tables"] >= 6


def test_pairs_that_were_not_measured_are_dashes() -> None:
    net, X, labels = blobs()
    found = fo.borderline.profile(net, X, labels, [(0, 1), (1, 2)], options=FEW)
    first = heat_maps(found)[0]
    texts = [[cell["text"] for cell in line["cells"]] for line in first["lines"]]
    assert texts[0][2] == texts[2][0] == NONE
    assert [texts[k][k] for k in range(3)] == ["", "", ""]
    assert first["lines"][0]["cells"][2]["words"] == "“0” to “2”: not measured"


def test_of_many_classes_the_nearest_are_mapped_and_all_shades_are_shares() -> None:
    pairs = [(a, b) for a in range(40) for b in range(40) if a != b]
    found = Profile.of([{"classes": pair, "closest_distance": 1.0 + pair[0] + pair[1]} for pair in pairs])
    (only,) = heat_maps(found)
    assert only["names"] == [str(k) for k in range(MOST_CLASSES)]
    assert only["left_out"] == 40 - MOST_CLASSES
    shades = np.array([[cell["shade"] for cell in line["cells"]] for line in only["lines"]])
    assert shades.min() == 0
    assert shades[0, 1] == shades.max() == 1  # the nearest is the darkest


def test_without_closest_flips_or_edc_the_rest_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "sklearn.svm"):
        monkeypatch.setitem(sys.modules, name, None)
    net, X, labels = blobs()
    found = characterise(tmp_path / "p.html", net, X, labels, measuring=Measuring(pairs=8, flips=0, starts=4))
    page = (tmp_path / "p.html").read_text()
    assert np.isnan(found.closest_distance).all()
    assert "6 pairs: no EDC: " in page
    assert "flipopt[sklearn]" in page
    assert "borderline instance of the nearest pair at" in page
    assert "EDC1 is d" not in page
    assert "IDC draws straight lines" in page
    assert "Pearson" not in page


def test_instances_of_another_method_are_measured_and_shown(tmp_path: Path) -> None:
    net, X, labels = blobs()
    made = [fo.borderline.rpbs(net, X, labels, *pair, count=8) for pair in ((0, 1), (1, 0))]
    instances = fo.borderline.Instances.join(made)
    options = Measuring(pairs=8, flips=0, starts=4)
    found = characterise(tmp_path / "p.html", net, X, labels, pairs=[(0, 1)], instances=instances, measuring=options)
    page = (tmp_path / "p.html").read_text()
    assert found.points.tolist() == [len(some.found) for some in made]
    assert "Given pairs that end on the boundary" in page
    assert "given borderline instance at" in page
    assert "here of the instances that were handed in" in page


def test_nothing_measured_says_so() -> None:
    net, X, labels = blobs()
    found = Profile.of([{"classes": (0, 1), "note": "no luck; none"}, {"classes": (1, 0), "note": "no luck; none"}])
    section = boundaries(Given.read(net, X, labels), found, FEW)
    assert section.answer.startswith("Nothing could be measured")
    assert section.facts["missing"] == missing(found) == ["2 pairs: no luck; none"]
    assert sentence(found.take(slice(0, 1))) == "0 samples; nothing could be measured."
    assert "cannot be said" in correlation(found)


def test_a_report_has_it_where_it_is_asked_for(tmp_path: Path) -> None:
    net, X, labels = blobs()
    flips = fo.closest_flip_points(net, X)
    contents = write_report(
        tmp_path / "r.html", net, X, labels, flips=flips, boundaries=FEW, class_names=HOSTILE, run=tmp_path / "run"
    )
    names = [section.name for section in contents.sections]
    assert names[-2:] == ["boundaries", "advice"]
    assert fo.runs.open(tmp_path / "run" / "_boundaries").done == 3
    assert "<img src=x" not in (tmp_path / "r.html").read_text()
    some = np.flatnonzero(net.predict(X) == 0)
    alone = write_report(tmp_path / "r.html", net, X[some], boundaries=True)
    assert alone.sections[-2].answer.startswith("Cannot be said: fewer than two classes")
    with pytest.raises(InputError, match="boundaries: expected True, False or Measuring, found str"):
        write_report(tmp_path / "r.html", net, X, boundaries="yes")  # type: ignore[arg-type]


def test_what_does_not_fit_is_said_before_anything_is_written(tmp_path: Path) -> None:
    net, X, labels = blobs()
    with pytest.raises(StorageError):
        characterise(tmp_path / "nowhere" / "p.html", net, X, labels)
    with pytest.raises(InputError, match="measuring: expected Measuring, found int"):
        characterise(tmp_path / "p.html", net, X, labels, measuring=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected two different classes, found class 1 twice"):
        characterise(tmp_path / "p.html", net, X, labels, pairs=[(1, 1)])
    with pytest.raises(InputError, match="class_names: expected 3 names, found 2"):
        characterise(tmp_path / "p.html", net, X, labels, class_names=("a", "b"))
    assert not list(tmp_path.iterdir())
