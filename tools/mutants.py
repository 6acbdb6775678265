"""Files of every kind that flipopt reads, and mutants of them: bytes changed at random, or parts of their structure."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import TensorProto, helper, numpy_helper

import flipopt as fo
from flipopt.cli.tabular import read_constraints
from flipopt.common.point_files import read_table
from flipopt.features.wavelets import WaveletFeatures, WaveletTransform
from flipopt.problem import Evaluations

NAMES = ("age", "height", "income")
EXTREMES = (0, 1, -1, 2, 127, 255, 2**15, 2**31 - 1, 2**31, 2**32, 2**62, -(2**63), 2**63 - 1)
FLOATS = (0.0, -0.0, 1e-300, 1e38, -1e38, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    ".",
    "..",
    "../secret.bin",
    "secret.bin",
    "/etc/passwd",
    "\x1b[31mred\x1b[0m\n[bold]",
    "x" * 3000,
    "y",
    "\0",
    "é",
)
OPERATORS = """
    Identity Loop If Scan Tile Expand ConstantOfShape Range Resize Pad Einsum Gather Concat Reshape Transpose Split
    Slice Conv ConvTranspose MaxPool AveragePool Gemm MatMul Softmax Cast Where Pow Div Log Sqrt Clip PRelu Elu Squeeze
    BatchNormalization LayerNormalization ReduceSum Unsqueeze Shape Flatten Dropout Constant ZipMap Scaler
    LinearClassifier Nonsense
""".split()  # noqa: SIM905
Rng = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """How a good file is made in a folder (its path), how it is loaded, and how its structure may be mutated."""

    build: Callable[[Path], Path]
    load: Callable[[Path], Any]
    mutate: Callable[[bytes, Rng], bytes]


def dense() -> fo.DenseNetwork:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (4, 3))]
    return fo.DenseNetwork(weights, [np.zeros(4, np.float32), np.zeros(3, np.float32)], fo.Erf(1.5))


def _saved(name: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        dense().save(folder / name)
        return folder / name

    return build


def model(nodes: list[onnx.NodeProto], constants: dict[str, Any], sides: tuple[int, ...]) -> onnx.ModelProto:
    """A graph from x (batch, *sides) to y."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *sides])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def convolutional() -> onnx.ModelProto:
    """As torch exports a small convolutional network: Conv, Relu, MaxPool, Reshape, Gemm."""
    rng = np.random.default_rng(1)
    K, W = rng.normal(size=(2, 1, 3, 3)).astype(np.float32), rng.normal(size=(3, 8)).astype(np.float32)
    nodes = [
        helper.make_node(
            "Conv", ["x", "K", "k"], ["c"], "conv", pads=[1, 1, 1, 1], strides=[1, 1], kernel_shape=[3, 3]
        ),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([-1, 8]))),
        helper.make_node("Reshape", ["p", "s"], ["f"], "reshape"),
        helper.make_node("Gemm", ["f", "W", "w"], ["y"], "gemm", transB=1),
    ]
    return model(nodes, {"K": K, "k": np.zeros(2, np.float32), "W": W, "w": np.zeros(3, np.float32)}, (1, 4, 4))


def classical() -> onnx.ModelProto:
    """As skl2onnx writes a scaled support vector machine."""
    facts: dict[str, Any] = {"classlabels_ints": [0, 1], "vectors_per_class": [1, 2], "coefficients": [1.0, -0.5, -0.5]}
    facts |= {"support_vectors": [0.1, 0.2, 0.3, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0], "rho": [0.1], "kernel_type": "RBF"}
    facts |= {"kernel_params": [0.5, 0.0, 3.0], "post_transform": "NONE", "domain": "ai.onnx.ml"}
    scaler = {"offset": [0.5, 0.5, 0.5], "scale": [2.0, 2.0, 2.0], "domain": "ai.onnx.ml"}
    nodes = [
        helper.make_node("Scaler", ["x"], ["t"], "scale", **scaler),
        helper.make_node("SVMClassifier", ["t"], ["label", "y"], "svm", **facts),
    ]
    return model(nodes, {}, (3,))


def _onnx(build: Callable[[], onnx.ModelProto]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "net.onnx").write_bytes(build().SerializeToString())
        return folder / "net.onnx"

    return write


def outside(tensor: onnx.TensorProto, location: str, **facts: object) -> None:
    """Have the data of a tensor lie in another file."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **facts}.items():
        tensor.external_data.add(key=key, value=str(value))


def _external(folder: Path) -> Path:
    built = convolutional()
    (folder / "weights.bin").write_bytes(built.graph.initializer[0].raw_data)
    outside(built.graph.initializer[0], "weights.bin", offset=0, length=72)
    (folder / "net.onnx").write_bytes(built.SerializeToString())
    return folder / "net.onnx"


def flips() -> fo.FlipTable:
    x = np.array([1.0, 2.0, 3.0])
    ends = [(1.0, fo.Status.CONVERGED), (2.0, fo.Status.ON_BOUNDARY), (np.nan, fo.Status.LIMIT)]
    found = [fo.FlipResult(x, d, (0, 2), s, "as told", None, Evaluations(5, 4), 3, 0.5, "ipopt") for d, s in ends]
    table = fo.FlipTable.of([0, 1, 2], found, 3)
    object.__setattr__(table, "kkt_residual", np.array([1e-9, 1e-3, np.nan]))
    object.__setattr__(table, "boundary_gap", np.array([0.0, 0.0, np.nan]))
    return table


def _flips(folder: Path) -> Path:
    flips().save(folder / "flips.parquet")
    return folder / "flips.parquet"


X = np.random.default_rng(2).normal(size=(20, 3))


def _points(suffix: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = folder / f"points{suffix}"
        match suffix:
            case ".npy":
                np.save(path, X)
            case ".npz":
                np.savez_compressed(path, X=X, labels=np.arange(20))
            case ".csv":
                lines = [",".join(NAMES), *(",".join(f"{value:.6g}" for value in row) for row in X)]
                path.write_text("\n".join(lines) + "\n")
            case _:
                columns = {name: X[:, k] for k, name in enumerate(NAMES)}
                pq.write_table(pa.table(columns | {"income": X[:, 2].astype(np.int32)}), path)
        return path

    return build


def _lists(folder: Path) -> Path:
    pq.write_table(pa.table({"x": list(X), "label": np.arange(20)}), folder / "lists.parquet", compression="zstd")
    return folder / "lists.parquet"


def _constraints(folder: Path) -> Path:
    entries = [{"coefficients": {"age": 1.0, "height": -2.5}, "lower": 0}, {"coefficients": {"2": 1}, "upper": 1e3}]
    (folder / "constraints.json").write_text(json.dumps(entries))
    return folder / "constraints.json"


def _features(folder: Path) -> Path:
    WaveletFeatures(WaveletTransform((4, 4), "haar", 1, "periodization", 2), np.arange(6)).save(folder / "features.npz")
    return folder / "features.npz"


def load_network(path: Path) -> None:
    """Raise unless a network is read whose parameters are finite and whose logits have its shape."""
    network = fo.load_network(path)
    if isinstance(network, fo.DenseNetwork):
        require(all(np.isfinite(array).all() for array in (*network.weights, *network.biases)), "finite weights")
    if network.n_inputs <= 10**6:
        Y = network.logits(np.full((2, network.n_inputs), 0.5))
        require(Y.shape == (2, network.n_classes) and network.n_classes > 1, f"logits of its classes, found {Y.shape}")


def load_flips(path: Path) -> None:
    """Raise unless the entries of a table make sense."""
    table = fo.FlipTable.load(path)
    there = np.array([status in (fo.Status.CONVERGED, fo.Status.ON_BOUNDARY) for status in table.status], dtype=bool)
    require(np.isfinite(table.distance[there]).all() and (table.distance[there] >= 0).all(), "distances")
    require(
        np.isfinite(table.x[there]).all() and (table.classes[there] >= 0).all() and (table.row >= 0).all(), "points"
    )
    require(np.isfinite(table.kkt_residual[table.success]).all(), "residuals")
    require(table.x.shape[0] == len(table), "rows")


def load_points(path: Path) -> None:
    """Raise unless points are read."""
    points, names = read_table(path, 3)
    require(points.ndim == 2 and points.shape[1] == 3 == len(names) and points.dtype == np.float64, "points")


def load_constraints(path: Path) -> None:
    """Raise unless finite coefficients are read."""
    require(bool(np.isfinite(read_constraints(path, NAMES).A).all()), "finite coefficients")


def load_features(path: Path) -> None:
    """Raise unless features of an image are read."""
    features = WaveletFeatures.load(path)
    require(features.selected.ndim == 1 and features.n_features > 0, "features")


def require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"expected {what}")


def mutate_bytes(data: bytes, rng: Rng) -> bytes:
    """Up to four changes of bytes: flipped, cut, doubled, moved, or set to an extreme number."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        if not changed:
            break
        at, length = int(rng.integers(len(changed))), int(2 ** rng.uniform(0, 8))
        match rng.integers(7):
            case 0:
                changed[at] ^= 1 << int(rng.integers(8))
            case 1:
                changed[at] = int(rng.choice([0, 1, 127, 128, 255]))
            case 2:
                del changed[at : at + length]
            case 3:
                changed = changed[: max(1, at)] if rng.random() < 0.3 else changed
            case 4:
                changed[at:at] = changed[at : at + length] * int(rng.integers(1, 4))
            case 5:
                other = int(rng.integers(len(changed)))
                changed[at : at + length] = changed[other : other + length]
            case 6:
                number = int(rng.choice(np.array(EXTREMES, dtype=object))) % 2**64
                size = int(rng.choice([1, 2, 4, 8]))
                changed[at : at + size] = struct.pack("<Q", number)[:size]
    return bytes(changed)


def mutate_zip(data: bytes, rng: Rng) -> bytes:
    """A member changed, doubled, renamed, left out or replaced, in an archive that is whole again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    k = int(rng.integers(len(members)))
    name, content = members[k]
    match rng.integers(6):
        case 0:
            members[k] = (name, mutate_bytes(content, rng))
        case 1:
            members[k] = (name, mutate_npy(content, rng))
        case 2:
            members.append((name, mutate_npy(content, rng)))
        case 3:
            members[k] = (str(rng.choice(TEXTS)).replace("\0", "_") + ".npy", content)
        case 4:
            del members[k]
        case 5:
            members[k] = (name, members[int(rng.integers(len(members)))][1])
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]))
    ) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def mutate_npy(data: bytes, rng: Rng) -> bytes:
    """A header that says something else, or numbers that are extreme."""
    if rng.random() < 0.3 and len(data) > 136:
        at = 128 + 8 * int(rng.integers((len(data) - 128) // 8))
        return data[:at] + struct.pack("<d", rng.choice(FLOATS)) + data[at + 8 :]
    side = int(rng.choice(np.array(EXTREMES, dtype=object)))
    shapes = ("()", "(3,)", f"({side},)", f"(3, {side})", "(" * 300 + ")" * 300, "(True, 2)", "'x'", "(0, 5)", "(2.5,)")
    kinds = (
        "<f8",
        "<f4",
        ">f8",
        "|O",
        "<U4",
        "<c16",
        "|V7",
        "<M8[ns]",
        "|S0",
        "<f2",
        "|b1",
        "<i8",
        "nonsense",
        "<U2000000000",
    )
    fact = f"{{'descr': '{rng.choice(kinds)}', 'fortran_order': {rng.choice(['True', 'False', '7'])}, "
    header = (fact + f"'shape': {rng.choice(shapes)}, }}").encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) % 2**16) + header + data[128:]


def mutate_model(data: bytes, rng: Rng) -> bytes:
    """Up to three fields of messages anywhere in a model changed."""
    changed = onnx.ModelProto()
    changed.ParseFromString(data)
    for _ in range(rng.integers(1, 4)):
        messages = _messages(changed)
        message = messages[int(rng.integers(len(messages)))]
        if isinstance(message, TensorProto) and rng.random() < 0.3:
            outside(message, str(rng.choice(TEXTS)), offset=rng.choice(np.array(EXTREMES, dtype=object)))
            continue
        if isinstance(message, onnx.NodeProto) and rng.random() < 0.3:
            message.op_type = str(rng.choice(OPERATORS))
            continue
        fields = list(message.DESCRIPTOR.fields)
        _change(message, fields[int(rng.integers(len(fields)))], rng)
    return bytes(changed.SerializeToString())


def _messages(message: Any) -> list[Any]:
    found = [message]
    for field, value in message.ListFields():
        if field.message_type:
            for inner in value if hasattr(value, "__len__") else [value]:
                found += _messages(inner)
    return found


def _change(message: Any, field: Any, rng: Rng) -> None:
    """Change a field: an entry of a list is left out, doubled or replaced; a value becomes extreme."""
    value = getattr(message, field.name)
    if hasattr(value, "__len__") and not isinstance(value, str | bytes):
        k = int(rng.integers(len(value))) if len(value) else 0
        if field.message_type:
            if len(value) and rng.random() < 0.5:
                del value[k]
            else:
                value.add().CopyFrom(value[k]) if len(value) else value.add()
        elif len(value) and rng.random() < 0.3:
            del value[k]
        elif len(value) and rng.random() < 0.5:
            value[k] = _other(field, value[k], rng)
        else:
            value.append(_other(field, None, rng))
    elif field.message_type:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _other(field, value, rng))


def _other(field: Any, value: Any, rng: Rng) -> Any:
    if field.type == field.TYPE_BYTES:
        return mutate_bytes(value, rng) if value else b"\xff\xfe"
    if field.type == field.TYPE_STRING:
        return str(rng.choice([*TEXTS, "x", "K", "c", "t", "W"]))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return float(rng.choice(FLOATS))
    if field.type == field.TYPE_ENUM:
        return int(rng.choice([entry.number for entry in field.enum_type.values]))
    number = int(rng.choice(np.array(EXTREMES, dtype=object)))
    return number if field.type in (field.TYPE_INT64, field.TYPE_UINT64) and number >= 0 else number % 2**31


def mutate_parquet(data: bytes, rng: Rng) -> bytes:
    """A column of other types, with nulls, left out or renamed; or bytes of the footer and of the pages' headers."""
    if rng.random() < 0.5:
        at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        return data[:at] + mutate_bytes(data[at:-8], rng) + data[-8:]
    table = pq.read_table(io.BytesIO(data))
    k = int(rng.integers(table.num_columns))
    name, rows = table.column_names[k], len(table)
    numbers = pa.array(rng.choice(FLOATS, size=rows))
    columns = [
        numbers,
        pa.array([None] * rows, pa.float64()),
        pa.array([-1] * rows),
        pa.array([2**63 + 1] * rows, pa.uint64()),
        pa.array(["\x1b[2J"] * rows),
        pa.array([[1.0] * (j % 3) for j in range(rows)]),
        pa.array([[1.0, None, 2.0]] * rows),
        pa.array([[[1.0]]] * rows),
        pa.array([{"a": 1.0}] * rows),
        pa.array([b"\xff"] * rows),
        pa.array([True] * rows),
        numbers.cast(pa.float16()),
        pa.array(["a"] * rows).dictionary_encode(),
        pa.array([0] * rows, pa.timestamp("ns")),
        pa.array([1] * rows).cast(pa.decimal128(20)),
        pa.array(["CONVERGED"] * rows),
    ]
    match rng.integers(3):
        case 0 | 1:
            table = table.set_column(k, name, columns[int(rng.integers(len(columns)))])
        case 2:
            table = table.rename_columns(
                [str(rng.choice(TEXTS[6:])) if j == k else n for j, n in enumerate(table.column_names)]
            )
    out = io.BytesIO()
    pq.write_table(
        table,
        out,
        compression=str(rng.choice(["none", "snappy", "gzip", "zstd"])),
        use_dictionary=bool(rng.integers(2)),
    )
    return out.getvalue()


def mutate_text(data: bytes, rng: Rng) -> bytes:
    """Pieces of text put in or in place of others."""
    words = b""", " : { } ] # nan inf 1e999 -1e308 null true 0x10 1_0 age lower""".split()
    pieces = [
        *words,
        b"\n",
        b"\r",
        b"\0",
        b"\x1b[31m",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"[" * 2000,
        b"9" * 5000,
        b"," * 5000,
    ]
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at, length = int(rng.integers(len(changed) + 1)), int(rng.integers(0, 8))
        changed[at : at + length] = pieces[int(rng.integers(len(pieces)))]
    return bytes(changed)


KINDS: dict[str, Kind] = {
    "network .npz": Kind(_saved("net.npz"), load_network, mutate_zip),
    "network .onnx, dense": Kind(_saved("net.onnx"), load_network, mutate_model),
    "network .onnx, convolutional": Kind(_onnx(convolutional), load_network, mutate_model),
    "network .onnx, support vectors": Kind(_onnx(classical), load_network, mutate_model),
    "network .onnx, data beside it": Kind(_external, load_network, mutate_model),
    "network folder of .csv": Kind(_saved("net"), load_network, mutate_text),
    "flip points .parquet": Kind(_flips, load_flips, mutate_parquet),
    "points .parquet, columns": Kind(_points(".parquet"), load_points, mutate_parquet),
    "points .parquet, lists": Kind(_lists, load_points, mutate_parquet),
    "points .npz": Kind(_points(".npz"), load_points, mutate_zip),
    "points .npy": Kind(_points(".npy"), load_points, mutate_npy),
    "points .csv": Kind(_points(".csv"), load_points, mutate_text),
    "constraints .json": Kind(_constraints, load_constraints, mutate_text),
    "wavelet features .npz": Kind(_features, load_features, mutate_zip),
}


def mutant(kind: Kind, folder: Path, rng: Rng) -> Path:
    """A good file of a kind in ``folder``, one of whose files is then changed: half of the time its bytes alone."""
    path = kind.build(folder)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    chosen = files[int(rng.integers(len(files)))]
    change = mutate_bytes if rng.random() < 0.5 else kind.mutate
    chosen.write_bytes(change(chosen.read_bytes(), rng))
    return path
