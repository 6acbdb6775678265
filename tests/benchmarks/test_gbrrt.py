"""The ways that are compared grow the same tree, and the module of torch is the network in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from benchmarks import beropt, gbrrt
from flipopt.generative import BerOpt, Generator
from models.gans.dcgan import DcganGenerator
from models.gans.export import save_generator


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    """A DCGAN of few maps, with weights large enough for regions that end."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = DcganGenerator(2, 20)
        with torch.no_grad():
            for _ in range(5):
                made(torch.randn(32, 20))
    path = tmp_path_factory.mktemp("dcgan") / "dcgan.onnx"
    save_generator(made.eval(), 20, path)
    return Generator(path)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_module_is_the_network_in_the_file(small: Generator) -> None:
    z = np.random.default_rng(1).standard_normal((3, 20))
    X = torch.tensor(z, dtype=torch.float32).reshape(3, 20, 1, 1)
    module = gbrrt.module(small.path)
    np.testing.assert_allclose((module(X) + 1) / 2, small.forward(z), rtol=0, atol=1e-5)
    for layer in gbrrt.LAYERS:
        H = module[: 2 * layer - 1](X).reshape(3, -1)
        np.testing.assert_allclose(H, small.forward(z, to=layer), rtol=0, atol=1e-4)


@pytest.mark.parametrize("layer", [1, 3])
def test_all_ways_reach_equally_far(small: Generator, layer: int) -> None:
    z0 = gbrrt.latent(small, 0)
    mask = np.arange(small.layers[layer - 1].units) % 12 == 0
    rows = [gbrrt.measured(small, z0, layer, mask, scheme, 60) for scheme in gbrrt.SCHEMES]
    assert 5 < rows[0]["samples"] < 60
    for row in rows[1:]:
        for name in ("samples", "rejected", "mean_distance", "largest_distance"):
            assert row[name] == rows[0][name]
    assert rows[1]["evaluations"] == 60


def test_rows_become_ratios(small: Generator, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    rows = [
        dict.fromkeys(gbrrt.COLUMNS, 1) | {"scheme": scheme, "cpu_seconds": seconds, "turn": turn, "layer": 2}
        for turn in range(2)
        for scheme, seconds in zip(gbrrt.SCHEMES, (0.5, 1.0, 6.0), strict=True)
    ]
    path = tmp_path / "rows.csv"
    with gbrrt.keeping(path, gbrrt.COLUMNS, Console(quiet=True)) as add:
        add(rows)
    gbrrt.show(path, Console(width=140))
    shown = capsys.readouterr().out
    assert "2.0" in shown
    assert "12.0" in shown


def test_a_query_that_is_solved_is_a_row(small: Generator, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    row = beropt.solved(small, 0, 1, BerOpt(steps=20))
    assert set(row) == set(beropt.COLUMNS)
    assert row["reached"] == int(row["error"] <= beropt.TARGET)
    assert 0 <= row["smallest"] <= row["essential"] <= row["active"] <= row["units"] == 256
    path = tmp_path / "rows.csv"
    with beropt.keeping(path, beropt.COLUMNS, Console(quiet=True)) as add:
        add([row])
    beropt.show(path, Console(width=140))
    assert f"{row['reached']} of 1" in capsys.readouterr().out
