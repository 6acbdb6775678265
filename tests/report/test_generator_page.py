"""The page about a query of a generator: what its words and numbers come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import flipopt as fo
from flipopt.generative import Generator
from flipopt.report import write_generator_report
from flipopt.report.audit.pictures import GAP, Pictures
from flipopt.report.audit.section import number
from flipopt.report.generator import Explored, Exploring, study
from flipopt.report.generator.alike import alike, common, ratio
from flipopt.report.generator.asked import units
from flipopt.report.generator.likeness import HARDLY, edge, half, likeness
from flipopt.report.generator.reach import drawing, reach
from flipopt.report.generator.seen import as_pictures, value_range
from flipopt.report.generator.study import layers_of
from tests.browser import needs_browser, outcome
from tests.generative.cases import LATENT, dense, dense_weights, discriminator, query, write
from tests.strategies import examples, seeds

FEW = Exploring(target_error=0.3, delta=0.2, expansions=60, samples=30)


@pytest.fixture(autouse=True, scope="module")
def fewer_lambdas() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("flipopt.generative.essential"), "HALVINGS", 3)
        yield


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, fewer_lambdas: None) -> tuple[Path, Explored]:
    """A page with all that there is, and what it is made of."""
    path, rng = tmp_path_factory.mktemp("page") / "page.html", np.random.default_rng(0)
    net = fo.DenseNetwork([rng.standard_normal((16, 3))], [np.zeros(3)], [])
    G = dense()
    found = write_generator_report(
        path, G, query(G, 5), how=FEW, discriminator=discriminator(), classifier=net, class_names=["a", "b<", "c"]
    )
    return path, found


def test_numbers_are_those_of_the_library(page: tuple[Path, Explored]) -> None:
    path, found = page
    text = path.read_text()
    assert [one.layer.number for one in found.layers] == [1, 2]
    for one in found.layers:
        k, samples = one.layer.number, one.others.points["e-gbas"]
        again = fo.generative.essential(found.generator, found.query, k, target_error=0.3)
        np.testing.assert_array_equal(again.mask, one.essential.mask)
        images = found.generator.forward(samples).astype(np.float64)
        np.testing.assert_allclose(one.deviation.pixels, images.std(axis=0), atol=1e-12)
        np.testing.assert_allclose(one.deviation.mean, images.mean(axis=0), atol=1e-12)
        assert number(float(one.comparison.deviation[0])) in text
        assert ratio(one) == pytest.approx(one.deviation.value / one.comparison.deviation[-1])
        assert list(one.comparison.method)[-1] == "matched"
        assert one.comparison.similarity.shape[1] == 2
        assert one.exploration.verified.all()
    assert text.count("<svg") == 2
    assert text.count("data:image/png;base64,") == 1 + 2 * (3 + 2 + 2)
    assert "b<" not in text.replace("b&lt;", "")
    assert "http" not in text.split("</style>")[1]


def test_an_error_that_is_not_reached_is_said(page: tuple[Path, Explored]) -> None:
    first, second = page[1].layers
    assert "up to the error that is allowed" in units(page[1]).answer
    missed = replace(second, essential=replace(second.essential, error=0.9))
    section = units(replace(page[1], layers=(first, missed)))
    assert "but not within the error in layer 2:" in section.answer
    assert section.facts["missed"] == [2]


def test_classes_are_counted(page: tuple[Path, Explored]) -> None:
    _, found = page
    one, reader = found.layers[0], found.reader
    assert reader is not None
    images = (found.generator.forward(one.others.points["e-gbas"]) + 1) / 2  # a tanh makes the pixels
    own = reader.network.predict((found.image.reshape(-1) + 1) / 2)
    share = (reader.network.predict(images.reshape(len(images), -1)) == own).mean()
    assert one.classes is not None
    assert one.classes["e-gbas"] == pytest.approx(share)


def test_chains_say_how_large_the_regions_are(page: tuple[Path, Explored]) -> None:
    _, found = page
    section = reach(found)
    for one, polytope in zip(found.layers, (True, False), strict=True):
        assert one.chains is not None
        assert one.chains.polytope == polytope
        assert number(one.chains.reach[0]) in section.answer
        assert one.exploration.region.contains(one.chains.points).all()
    assert ("have not mixed" in section.answer) == any(not one.chains.mixed for one in found.layers if one.chains)
    assert len(section.facts["near"]) == 1  # the first layer is affine
    nothing = study(dense(), query(dense(), 5), [2], how=Exploring(0.3, delta=0.2, expansions=30, points=0))
    assert reach(nothing).answer == "Cannot be said: no chains were run in these layers."


@needs_browser
@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_is_fetched_and_nothing_is_wider_than_the_page(page: tuple[Path, Explored], width: int) -> None:
    act = """
    report.sections = [...document.querySelectorAll("h2")].map((one) => one.textContent);
    report.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    report.broken = [...document.images].filter((one) => !one.naturalWidth).length;
    """
    told = outcome(page[0], act, width)
    assert len(told["sections"]) == 7
    assert (told["wide"], told["broken"], told["faults"], told["fetched"]) == (0, 0, [], [])


def test_a_region_that_is_never_left_has_no_balls() -> None:
    G = dense()
    found = study(G, query(G, 5), [1], how=Exploring(0.99, delta=1e-6, expansions=20))
    (one,) = found.layers
    assert len(one.exploration.rejected) == 0
    assert list(one.comparison.method) == ["e-gbas", "matched"]
    assert "paper's radii cannot be had" in alike(found).facts["tables"][0][2]


def test_a_step_that_is_too_long_finds_nothing_and_says_so(tmp_path: Path) -> None:
    G = dense()
    found = write_generator_report(
        tmp_path / "p.html", G, query(G, 5), [1], how=Exploring(0.01, delta=50, expansions=9)
    )
    assert len(found.layers[0].exploration.accepted) == 1
    assert "take a smaller delta" in (tmp_path / "p.html").read_text()


def test_outputs_that_are_no_images_have_words_and_no_pictures(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gemm", ["z", "W1", "b1"], ["c"]),
        helper.make_node("Relu", ["c"], ["a"]),
        helper.make_node("Gemm", ["a", "W2", "b2"], ["x"]),
    ]
    G = Generator(write(nodes, dense_weights(0, (LATENT, 12, 5))))
    write_generator_report(tmp_path / "p.html", G, query(G), how=FEW)
    text = (tmp_path / "p.html").read_text()
    assert "data:image/png" not in text
    assert "of the pixels hardly differ" in text
    G = Generator(write(nodes, dense_weights(0, (LATENT, 12, 6))))
    write_generator_report(tmp_path / "p.html", G, query(G), how=FEW, shape=(2, 3))
    assert "data:image/png" in (tmp_path / "p.html").read_text()


def test_which_layers_are_looked_at() -> None:
    G = dense()
    assert [layer.number for layer in layers_of(G, None)] == [1, 2]
    assert [layer.number for layer in layers_of(G, [3, 1, 3])] == [1, 3]
    nodes = [helper.make_node("Gemm", ["z", "W1", "b1"], ["c"]), helper.make_node("Tanh", ["c"], ["x"])]
    assert len(layers_of(Generator(write(nodes, dense_weights(0, (LATENT, 5)))), None)) == 1
    with pytest.raises(fo.InputError, match="layers: expected at least one number, found none"):
        layers_of(G, [])
    with pytest.raises(fo.InputError, match="layer: expected a layer from 1 to 3, found 4"):
        layers_of(G, [4])


def test_variation_that_gets_more_local_is_called_so(page: tuple[Path, Explored]) -> None:
    section = common(page[1])
    halves = [float(line[3].rstrip("%")) for line in section.facts["table"].rows]
    assert ("the more local" in section.answer) == (halves[1] < 0.95 * halves[0])


def test_likeness_by_hand() -> None:
    query_ = np.zeros((6, 6))
    query_[:, :4] = 1.0
    deviations = np.full((6, 6), 0.01)
    deviations[:2, :2] = 0.5
    found = likeness(2 * deviations, query_, 2.0)
    assert found.deviation == pytest.approx((4 * 0.5 + 32 * 0.01) / 36)
    assert found.same == pytest.approx(32 / 36)
    assert found.half == pytest.approx(3 / 36)  # two squares of four are half of them, less than half of all
    assert found.dark == pytest.approx(0.01)
    assert found.edges == pytest.approx(0.01)
    assert found.bright == pytest.approx((4 * 0.5 + 14 * 0.01) / 18)
    assert found.varied == ("top left", pytest.approx(0.5))
    assert found.steady is not None
    assert found.steady[1] == pytest.approx(0.01)
    assert HARDLY > 0.01
    assert "those at the top left most (0.50)" in " ".join(found.words())
    plain = likeness(deviations, None, 1.0)
    assert (plain.bright, plain.steady) == (None, None)
    assert len(plain.words()) == 2


@examples(20)
@given(seeds, st.integers(1, 40))
def test_half_of_the_variance_is_in_so_many_pixels_and_no_fewer(seed: int, size: int) -> None:
    deviations = np.random.default_rng(seed).random(size)
    count = round(half(deviations) * size)
    squares = np.sort(deviations**2)[::-1]
    assert squares[:count].sum() >= squares.sum() / 2 * (1 - 1e-12)
    assert squares[: count - 1].sum() < squares.sum() / 2
    assert half(np.zeros(size)) == 0


def test_edges_are_where_the_two_kinds_meet() -> None:
    bright = np.zeros((4, 5), dtype=bool)
    bright[1, 2] = True
    expected = {(1, 2), (0, 2), (2, 2), (1, 1), (1, 3)}
    assert {tuple(map(int, place)) for place in np.argwhere(edge(bright))} == expected
    assert not edge(np.ones((3, 3), dtype=bool)).any()


def test_ranges_of_pixels_and_what_is_drawn() -> None:
    assert value_range(np.array([0.2, 1.0])) == (0, 1)
    assert value_range(np.array([-0.5, 0.3])) == (-1, 1)
    assert value_range(np.array([3.0, 250.0])) == (3, 250)
    assert as_pictures((5,), None, (0, 1)) is None
    drawn = as_pictures((12,), (3, 4), (0, 1))
    assert drawn is not None
    assert drawn.shape == (3, 4)
    for shape in ((12,), (5, 5)):
        with pytest.raises(fo.InputError, match="shape: expected height x width"):
            as_pictures((12,), shape, (0, 1))


def test_a_sheet_has_its_images_in_rows() -> None:
    from base64 import b64decode
    from io import BytesIO

    from PIL import Image

    images = np.random.default_rng(0).random((5, 3, 4))
    uri = Pictures((3, 4)).sheet(images, 3)
    pixels = np.asarray(Image.open(BytesIO(b64decode(uri.partition(",")[2]))))
    assert pixels.shape == (2 * (3 + GAP) - GAP, 3 * (4 + GAP) - GAP, 4)
    np.testing.assert_array_equal(pixels[4:7, 5:9, 0], np.round(255 * images[4]))
    assert (pixels[4:7, 5:9, 3] == 255).all()
    assert (pixels[4:, 10:, 3] == 0).all()
    assert (pixels[3, :, 3] == 0).all()


def test_a_tree_is_drawn_with_a_line_a_sample(page: tuple[Path, Explored]) -> None:
    tree = page[1].layers[0].exploration
    paths, shown = drawing(tree)
    assert paths["lines"].count("L") == len(tree.accepted) - 1 == paths["inside"].count("M")
    assert paths["outside"].count("M") == len(tree.rejected)
    Z = tree.accepted - tree.accepted.mean(axis=0)
    values = np.linalg.svd(Z, compute_uv=False) ** 2
    assert shown == pytest.approx(values[:2].sum() / values.sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_error": -1.0}, "target_error: expected a number >= 0"),
        ({"samples": 1}, "samples: expected a whole number >= 2"),
        ({"expansions": 0}, "expansions: expected a whole number >= 1"),
        ({"delta": np.nan}, "delta: expected a number >= 0"),
        ({"delta": 0.0}, "delta: expected a number > 0"),
        ({"interval": 0.0}, "interval: expected a number > 0"),
        ({"points": 31}, "points: expected a whole number >= 32"),
    ],
)
def test_settings_are_checked(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        Exploring(**options)
    with pytest.raises(fo.InputError, match="how: expected Exploring, found dict"):
        study(dense(), query(dense()), how=options)  # type: ignore[arg-type]
