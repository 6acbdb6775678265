"""What the page of an audit says, and what it says where nothing can be said."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flipopt as fo
from flipopt.common.errors import InputError, StorageError
from flipopt.report import write_report
from flipopt.report.audit import details, inputs
from flipopt.report.audit.section import Section, number, share


def table_of_people() -> tuple[fo.DenseNetwork, Any, Any, tuple[str, ...]]:
    """A network of three classes on 60 people with named features, labels that are mostly its own."""
    rng, units = np.random.default_rng(5), np.array([3e4, 10.0, 1.0, 1.0])
    W = [0.3 * rng.standard_normal((4, 8)) / units[:, None], rng.standard_normal((8, 3))]
    X = units * rng.standard_normal((60, 4))
    net = fo.DenseNetwork(W, [np.zeros(8), np.zeros(3)], fo.Tanh())
    labels = net.predict(X)
    labels[::9] = (labels[::9] + 1) % 3
    return net, X, labels, ("income", "age", "debts", "owns")


def written(path: Path, *arguments: Any, **options: Any) -> tuple[dict[str, Section], str, dict[str, Any]]:
    """Sections by name, the page, and the data of its script."""
    contents = write_report(path, *arguments, **options)
    text = path.read_text()
    found = re.search(r"^const DATA = (.*);$", text, re.MULTILINE)
    assert found
    return {section.name: section for section in contents.sections}, text, json.loads(found[1])


def test_a_report_says_what_the_arrays_say(tmp_path: Path) -> None:
    net, X, labels, names = table_of_people()
    flips = fo.closest_flip_points(net, X)
    sections, text, data = written(tmp_path / "r.html", net, X, labels, flips=flips, feature_names=names)
    wrong = int((net.predict(X) != labels).sum())
    assert f"right on {60 - wrong} of 60 inputs" in sections["model"].answer
    assert number(float(np.median(flips.distance))) in sections["distances"].answer
    assert f"Row {flips.row[flips.distance.argmin()]}," in sections["fragile"].answer
    np.testing.assert_allclose(data["rows"]["distance"], flips.distance, rtol=1e-5)
    lower = fo.bounds.lower(net, X)
    np.testing.assert_allclose(data["rows"]["lower"], lower, rtol=1e-5)
    matrix = sections["classes"].facts["matrix"]["lines"]
    assert sum(cell["count"] for line in matrix for cell in line["cells"]) == 60
    trust = fo.explain.trust(flips, net, X, labels)
    assert f"{trust.distance.auc:.3f}" in sections["trust"].answer
    assert len(text.encode()) < 5_000_000
    assert "http://www.w3.org/2000/svg" in text  # the name of a format, and the only address
    assert len(re.findall(r"https?://", text)) == 1


def test_lines_lead_from_the_class_to_the_other_one(tmp_path: Path) -> None:
    net, X, labels, _ = table_of_people()
    _, _, data = written(tmp_path / "r.html", net, X, labels, stored=20)
    assert len(data["details"]) == 20
    at = data["alphas"].index(pytest.approx(1.0, abs=0.02))
    for row, detail in data["details"].items():
        z = net.probabilities(X[int(row)])
        assert detail["mine"][0] == pytest.approx(z.max(), rel=1e-2)
        assert detail["mine"][at] == pytest.approx(detail["others"][at], abs=0.1)
        assert detail["others"][-1] > detail["mine"][-1]


def test_what_is_proved_is_in_every_part_of_the_page(tmp_path: Path) -> None:
    net, X, *_ = table_of_people()
    net = fo.DenseNetwork(net.weights, net.biases, fo.ReLU())
    weights = fo.scale_of(X)
    options = {"weights": weights, "prove": 30.0, "run": tmp_path / "kept"}
    sections, text, data = written(tmp_path / "r.html", net, X, **options)
    assert "All of these flips are proved closest." in sections["distances"].answer
    assert "branch and bound" in sections["distances"].how
    assert data["rows"]["proved"] == [True] * 60
    np.testing.assert_allclose(data["rows"]["lower"], data["rows"]["distance"], rtol=2e-6)
    assert ">100%<" in text.replace(" ", "").replace("\n", "")
    assert "proved closest" in text
    flips = fo.closest_flip_points(net, X, weights=weights)
    worse = replace(flips, x=X + 1.2 * (flips.x - X), distance=1.2 * flips.distance)
    mended, _, again = written(tmp_path / "r.html", net, X, flips=worse, weights=weights, prove=30.0)
    np.testing.assert_allclose(again["rows"]["distance"], data["rows"]["distance"], rtol=2e-6)
    assert "All of these flips" in mended["distances"].answer
    hardly, _, part = written(tmp_path / "r.html", net, X[:9], weights=weights, prove=0.0)
    sure = sum(part["rows"]["proved"])
    assert sure < 9
    assert f"{sure or 'None'} of 9 flips proved closest; of the others at least" in hardly["distances"].answer


def test_a_table_of_flips_with_bounds_needs_no_further_proof(tmp_path: Path) -> None:
    net, X, *_ = table_of_people()
    net = fo.DenseNetwork(net.weights, net.biases, fo.ReLU())
    flips = fo.proofs.prove_flips(net, X, fo.closest_flip_points(net, X))
    sections, _, data = written(tmp_path / "r.html", net, X, flips=flips)
    assert sum(data["rows"]["proved"]) == int(flips.proved.sum())
    assert "proved closest" in sections["distances"].answer


def test_flips_that_cannot_be_proved_are_named(tmp_path: Path) -> None:
    net, X, *_ = table_of_people()
    with pytest.raises(fo.InputError, match="network: expected ReLU, PReLU or identity in every hidden layer, found T"):
        write_report(tmp_path / "r.html", net, X, prove=1.0)
    net = fo.DenseNetwork(net.weights, net.biases, fo.ReLU())
    with pytest.raises(fo.InputError, match="prove: expected flips in the 2-norm, .* found bounds, norm=1"):
        write_report(tmp_path / "r.html", net, X, prove=1.0, bounds=(0, 1), norm=1)
    assert not (tmp_path / "r.html").exists()


def test_weights_scale_the_proved_distances_too(tmp_path: Path) -> None:
    net, X, _, names = table_of_people()
    X, weights = X[:20], fo.scale_of(X)
    sections, _, data = written(
        tmp_path / "r.html", net, X, feature_names=names, units=["$", "y", "", ""], weights=weights
    )
    proved, found = np.array(data["rows"]["lower"]), np.array(data["rows"]["distance"])
    assert (proved > 0).all()
    assert (proved <= found * (1 + 1e-6)).all()
    assert np.median(proved / found) > 1e-3  # in units of dollars next to nothing would be proved
    changes = [line for card in sections["fragile"].facts["cards"] for line in card["changes"].rows]
    assert any(cell.endswith(" $") for line in changes for cell in line)


def test_what_needs_labels_says_so(tmp_path: Path) -> None:
    net, X, _, _ = table_of_people()
    sections, _, data = written(tmp_path / "r.html", net, X)
    assert sections["trust"].answer.startswith("Needs labels")
    assert "without labels" in sections["model"].answer
    assert data["rows"]["label"] is None
    assert "label" in [group["verb"] for group in sections["advice"].facts["groups"]]


def test_without_mistakes_it_cannot_be_said_what_tells_them(tmp_path: Path) -> None:
    net, X, _, _ = table_of_people()
    sections, _, _ = written(tmp_path / "r.html", net, X, net.predict(X))
    assert sections["trust"].answer.startswith("Cannot be said: there are no mistakes")
    assert "no mistakes" in sections["classes"].answer


def test_one_class_and_one_row(tmp_path: Path) -> None:
    net, X, _, _ = table_of_people()
    k = net.predict(X)[0]
    sections, _, _ = written(tmp_path / "r.html", net, X[net.predict(X) == k])
    assert len(sections["connectivity"].facts["classes"].rows) == 1
    sections, _, data = written(tmp_path / "r.html", net, X[:1], [int(k)])
    assert sections["connectivity"].answer == "Cannot be said: no class has two different inputs."
    assert len(data["rows"]["row"]) == 1


def test_rows_that_are_no_numbers_are_named_and_cost_nothing(tmp_path: Path) -> None:
    net, X, labels, names = table_of_people()
    X[7, 1] = np.nan
    X[:, 3] = 1.0  # a feature that is constant
    sections, text, data = written(tmp_path / "r.html", net, X, labels, feature_names=names)
    repair = next(group for group in sections["advice"].facts["groups"] if group["verb"] == "repair")
    assert repair["items"] == [{"row": 7, "reason": "age is no number"}]
    assert "1 of the rows have something that is no number" in text
    assert data["rows"]["distance"][7] is None
    assert sum(distance is not None for distance in data["rows"]["distance"]) == 59
    sections, _, _ = written(tmp_path / "r.html", net, np.full((2, 4), np.nan))
    assert "nothing can be said" in sections["distances"].answer


def test_a_network_without_bounds_says_so(tmp_path: Path) -> None:
    sklearn = pytest.importorskip("sklearn.svm")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    model = sklearn.SVC(kernel="rbf", random_state=0).fit(X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no"))
    sections, text, data = written(tmp_path / "r.html", model, X, model.predict(X))
    assert "Nothing is proved" in sections["distances"].how
    assert data["rows"]["lower"] is None
    assert data["classes"] == ["no", "yes"]
    assert "“yes”" in text


def test_classes_whose_names_are_numbers(tmp_path: Path) -> None:
    net, X, _, _ = table_of_people()
    named = fo.DenseNetwork(net.weights, net.biases, net.activations)
    named.class_names = ("1", "2", "3")
    mine = X[net.predict(X) != 0]  # of which no label is class 0
    labels = net.predict(mine) + 1
    labels[0] = 5 - labels[0]
    sections, _, data = written(tmp_path / "r.html", named, mine, labels)
    assert data["rows"]["label"] == (labels - 1).tolist()
    assert f"right on {len(mine) - 1} of {len(mine)} inputs" in sections["model"].answer
    assert "1 mistake " in sections["trust"].answer


def test_images_are_pictures(tmp_path: Path) -> None:
    shipped = fo.load_shipped("mnist-net1")
    flips = fo.closest_flip_points(shipped.network, shipped.X[:4])
    images = {"images": shipped.images[:4], "features": shipped.features}
    sections, text, data = written(tmp_path / "r.html", shipped.network, shipped.X[:4], flips=flips, **images)
    assert all(detail["images"]["after"].startswith("data:image/png;base64,") for detail in data["details"].values())
    assert len(sections["directions"].facts["pictures"]) == 4
    assert text.count("<img") >= 12
    flat = fo.load_shipped("mnist-fcn")
    with pytest.raises(InputError, match="shape: expected height x width"):
        write_report(tmp_path / "r.html", flat.network, flat.X[:2], shape=(28, 27))
    with pytest.raises(InputError, match="images: expected 2, one a row of X, found 4"):
        write_report(tmp_path / "r.html", shipped.network, shipped.X[:2], **images)


def test_a_torch_module_on_colour_images(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = (torch.nn.Conv2d(3, 2, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(18, 3))
    images = np.random.default_rng(0).random((6, 3, 5, 5))
    sections, _, data = written(tmp_path / "r.html", torch.nn.Sequential(*layers).double(), images, stored=3)
    assert sections["model"].answer.startswith("A torch module with 75 inputs, 3 classes and 113 parameters")
    assert "Nothing is proved" in sections["distances"].how
    assert len(data["details"]) == 3
    entry = next(iter(data["details"]))
    before = _pixels(data["details"][entry]["images"]["before"])
    np.testing.assert_array_equal(before, np.round(255 * np.moveaxis(images[int(entry)], 0, 2)))


def _pixels(uri: str) -> Any:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_of_very_many_inputs_the_nearest_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net, X, labels, _ = table_of_people()
    for module in (details, inputs):
        monkeypatch.setattr(module, "MOST_ROWS", 10)
    monkeypatch.setattr(details, "MOST_BYTES", 6000)
    flips = fo.closest_flip_points(net, X)
    sections, _, data = written(tmp_path / "r.html", net, X, labels, flips=flips, stored=30)
    assert sections["inputs"].answer.startswith("The 10 of 60 inputs with the nearest flips")
    nearest = flips.row[np.argsort(flips.distance)[:10]]
    assert set(nearest.tolist()) <= set(data["rows"]["row"])
    named = {item["row"] for group in sections["advice"].facts["groups"] for item in group["items"]}
    assert named <= set(data["rows"]["row"])
    assert 0 < len(data["details"]) < 30


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    net, X, _, _ = table_of_people()
    written(tmp_path / "r.html", net, X, run=tmp_path / "run")
    assert len(fo.FlipTable.load(tmp_path / "run")) == 60
    _, _, data = written(tmp_path / "r.html", net, X, run=tmp_path / "run")
    assert len(data["rows"]["row"]) == 60


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labels": [0, 1]}, "labels: expected 60 classes"),
        ({"labels": [7] * 60}, "labels: expected classes from 0"),
        ({"class_names": ["a"]}, "class_names: expected 3 names, found 1"),
        ({"feature_names": "abcd"}, "feature_names: expected a sequence of names"),
        ({"units": ["m"]}, "units: expected 4 names, found 1"),
        ({"sample": 1}, "sample: expected a whole number >= 2"),
        ({"norm": 3}, "norm: expected"),
    ],
)
def test_bad_arguments_are_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    net, X, _, _ = table_of_people()
    with pytest.raises(InputError, match=words):
        write_report(tmp_path / "r.html", net, X, **options)
    assert not (tmp_path / "r.html").exists()


def test_a_folder_that_is_not_there_is_said_before_the_work(tmp_path: Path) -> None:
    net, X, _, _ = table_of_people()
    with pytest.raises(StorageError, match="expected a folder that exists"):
        write_report(tmp_path / "none" / "r.html", net, X)
    with pytest.raises(InputError, match="flips: expected flips of rows of X"):
        write_report(tmp_path / "r.html", net, X[:5], flips=fo.closest_flip_points(net, X[:9]))


def test_numbers_have_digits_that_count() -> None:
    assert [number(value) for value in (0.012345, 12.3456, 1234.5, 0.0, np.nan)] == [
        "0.0123",
        "12.3",
        "1,234",
        "0",
        "\u2013",
    ]
    assert number(1.234e-7) == "1.23e-07"
    assert [share(value) for value in (0.0, 1.0, 0.99999, 1e-5)] == ["0%", "100%", ">99.9%", "<0.1%"]


def test_predictors_that_are_alike_are_said_to_be(tmp_path: Path) -> None:
    net, X, _, _ = table_of_people()
    flips = fo.closest_flip_points(net, X)
    doubtful = np.argsort(flips.distance)
    softmax = np.argsort(net.probabilities(X).max(axis=1))
    labels = net.predict(X)
    # The two least sure by either measure are mistakes, and all that is as doubtful as they are is left out.
    wrong = np.intersect1d(doubtful[:10], softmax[:10])[:2]
    kept = np.union1d(wrong, np.intersect1d(doubtful[15:], softmax[15:]))
    labels[wrong] = (labels[wrong] + 1) % 3
    sections, _, _ = written(tmp_path / "r.html", net, X[kept], labels[kept])
    assert "they are alike (areas 1.000 and 1.000)" in sections["trust"].answer
