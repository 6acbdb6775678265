"""The page of an audit in a real browser: its controls, its lines to flips, nothing fetched and no errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.report import write_report
from tests.browser import needs_browser, outcome
from tests.report.test_audit import table_of_people

ACT = """
const click = (selector) => document.querySelector(selector).click();
const column = (k) => [...document.querySelectorAll("#table tbody tr")].map((line) => line.children[k].textContent);
const choose = (id, value) => {
  const one = document.getElementById(id);
  one.value = value;
  one.dispatchEvent(new Event("change"));
};
const rows = () => document.querySelectorAll("#table tbody tr").length;
const texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
report.sections = texts("h2");
report.first = column(0);
report.distances = column(4).map(Number);
report.shown = texts("#shown")[0];
click("#more");
report.all = rows();
click('[data-sort="distance"]');
report.down = document.querySelector('[aria-sort]').getAttribute("aria-sort");
report.farthest = column(4).map(Number).slice(0, 3);
choose("filter-class", "1");
report.classes = [...new Set(column(1))];
choose("filter-class", "");
document.getElementById("filter-wrong").click();
report.mistakes = rows();
document.getElementById("filter-wrong").click();
click(".matrix button");
report.cell = [Number(texts(".matrix button")[0]), texts("#shown")[0]];
choose("filter-class", ""); choose("filter-other", "");
click('[data-sort="distance"]');
click("#table tbody button.row");
report.open = document.getElementById("detail").open;
report.title = texts("#detail-title")[0];
report.lines = [...document.querySelectorAll("#line path")].map((one) => one.getAttribute("d").split("L").length);
report.changes = document.querySelectorAll("#detail-body tbody tr, #detail-body table tr").length;
document.getElementById("detail").close();
click("#advice button.row");
report.advised = texts("#detail-title")[0];
document.getElementById("detail").close();
document.querySelectorAll("#table tbody tr")[1].children[3].click();
report.anywhere = document.getElementById("detail").open;
document.getElementById("detail").close();
const areas = () => [...document.querySelectorAll("#curve path")].map((one) => one.getAttribute("d"));
const before = areas();
choose("curve-axis", document.getElementById("curve-axis").value === "log" ? "linear" : "log");
report.curve = [before.length, before.join() !== areas().join()];
const broken = (one) => [...one.attributes].some((attribute) => /NaN|undefined/.test(attribute.value));
report.nan = [...document.querySelectorAll("svg *")].filter(broken).length;
report.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
report.injected = window.injected === undefined;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    net, X, labels, names = table_of_people()
    hostile = ("</script><script>window.injected = 1</script>", '"><img src=x onerror="window.injected = 1">', "c")
    write_report(path, net, X, labels, feature_names=names, class_names=hostile, title="<b>&")
    return path


@needs_browser
@pytest.mark.parametrize("width", [1400, 360])
def test_the_controls_work_and_nothing_is_fetched(page: Path, width: int) -> None:
    report = outcome(page, ACT, width)
    assert report["faults"] == []
    assert report["fetched"] == []
    assert report["injected"]
    assert report["nan"] == 0
    assert report["wide"] <= 0  # nothing but tables within their own scroll bars is wider than the page
    assert len(report["sections"]) == 9
    assert len(report["first"]) == 25
    assert report["distances"] == sorted(report["distances"])
    assert report["shown"] == "25 of 60 shown"
    assert report["all"] == 60
    assert report["down"] == "descending"
    assert report["farthest"] == sorted(report["farthest"], reverse=True)
    assert len(report["classes"]) == 1
    net, X, labels, _ = table_of_people()
    assert report["mistakes"] == int((net.predict(X) != labels).sum()) > 0
    count, shown = report["cell"]
    assert shown.startswith(f"{min(count, 25)} of {count} shown")
    assert report["open"]
    assert report["title"].startswith(f"Row {report['first'][0]}: ")
    assert report["lines"] == [41, 41]
    assert report["changes"] > 1
    assert report["advised"].startswith("Row ")
    assert report["anywhere"]
    assert report["curve"] == [3, True]


@needs_browser
def test_a_page_of_one_image_without_labels_has_no_errors(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    net = fo.DenseNetwork([rng.standard_normal((12, 3))], [np.zeros(3)], [])
    write_report(tmp_path / "report.html", net, rng.random((1, 12)), shape=(3, 4))
    click = 'document.querySelector("button.row").click();'
    count = 'report.images = document.querySelectorAll("#detail-body img").length;'
    report = outcome(tmp_path / "report.html", click + count)
    assert report["faults"] == []
    assert report["fetched"] == []
    assert report["images"] == 3


PROVED = """
const column = (k) => [...document.querySelectorAll("#table tbody tr")].map((line) => line.children[k].textContent);
const heads = [...document.querySelectorAll("#table thead th")].map((cell) => cell.textContent);
report.tiles = document.body.textContent.includes("proved closest");
document.querySelector('[data-sort="proved"]').click();
report.shares = column(heads.indexOf("proved"));
document.querySelectorAll("#table tbody button.row")[report.shares.length - 1].click();
report.detail = document.getElementById("detail-body").textContent;
"""


@needs_browser
def test_the_table_says_what_is_proved(tmp_path: Path) -> None:
    net, X, *_ = table_of_people()
    net = fo.DenseNetwork(net.weights, net.biases, fo.ReLU())
    X, weights = X[:6], fo.scale_of(X)
    flips = fo.proofs.prove_flips(net, X, fo.closest_flip_points(net, X, weights=weights), weights=weights)
    flips.lower_bound[:2] *= [0.5, 0.25]
    write_report(tmp_path / "page.html", net, X, flips=flips, weights=weights)
    report = outcome(tmp_path / "page.html", PROVED)
    assert report["faults"] == []
    assert report["tiles"]
    assert report["shares"] == ["25.0%", "50.0%", *["closest"] * 4]
    assert "proved: there is no nearer one" in report["detail"]
