from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import flipopt as fo
from flipopt.cli.main import main
from tests.proofs.cases import network


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "120"})


def test_demo_finds_checks_and_draws_flip_points(tmp_path: Path) -> None:
    result = run("demo", "--images", "1", "--out", str(tmp_path / "flips.png"))
    assert result.exit_code == 0, result.output
    line = next(line for line in result.output.splitlines() if "CONVERGED" in line)
    cells = [cell.strip() for cell in line.split("│")[1:-1]]
    assert cells[0] == "7"
    shipped = fo.load_shipped("mnist-net1")
    flip = fo.closest_flip_point(shipped.network, shipped.X[0], target=int(cells[1]))
    assert cells[2] == f"{flip.distance:.4f}"
    assert (tmp_path / "flips.png").read_bytes()[1:4] == b"PNG"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fo.DenseNetwork:
    """A small network and points, in files in the working directory."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((3, 6)), rng.standard_normal((6, 4))]
    net = fo.DenseNetwork(weights, [np.zeros(6), np.zeros(4)], fo.Erf(1.0))
    monkeypatch.chdir(tmp_path)
    net.save("net.npz")
    np.save("X.npy", rng.standard_normal((3, 3)))
    return net


def test_solve_writes_the_table_that_the_library_computes(small: fo.DenseNetwork) -> None:
    result = run("solve", "net.npz", "X.npy", "--out", "flips.parquet", "--target", "all", "--bounds", "-5", "5")
    assert result.exit_code == 0, result.output
    table = fo.FlipTable.load("flips.parquet")
    expected = fo.closest_flip_points(small, np.load("X.npy"), "all", bounds=(-5, 5))
    np.testing.assert_array_equal(table.classes, expected.classes)
    np.testing.assert_allclose(table.distance, expected.distance, rtol=1e-9)
    assert "9 entries in flips.parquet" in result.output
    assert "CONVERGED" in result.output


def test_solve_takes_a_class_frozen_features_and_a_number_of_rows(small: fo.DenseNetwork) -> None:
    sources = small.predict(np.load("X.npy"))
    target = next(k for k in range(4) if k not in sources[:2])
    options = ["--target", str(target), "--frozen", "0", "--rows", "2", "--solver", "scipy"]
    result = run("solve", "net.npz", "X.npy", "--out", "flips.parquet", *options)
    assert result.exit_code == 0, result.output
    table = fo.FlipTable.load("flips.parquet")
    np.testing.assert_array_equal(table.x[:, 0], np.load("X.npy")[:2, 0])
    assert (table.classes[:, 1] == target).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.npz", "X.npy", "--out", "flips.txt"], "--out: expected a name ending in .parquet or .csv"),
        (["net.npz", "X.npy", "--out", "nowhere/f.parquet"], "--out: expected a folder that exists"),
        (["net.npz", "X.npy", "--out", "f.parquet", "--target", "9"], "--target: expected nearest, all or a class"),
        (["net.npz", "X.npy", "--out", "f.parquet", "--solver", "magic"], "solver: expected a Solver or one of ipopt"),
        (["net.npz", "X.npy", "--out", "f.parquet", "--frozen", "a"], "--frozen: expected indices"),
        (["net.npz", "X.npy", "--out", "f.parquet", "--bounds", "1", "-1"], "bounds (lower): expected at most"),
        (["net.npz", "Y.npy", "--out", "f.parquet"], "Y.npy: no such file"),
        (["absent.npz", "X.npy", "--out", "f.parquet"], "absent.npz: no such file"),
    ],
)
def test_mistakes_of_solve_are_one_line_and_leave_nothing(small, arguments, message: str) -> None:
    result = run("solve", *arguments)
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
    assert not list(Path().glob("*.parquet"))


def test_solvers_lists_every_name_and_how_to_get_the_rest() -> None:
    result = run("solvers")
    assert result.exit_code == 0
    for name in fo.solvers.SOLVERS:
        assert name in result.output
    if fo.solvers.SOLVERS["cyipopt"].missing():
        assert "flipopt[cyipopt]" in result.output


def test_info_reads_files_and_measures_at_a_row_of_the_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    net = fo.DenseNetwork(
        [rng.standard_normal((3, 5)), rng.standard_normal((5, 4))], [np.zeros(5), np.zeros(4)], fo.PReLU(rng.random(5))
    )
    X = rng.standard_normal((6, 3))
    net.save(tmp_path / "net.npz")
    net.save(tmp_path / "net.onnx")
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "X.npz", X=X)
    for file, data in (("net.npz", "X.npy"), ("net.onnx", "X.npz")):
        result = run("info", str(tmp_path / file), "--data", str(tmp_path / data), "--row", "4")
        assert result.exit_code == 0, result.output
        assert f"class {net.predict(X[4])}, softmax {net.probabilities(X[4]).max():.4f}" in result.output
        assert "PReLU" in result.output
    assert run("info", str(tmp_path / "net.npz")).exit_code == 0


def test_info_on_a_linear_network_has_nothing_to_flow_through(tmp_path: Path) -> None:
    fo.DenseNetwork([np.eye(2)], [np.zeros(2)]).save(tmp_path / "net.npz")
    result = run("info", str(tmp_path / "net.npz"))
    assert result.exit_code == 0
    assert "6 parameters" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nowhere.npz"], "nowhere.npz: no such file"),
        (["info", "net1"], "net1: expected a .npz file"),
        (["info", "mnist-net1", "--row", "200"], "--row: expected 0 to 199, found 200"),
        (["info", "mnist-net1", "--data", "X.txt"], "X.txt: expected .npy, .npz, .csv or .parquet"),
        (["info", "mnist-net1", "--data", "bad.npy"], "bad.npy: not a readable npy file"),
        (
            ["info", "mnist-net1", "--data", "narrow.npy"],
            "narrow.npy: expected rows of 100 numbers, found shape (2, 5)",
        ),
        (["info", "mnist-net1", "--data", "other.npz"], "other.npz: expected an array X or features, found a"),
        (["info", "mnist-net1", "--data", "missing.npy"], "missing.npy: no such file"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_1(arguments, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.npy").write_bytes(b"nothing")
    np.save("narrow.npy", np.zeros((2, 5)))
    np.savez("other.npz", a=np.zeros(3))
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_version_and_help() -> None:
    assert fo.__version__ in run("--version").output
    for command in ("demo", "info", "solve", "solvers"):
        assert run(command, "--help").exit_code == 0
        assert command in run("--help").output


def test_solve_follows_a_homotopy(small: fo.DenseNetwork) -> None:
    options = ["--target", "all", "--homotopy", "4", "--tau", "1e-4", "--uniform"]
    result = run("solve", "net.npz", "X.npy", "--out", "flips.parquet", *options)
    assert result.exit_code == 0, result.output
    table = fo.FlipTable.load("flips.parquet")
    path = fo.Homotopy(stages=4, tau=1e-4, adaptive=False)
    expected = fo.closest_flip_points(small, np.load("X.npy"), "all", homotopy=path)
    np.testing.assert_array_equal(table.evaluations, expected.evaluations)
    np.testing.assert_allclose(table.distance, expected.distance, rtol=1e-9)


def test_solve_follows_a_homotopy_only_where_it_is_needed(small: fo.DenseNetwork) -> None:
    direct = fo.closest_flip_points(small, np.load("X.npy"), solver="ipopt")
    result = run("solve", "net.npz", "X.npy", "--out", "flips.parquet", "--homotopy", "4", "--needed")
    assert result.exit_code == 0, result.output
    table = fo.FlipTable.load("flips.parquet")
    assert direct.success.all()
    np.testing.assert_array_equal(table.evaluations, direct.evaluations)


@pytest.mark.parametrize("flag", ["--uniform", "--elu", "--needed"])
def test_options_of_a_homotopy_need_one(small: fo.DenseNetwork, flag: str) -> None:
    result = run("solve", "net.npz", "X.npy", "--out", "flips.parquet", flag)
    assert result.exit_code == 1
    assert "--homotopy: expected a number of stages" in result.output


def test_path_shows_every_stage_and_draws_it(small: fo.DenseNetwork) -> None:
    x = np.load("X.npy")[1]
    target = next(k for k in range(4) if k != small.predict(x))
    result = run("path", "net.npz", "--data", "X.npy", "--row", "1", "--target", str(target), "--out", "path.png")
    assert result.exit_code == 0, result.output
    flip = fo.closest_flip_point(small, x, target, homotopy=fo.Homotopy())
    lines = [line.split("│")[1:-1] for line in result.output.splitlines() if line.startswith("│")]
    assert [cells[0].strip() for cells in lines] == [f"{stage.t:.3f}" for stage in flip.stages]
    assert lines[-1][-1].strip() == "arrived"
    assert "CONVERGED" in result.output
    assert Path("path.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--target", "1"], "data: expected a file of points"),
        (["--target", "1", "--data", "X.npy", "--row", "7"], "--row: expected 0 to 2, found 7"),
        (["--target", "9", "--data", "X.npy"], "target: expected a class from 0 to 3, found 9"),
        (["--target", "1", "--data", "X.npy", "--tau", "2"], "tau: expected a number in (0, 1]"),
    ],
)
def test_path_says_what_is_wrong(small: fo.DenseNetwork, options: list[str], fault: str) -> None:
    result = run("path", "net.npz", *options)
    assert result.exit_code == 1
    assert fault in result.output
    assert not Path("path.png").exists()


def test_solve_proves_the_distances_of_a_relu_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    net = network(5, (2, 4, 3, 3))
    net.save("relu.npz")
    np.save("X.npy", np.random.default_rng(5).standard_normal((3, 2)))
    result = run("solve", "relu.npz", "X.npy", "--out", "flips.parquet", "--prove", "20")
    assert result.exit_code == 0, result.output
    assert "3 distances are proved" in result.output
    table = fo.FlipTable.load("flips.parquet")
    assert table.proved.all()
    proofs = fo.proofs.prove_many(net, np.load("X.npy"))
    np.testing.assert_allclose(table.distance, proofs.upper, rtol=1e-6)


def test_proofs_are_kept_beside_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network(5, (2, 4, 3, 3)).save("relu.npz")
    np.save("X.npy", np.random.default_rng(5).standard_normal((3, 2)))
    command = ("solve", "relu.npz", "X.npy", "--out", "flips.parquet", "--prove", "20", "--run", "work")
    assert run(*command).exit_code == 0
    kept = {path.name: path.read_bytes() for path in Path("work.proofs").iterdir()}
    assert any(name.endswith(".parquet") for name in kept)
    Path("flips.parquet").unlink()
    assert run(*command).exit_code == 0  # from what is kept
    assert {path.name: path.read_bytes() for path in Path("work.proofs").iterdir()} == kept
    assert fo.FlipTable.load("flips.parquet").proved.all()


def test_solve_proves_distances_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    net, X = network(5, (2, 4, 3, 3)), np.random.default_rng(5).uniform(-1, 1, (3, 2))
    net.save("relu.npz")
    np.save("X.npy", X)
    result = run("solve", "relu.npz", "X.npy", "--out", "flips.parquet", "--prove", "20", "--bounds", "-1", "1")
    assert result.exit_code == 0, result.output
    proofs = fo.proofs.prove_many(net, X, bounds=(-1, 1))
    np.testing.assert_allclose(fo.FlipTable.load("flips.parquet").lower_bound, proofs.lower, rtol=1e-6)


@pytest.mark.parametrize("options", [["--integers", "0"], ["--target", "all"], ["--norm", "1"], ["--valid"]])
def test_proofs_of_other_problems_are_refused(small: fo.DenseNetwork, options: list[str]) -> None:
    result = run("solve", "net.npz", "X.npy", "--out", "flips.parquet", "--prove", "1", *options)
    assert result.exit_code == 1
    assert "--prove: expected nearest flips in the 2-norm without" in result.output
    assert not Path("flips.parquet").exists()


@pytest.mark.parametrize("out", [["--out", "flips.csv"], ["--run", "folder"]])
def test_proofs_need_a_file_that_keeps_them(small: fo.DenseNetwork, out: list[str]) -> None:
    result = run("solve", "net.npz", "X.npy", *out, "--prove", "1")
    assert result.exit_code == 1
    assert "--prove: expected --out FILE.parquet" in result.output
    assert not Path("flips.csv").exists()


def test_proofs_of_other_networks_are_refused_before_anything_is_solved(small: fo.DenseNetwork) -> None:
    np.save("digits.npy", fo.load_shipped("mnist-fcn").X[:2])
    net = Path(__file__).parents[2] / "models" / "networks" / "mnist-cnn.onnx"
    result = run("solve", str(net), "digits.npy", "--out", "flips.parquet", "--prove", "1")
    assert result.exit_code == 1
    assert "--prove: expected a dense network" in result.output
    assert "flip points" not in result.output
