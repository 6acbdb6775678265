"""Files from strangers: every kind of damage gives an error that names the file and the fault."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flipopt as fo

GOOD = fo.DenseNetwork(
    [np.ones((3, 4)), np.ones((4, 2))], [np.zeros(4), np.zeros(2)], fo.Erf(np.array([1.0, 2.0, 3.0, 4.0]))
)
Break = Callable[[Path], Path]


def npz(**changes: object) -> Break:
    """A good npz with some arrays replaced, or left out (None)."""

    def write(folder: Path) -> Path:
        path = folder / "net.npz"
        GOOD.save(path)
        with np.load(path) as stored:
            arrays = {**stored, **changes}
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
        return path

    return write


def raw(name: str, content: bytes) -> Break:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def cut(name: str, keep: float) -> Break:
    """A good file with its end missing."""

    def write(folder: Path) -> Path:
        GOOD.with_activations(fo.Erf(1.0)).save(folder / name)
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * keep)])
        return folder / name

    return write


def flipped_bits(folder: Path) -> Path:
    path = npz()(folder)
    content = bytearray(path.read_bytes())
    at = content.find(b"W1.npy") + 200
    content[at : at + 20] = bytes(255 - value for value in content[at : at + 20])
    path.write_bytes(bytes(content))
    return path


def zip_of(**members: bytes) -> Break:
    def write(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "net.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(f"{name}.npy", content)
        return folder / "net.npz"

    return write


def npy_claiming(shape: str) -> bytes:
    """An npy header that promises far more data than follow it."""
    stream = BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue().replace(b"(3,)", shape.encode())


class Bomb:
    def __reduce__(self):
        return (print, ("unpickled!",))


def pickled(folder: Path) -> Path:
    np.savez(folder / "net.npz", W1=np.array([Bomb()], dtype=object), format=np.array("flipopt-network-1"))
    return folder / "net.npz"


def onnx_graph(nodes, constants: dict[str, np.ndarray], output: str = "y") -> Break:
    def write(folder: Path) -> Path:
        tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            tensors,
        )
        onnx.save(helper.make_model(graph), folder / "net.onnx")
        return folder / "net.onnx"

    return write


def external_data(folder: Path) -> Path:
    GOOD.save(folder / "net.onnx")
    model = onnx.load(folder / "net.onnx")
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    return folder / "net.onnx"


def short_tensor(folder: Path) -> Path:
    GOOD.save(folder / "net.onnx")
    model = onnx.load(folder / "net.onnx")
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-8]
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    return folder / "net.onnx"


def csv(**files: str | None) -> Break:
    """A good CSV folder with some files replaced, or removed (None)."""

    def write(folder: Path) -> Path:
        path = folder / "net"
        GOOD.with_activations(fo.Erf(1.0)).save(path)
        for name, text in files.items():
            if text is None:
                (path / f"{name}.csv").unlink()
            else:
                (path / f"{name}.csv").write_text(text)
        return path

    return write


def node(op: str, *inputs: str, out: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [out], **attributes)


W = np.ones((3, 2), dtype=np.float32)
BROKEN: dict[str, tuple[Break, str]] = {
    "missing npz": (lambda folder: folder / "net.npz", "no such file"),
    "missing onnx": (lambda folder: folder / "net.onnx", "no such file"),
    "unknown suffix": (raw("net.pkl", b"x"), "expected a .npz file, a .onnx file or a folder"),
    "empty npz": (raw("net.npz", b""), "the file is empty"),
    "empty onnx": (raw("net.onnx", b""), "the file is empty"),
    "npz of noise": (raw("net.npz", bytes(range(256)) * 4), "not a readable npz"),
    "truncated npz": (cut("net.npz", 0.6), "not a readable npz"),
    "npz with flipped bits": (flipped_bits, "npz file"),
    "npz with a pickle": (pickled, "holds Python objects"),
    "npz with a lying header": (zip_of(W1=npy_claiming("(9999999999,)")), "claims shape"),
    "npz with a hostile header": (zip_of(W1=b"\x93NUMPY\x01\x00\x10\x00__import__('os')"), "npz file"),
    "npz with a strange npy version": (zip_of(W1=b"\x93NUMPY\x09\x00" + b"\0" * 80), "version 1.0 or 2.0 of the npy"),
    "npz without format": (npz(format=None), "lacks format"),
    "npz of another format": (npz(format=np.array("other")), "expected format flipopt-network-1, found 'other'"),
    "npz without a bias": (npz(b2=None), "lacks b2"),
    "npz with a gap in its layers": (npz(W1=None, W3=np.ones((2, 2))), "lacks W1"),
    "npz with NaN": (npz(W1=np.full((3, 4), np.nan)), "W1 holds NaN or infinity"),
    "npz with infinity": (npz(b1=np.array([1, 2, 3, np.inf])), "b1 holds NaN or infinity"),
    "npz with text for weights": (npz(W1=np.array([["a", "b"]])), "expected real numbers"),
    "npz with complex weights": (npz(W1=np.ones((3, 4), dtype=complex)), "expected real numbers"),
    "npz whose layers do not fit": (npz(W2=np.ones((5, 2))), r"weights\[1\]: expected shape \(4, width\)"),
    "npz whose bias does not fit": (npz(b1=np.zeros(7)), r"biases\[0\]: expected shape \(4,\)"),
    "npz with an unknown activation": (npz(activations=np.array(["gelu"])), "unknown activation 'gelu'"),
    "npz with too many activations": (npz(activations=np.array(["erf", "erf"])), "activations: expected 1 strings"),
    "npz with numbers for activations": (npz(activations=np.array([1])), "activations: expected 1 strings"),
    "npz without sigma": (npz(parameter1=None), "erf needs parameter1"),
    "npz with a negative sigma": (npz(parameter1=np.array(-1.0)), "sigma: expected positive"),
    "npz with too many sigmas": (npz(parameter1=np.ones(9)), r"activations\[0\]: expected a parameter of shape"),
    "onnx of noise": (raw("net.onnx", b"\xff" * 300), "not an ONNX"),
    "onnx that is text": (raw("net.onnx", json.dumps({"a": 1}).encode()), "not an ONNX"),
    "truncated onnx": (cut("net.onnx", 0.7), "not an ONNX|lacks|data"),
    "onnx with data elsewhere": (external_data, "only if it is in the same folder"),
    "onnx with a short tensor": (short_tensor, "net.onnx"),
    "onnx with NaN": (onnx_graph([node("MatMul", "x", "W")], {"W": W * np.nan}), "W holds NaN"),
    "onnx with a branch from nowhere": (onnx_graph([node("Add", "x", "z")], {"W": W}), "nothing before it computes"),
    "onnx whose layers do not fit": (
        onnx_graph([node("MatMul", "x", "W", out="t"), node("MatMul", "t", "W")], {"W": W}),
        "net.onnx",
    ),
    "onnx divided by zero": (
        onnx_graph([node("MatMul", "x", "W", out="t"), node("Div", "t", "s")], {"W": W, "s": np.zeros(1, "f4")}),
        "other than 0",
    ),
    "onnx whose output is not reached": (
        onnx_graph([node("MatMul", "x", "W", out="t")], {"W": W}, output="elsewhere"),
        "no node computes the output 'elsewhere'",
    ),
    "empty folder": (lambda folder: folder, "there is no W1.csv"),
    "csv without a bias": (csv(B2=None), "B2.csv: no such file"),
    "csv without sigma": (csv(sigma=None), "sigma.csv: no such file"),
    "csv with words": (csv(W1="1,2,3,x\n"), "W1.csv: not a table of numbers"),
    "ragged csv": (csv(W1="1,2,3,4\n1,2\n"), "W1.csv: not a table of numbers"),
    "csv with nan": (csv(B1="0,0,nan,0\n"), "B1.csv: row 1, column 3 is nan"),
    "csv with a matrix for a bias": (csv(B1="1,2\n3,4\n"), "B1.csv: expected one row or one column"),
    "csv with too many sigmas": (csv(sigma="1,2,3\n"), "sigma.csv: expected 1 numbers, found 3"),
    "csv with an empty file": (csv(W2=""), "W2.csv: the file is empty"),
    "csv whose layers do not fit": (csv(W2="1,2\n"), r"weights\[1\]: expected shape"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_named_with_its_fault(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage, message = BROKEN[kind]
    path = damage(tmp_path)
    with pytest.raises(fo.FileFormatError, match=message) as caught:
        fo.load_network(path)
    assert path.name in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "unpickled" not in capsys.readouterr().out


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = npz(W1=np.zeros((300, 40)))(tmp_path)
    with np.load(path) as stored:
        np.savez_compressed(path, **stored)
    monkeypatch.setenv("FLIPOPT_MAX_BYTES", "30000")
    with pytest.raises(
        fo.FileFormatError, match=r"unpacks to: expected at most 30000, found \d+; FLIPOPT_MAX_BYTES="
    ) as caught:
        fo.load_network(path)
    monkeypatch.setenv("FLIPOPT_MAX_BYTES", str(caught.value).split("FLIPOPT_MAX_BYTES=")[1].split()[0])
    with pytest.raises(fo.FileFormatError, match="expected shape"):  # as the message says, the size is allowed now
        fo.load_network(path)


@pytest.mark.parametrize("kind", ["onnx of noise", "empty onnx", "onnx with data elsewhere", "missing onnx"])
def test_onnxruntime_is_spared_broken_files_too(kind: str, tmp_path: Path) -> None:
    damage, message = BROKEN[kind]
    with pytest.raises(fo.FileFormatError, match=message):
        fo.OnnxNetwork(damage(tmp_path))


def test_what_onnxruntime_cannot_run_is_an_error_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    GOOD.save(tmp_path / "double.onnx")  # onnxruntime has no float64 Erf
    assert fo.OnnxNetwork(tmp_path / "double.onnx").dtype == np.float64  # but torch has
    monkeypatch.setattr("flipopt.networks.onnx_network.has_torch", lambda: False)
    with pytest.raises(fo.FileFormatError, match=r"double.onnx: onnxruntime does not accept it"):
        fo.OnnxNetwork(tmp_path / "double.onnx")
