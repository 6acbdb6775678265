"""Studies of 003, on tiny generators and on made-up rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import flipopt as fo
import flipopt.generative as fg
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_003 import claims, figures, measures, networks, tables
from benchmarks.reproduce.published import printed_digit, published
from benchmarks.reproduce.record import Record

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("paper_003")
    (folder / "results").mkdir()
    return Desk(True, folder / "work", folder / "results", QUIET)


@pytest.fixture(scope="module")
def record(desk: Desk) -> Record:
    return tables.tables(desk)


def made(deviations: dict[str, float], **others: Any) -> measures.Row:
    """A row of one query, as :func:`measures.measured` returns it."""
    methods = {
        name: {"deviation": value, "inside": 1.0 if name == "e-gbas" else 0.5, "similarity": [1 - value] * 4}
        for name, value in deviations.items()
    }
    return {"number": 0, "accepted": 100, "mean": methods, "query": methods, "verified": 1.0, "spread": 0.5, **others}


def varied(less: dict[str, float] | None = None, layers: int = 2, queries: int = 4) -> dict[int, list[measures.Row]]:
    """Rows in which E-GBAS varies by 0.05, and another method by that and ``less`` beside a little that differs."""
    found: dict[int, list[measures.Row]] = {}
    for layer in range(1, layers + 1):
        rows = []
        for k in range(queries):
            small = 1e-3 * k
            values = {name: 0.05 + (less or {}).get(name, 0.01) + small for name in ("l2", "linf", "matched")}
            row = made({"e-gbas": 0.05 + 0.5 * small, **values}, number=k, spread=0.5 - 0.1 * layer)
            row |= {"reach": [1.0, 2.0], "samples": {"deviation": 0.05}}
            row["whole"] = {"reach": [5.0, 6.0], "rhat": 1.01, "deviation": 0.1} if layer == 1 else None
            rows.append(row)
        found[layer] = rows
    return found


def test_all_81_numbers_of_the_paper_are_there_once() -> None:
    assert sum(name.startswith("003.") for name in published()) == 81
    assert printed_digit("003.table_1_std_of_generated.DCGAN-MNIST.epsilon_Linf.2") == pytest.approx(1e-4)  # 0.0720
    assert printed_digit("003.table_2_discriminator_cosine_similarity.LSUN.E-GBAS.3") == pytest.approx(1e-3)  # 1.000


def test_every_number_has_ours_or_says_why_not(desk: Desk, record: Record) -> None:
    numbers = [*record.numbers, *tables.growing(desk).numbers]
    assert sorted(number.name for number in numbers) == sorted(n for n in published() if n.startswith("003."))
    for number in numbers:
        missing = "LSUN" in number.name or "celebA" in number.name
        assert (number.ours is None) == missing, number.name
        assert not missing or ("Not run" in number.why and "python -m benchmarks reproduce 003-pggan" in number.why)


def test_the_control_stands_beside_every_ball(record: Record) -> None:
    shown = [sheet for sheet in record.sheets if sheet.head[0] in ("method", "less that of the")]
    assert len(shown) == 3
    for sheet in shown:
        assert any("control" in row[0] for row in sheet.rows), sheet.title
    assert record.sheets[-1].rows[0][0] == "DCGAN-MNIST with the Wasserstein distance"


def test_what_was_not_run_says_how_it_would(desk: Desk) -> None:
    (absent,) = tables.growing(desk).sheets
    assert [row[0] for row in absent.rows] == ["PGGAN-LSUN", "PGGAN-celebA", "PGGAN-FashionMNIST"]
    assert "python -m models gan pggan-fashion --out models/generators" in absent.rows[-1][2]


def test_a_study_that_was_stopped_computes_nothing_twice(
    desk: Desk, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("essential", "explore", "baselines"):
        monkeypatch.setattr(fg, name, lambda *args, **options: pytest.fail("computed again"))
    again = tables.tables(desk)
    assert again.to_json() == record.to_json()


def test_a_row_is_what_the_library_says(desk: Desk) -> None:
    pair = networks.pair(desk, networks.DCGAN)
    assert pair is not None
    how = measures.settings(desk)
    row, tree = measures.row(desk, pair, how, 2, 0), measures.explored(desk, pair, how, 2, 0)
    assert row["accepted"] == len(tree.accepted)
    assert row["accepted"] + row["rejected"] + row["crowded"] == how.expansions + 1
    np.testing.assert_array_equal(tree.region.units, measures.essential(desk, pair, how, 2, 0)["mask"])
    table = fg.compare(fg.baselines(tree, how.count, "mean", seed=0), pair.D)
    for k, name in enumerate(table.method):
        assert row["mean"][name]["deviation"] == pytest.approx(2 * table.deviation[k])  # pixels from -1 to 1
        assert row["mean"][name]["similarity"] == pytest.approx(table.similarity[k, :4])
    assert row["verified"] == 1


def test_queries_differ_and_do_not_depend_on_how_many_there_are(desk: Desk) -> None:
    pair = networks.pair(desk, networks.DCGAN)
    assert pair is not None
    queries = np.stack([pair.query(0, k) for k in range(4)])
    assert len(np.unique(queries[:, 0])) == 4
    assert not np.array_equal(pair.query(1, 0), queries[0])


def test_other_settings_are_other_rows_but_share_their_units(desk: Desk) -> None:
    pair = networks.pair(desk, networks.DCGAN)
    assert pair is not None
    how = measures.settings(desk)
    first = measures.essential(desk, pair, how, 1, 0)
    kept = desk.work / "kept"
    before = {path.name for path in kept.iterdir()}
    assert measures.essential(desk, pair, replace(how, expansions=7), 1, 0) == first
    assert {path.name for path in kept.iterdir()} == before
    measures.row(desk, pair, replace(how, expansions=7), 1, 0)
    assert len({path.name for path in kept.iterdir()} - before) == 1


def test_a_model_without_files_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "FOLDER", tmp_path)
    full = Desk(False, tmp_path / "work", tmp_path, QUIET)
    assert networks.pair(full, networks.DCGAN) is None
    assert networks.DCGAN.not_run.endswith("`python -m benchmarks reproduce 003-tables`, would.")
    for source, path in zip(networks.tiny(tmp_path / "tiny", 6), networks.DCGAN.files, strict=True):
        path.write_bytes(source.read_bytes())
    first = networks.pair(full, networks.DCGAN)
    assert first is not None
    assert first.G.n_latent == 6
    networks.DCGAN.files[0].write_bytes(networks.tiny(tmp_path / "tiny", 5)[0].read_bytes())
    second = networks.pair(full, networks.DCGAN)
    assert second is not None
    assert second.key != first.key


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_the_share_that_varies_is_between_one_pixel_and_all(values: list[float]) -> None:
    share = measures.spread(np.array(values))
    if share:  # squares of tiny numbers vanish
        assert 1 / len(values) - 1e-9 <= share <= 1 + 1e-9


def test_the_share_that_varies() -> None:
    assert measures.spread(np.ones((4, 4))) == pytest.approx(1)
    assert measures.spread(np.eye(4)) == pytest.approx(1 / 4)
    assert measures.spread(np.zeros((4, 4))) == 0


def test_claims_hold_where_intervals_say_so() -> None:
    found = {claim.text: claim for claim in claims.claims(varied())}
    order = found["images of E-GBAS vary less than those of both balls of equal volume"]
    assert order.holds == {"layer 1": True, "layer 2": True}
    assert "-0.0108 [" in order.evidence  # 0.01 and half of the mean of 0, 1, 2 and 3 thousandths
    assert all(claim.verdict == "holds" for text, claim in found.items() if "GB-RRT covers" not in text)
    (reach,) = [claim for text, claim in found.items() if "GB-RRT covers" in text]
    assert reach.verdict == "does not hold"
    assert len(reach.holds) == 4
    assert "1.00 from the query" in reach.evidence


@pytest.mark.parametrize(("method", "fails"), [("l2", 2), ("linf", 2), ("matched", 2)])
def test_claims_fail_with_the_method_that_varies_less(method: str, fails: int) -> None:
    before = [claim.verdict for claim in claims.claims(varied())]
    after = [claim.verdict for claim in claims.claims(varied({method: -0.01}))]
    changed = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert len(changed) == fails
    assert all(after[k] == "does not hold" for k in changed)


def test_a_query_that_never_left_its_region_is_left_out() -> None:
    rows = varied()
    del rows[1][0]["mean"], rows[1][0]["query"]
    assert claims.fewer(rows[1], "l2").count == 3
    assert claims.Mean.of(claims.alike(rows, "l2", 1)).count == 3  # it has no mean over layers
    assert claims.Mean.of(np.array([])).count == 0
    assert len(claims.claims(rows)) == 8


def test_a_tree_that_did_not_grow_is_not_compared(desk: Desk) -> None:
    pair = networks.pair(desk, networks.DCGAN)
    assert pair is not None
    far = replace(measures.settings(desk), delta=50.0)  # longer than any region here is wide
    row = measures.row(desk, pair, far, 4, 0)
    assert row["accepted"] < measures.LEAST
    assert not {"mean", "query", "spread", "samples"} & set(row)
    (claim,) = [one for one in claims.claims({1: [row, row], 2: varied(queries=2)[2]}) if "obtains samples" in one.text]
    assert claim.holds == {"layer 1": False, "layer 2": True}
    assert "fewer for 2 of 2 queries" in claim.evidence


def test_a_mean_has_the_interval_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, 50)
    mean = claims.Mean.of(values)
    assert mean.low < values.mean() < mean.high
    assert mean.error == pytest.approx(values.std(ddof=1) / 50**0.5)
    assert (mean.high - mean.low) / 4 == pytest.approx(mean.error, rel=0.2)


def test_pictures_of_all_figures_are_drawn(desk: Desk) -> None:
    record = figures.figures(desk)
    assert [picture.file for picture in record.pictures] == [f"003-figure-{k}.png" for k in (1, 4, 5, 6, 7)]
    for picture in record.pictures:
        assert (desk.results / picture.file).stat().st_size > 5000
    assert record.claims


def test_what_digit_images_are_is_said_of_images_of_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(True, tmp_path, tmp_path, QUIET)
    plain, digits = networks.pair(desk, networks.DCGAN), networks.PLANE.files[0]
    assert plain is not None
    how = measures.QUICK
    units = {"mask": list(range(0, 4096, 600))}
    monkeypatch.setattr(measures, "essential", lambda *args: units)
    assert measures.digits(desk, plain, how, 1, 0) == {}  # images of 8 x 8
    plane = replace(plain, model=networks.PLANE, G=fg.Generator(digits))
    found = next(row for k in range(how.queries) if (row := measures.digits(desk, plane, how, 1, k)))
    assert set(found) == {*measures.METHODS, "digit"}
    assert found["digit"] in range(10)
    tree = measures.explored(desk, plane, how, 1, 0)
    balls = fg.baselines(tree, how.count, seed=0)
    images = plane.G.forward(balls.points["e-gbas"]).reshape(-1, 784).astype(float)
    classes = fo.load_shipped(measures.JUDGE).network.predict(images)
    own = fo.load_shipped(measures.JUDGE).network.predict(
        plane.G.forward(tree.region.query[None]).reshape(1, -1).astype(float)
    )
    first = measures.digits(desk, plane, how, 1, 0)
    assert first["e-gbas"] == np.mean(classes == own)


def test_areas_of_a_known_region(desk: Desk) -> None:
    pair = networks.pair(desk, networks.PLANE)
    assert pair is not None
    flats = [figures.flat(desk, pair, figures.FLAT_QUICK, 1, k) for k in range(figures.FLAT_QUICK.queries)]
    one = next(one for one in flats if one is not None)
    whole = figures.areas(replace(one, inside=np.ones(len(one.grid), dtype=bool)))
    assert whole["of the box"] == 1
    areas = figures.areas(one)
    assert areas["e-gbas inside"] == 1
    share = one.tree.region.contains(one.grid).mean()
    assert areas["of the box"] == pytest.approx(share)
    narrow = replace(one, balls=replace(one.balls, epsilon_2=0.0, epsilon_inf=10.0))
    assert (figures.areas(narrow)["l2 covers"], figures.areas(narrow)["linf covers"]) == (0, 1)
