"""``flipopt generate``: one page about a query of a generator, from files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import helper

import flipopt as fo
from flipopt.cli.main import main
from flipopt.common.files import read_npz
from tests.generative.cases import IMAGE, LATENT, dense_file, dense_weights, discriminator, write

FEW = ("--expansions", "40", "--samples", "20", "--target-error", "0.3", "--delta", "0.2")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["generate", *arguments], env={"COLUMNS": "100"})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """g.onnx, d.onnx, net.npz and points.npy in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(import_module("flipopt.generative.essential"), "HALVINGS", 3)
    rng = np.random.default_rng(0)
    Path("g.onnx").write_bytes(dense_file().read_bytes())
    Path("d.onnx").write_bytes(discriminator().path.read_bytes())
    fo.DenseNetwork([rng.standard_normal((16, 3))], [np.zeros(3)], []).save("net.npz")
    np.save("points.npy", rng.standard_normal((3, LATENT)))


@pytest.mark.usefixtures("files")
def test_a_page_of_two_layers_with_all_that_can_be_given() -> None:
    options = ("--layer", "2", "--layer", "1", "--layer", "2", "--query", "7", "--discriminator", "d.onnx")
    more = ("--classifier", "net.npz", "--names", "cat,d<o>g,cow", "--latents", "found.npz", "--out", "page.html")
    result = run("g.onnx", *options, *more, *FEW)
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert words.index("Layer 1") < words.index("Layer 2")
    assert "page in page.html" in words
    page = Path("page.html").read_text()
    assert "<h1>g.onnx, query 7</h1>" in page
    assert "similarity, 1" in page
    assert "“cat”" in page or "“d&lt;o&gt;g”" in page or "“cow”" in page
    assert "d<o>g" not in page
    found = read_npz("found.npz")
    np.testing.assert_array_equal(found["query"], np.random.default_rng(7).standard_normal(LATENT))
    G = fo.generative.Generator("g.onnx")
    for k in (1, 2):
        Z = found[f"samples_{k}"]
        np.testing.assert_array_equal(Z[0], found["query"])
        assert fo.generative.region(G, Z[0], k, found[f"essential_{k}"]).contains(Z).all()
        assert len(found[f"parents_{k}"]) == len(Z)
        assert (found[f"theta_{k}"][found[f"essential_{k}"]] > 0.5).all()
        assert set(np.flatnonzero(found[f"smallest_{k}"])) <= set(np.flatnonzero(found[f"essential_{k}"]))


@pytest.mark.usefixtures("files")
def test_a_latent_vector_of_a_file_and_all_hidden_layers() -> None:
    result = run("g.onnx", "--query", "points.npy", "--row", "2", "--layer", "all", *FEW)
    assert result.exit_code == 0, result.output
    page = Path("report.html").read_text()
    assert "<h1>g.onnx, row 2 of points.npy</h1>" in page
    length = np.linalg.norm(np.load("points.npy")[2])
    assert f"{LATENT} numbers and length {length:.2f}" in page
    assert page.count("Relu, looked at") == 2
    assert "Tanh, looked at" not in page  # the third makes the pixels


@pytest.mark.usefixtures("files")
def test_segments_are_looked_at_and_chains_left_out_if_it_is_asked_for() -> None:
    result = run("g.onnx", "--layer", "2", "--points", "40", *FEW)
    assert result.exit_code == 0, result.output
    assert "40 points of 8 chains (slices): R-hat at most" in " ".join(result.output.split())
    assert "points of every step were looked at" not in Path("report.html").read_text()
    result = run("g.onnx", "--layer", "2", "--segments", "--points", "0", *FEW)
    assert result.exit_code == 0, result.output
    assert "R-hat" not in result.output
    assert "points of every step were looked at" in Path("report.html").read_text()


def classifier() -> None:
    """dense.onnx: flat inputs; images.onnx: images of 1 x 4 x 4; both with three classes and a hidden layer."""
    nodes = [
        helper.make_node("Gemm", ["z", "W1", "b1"], ["c1"]),
        helper.make_node("Relu", ["c1"], ["a1"]),
        helper.make_node("Gemm", ["a1", "W2", "b2"], ["x"]),
    ]
    write(nodes, dense_weights(0, (16, 8, 3)), ("batch", 16), Path("dense.onnx"))
    flat = helper.make_node("Flatten", ["z"], ["flat"])
    nodes[0].input[0] = "flat"
    write([flat, *nodes], dense_weights(0, (16, 8, 3)), ("batch", *IMAGE), Path("images.onnx"))


def other_files() -> None:
    """Files in which something is wrong."""
    classifier()
    model = onnx.load("g.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, "fixed.onnx")
    points = np.zeros((2, LATENT))
    points[1, 3] = np.nan
    np.save("nan.npy", points)
    np.save("wide.npy", np.zeros((2, LATENT + 1)))
    Path("text.csv").write_text("a,b\n1,2\n")
    fo.DenseNetwork([np.ones((9, 3))], [np.zeros(3)], []).save("other.npz")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("absent.onnx",), "absent.onnx: no such file"),
        (("images.onnx",), "images.onnx: expected latent vectors, (batch, d) or (batch, d, 1, 1), found an input"),
        (("dense.onnx",), "dense.onnx: expected a generator of images"),
        (("fixed.onnx",), "fixed.onnx: expected an input of any batch, found a fixed batch of 1: export a dynamic one"),
        (("g.onnx", "--layer", "9"), "--layer: expected a layer from 1 to 3, found 9"),
        (("g.onnx", "--layer", "0"), "--layer: expected a whole number >= 1, found 0"),
        (("g.onnx", "--layer", "two"), "--layer: expected a number from 1 to 3 or all, found 'two'"),
        (("g.onnx", "--query", "nan.npy"), "nan.npy: row 1, column 3 is nan"),
        (("g.onnx", "--query", "wide.npy"), "wide.npy: expected rows of 6 numbers, found shape (2, 7)"),
        (("g.onnx", "--query", "text.csv"), "text.csv: expected rows of 6 numbers"),
        (("g.onnx", "--query", "none.npy"), "none.npy: no such file"),
        (("g.onnx", "--query", "seven"), "--query: expected a whole number >= 0 or the name of a file, found 'seven'"),
        (("g.onnx", "--query", "points.npy", "--row", "3"), "--row: expected 0 to 2, found 3"),
        (("g.onnx", "--discriminator", "g.onnx"), "discriminator: expected one of images (1, 4, 4), found one of (6,)"),
        (
            ("g.onnx", "--classifier", "other.npz"),
            "classifier: expected one of images (1, 4, 4), found one of 9 pixels",
        ),
        (("g.onnx", "--shape", "5x5"), "shape: expected height x width[ x channels] of 16 pixels, found (5, 5)"),
        (("g.onnx", "--target-error", "-1"), "target_error: expected a number >= 0, found -1.0"),
        (("g.onnx", "--points", "5"), "points: expected a whole number >= 32, found 5"),
        (("g.onnx", "--latents", "found.txt"), "--latents: expected a name ending in .npz, found found.txt"),
        (("g.onnx", "--out", "page.txt"), "--out: expected a name ending in .html, found page.txt"),
        (("g.onnx", "--out", "nowhere/page.html"), "--out: expected a folder that exists"),
    ],
)
def test_what_does_not_fit_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    other_files()
    result = run(*arguments)
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not list(Path().glob("*.html"))
