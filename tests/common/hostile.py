"""Files made by hand to do harm: a builder each, the function that loads it, and what must be said of it."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import TensorProto, helper, numpy_helper

from tools import mutants
from tools.mutants import convolutional, flips, model, outside

W = np.ones((3, 3), dtype=np.float32)
Case = tuple[Callable[[Path], Path], Callable[[Path], None], str]


def raw(name: str, data: bytes) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return build


def made(name: str, write: Callable[[Path], object]) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        write(folder / name)
        return folder / name

    return build


def node(op: str, *inputs: str, out: str = "y", **facts: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [out], name="culprit", **facts)


def graph(*nodes: onnx.NodeProto, sides: tuple[int, ...] = (3,), **constants: Any) -> Callable[[Path], Path]:
    return raw("net.onnx", model(list(nodes), {"W": W, **constants}, sides).SerializeToString())


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def archive(packing: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


def npy(shape: str, kind: str = "<f8", data: bytes = b"") -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def zeros(shape: tuple[int, ...]) -> bytes:
    """An npz with one array X of zeros, much smaller than what it unpacks to."""
    out = io.BytesIO()
    np.savez_compressed(out, X=np.zeros(shape, dtype=np.uint8))
    return out.getvalue()


def doubled() -> bytes:
    data = archive(**{"X.npy": npy("(1, 3)", data=b"\0" * 24), "Y.npy": npy("(1, 3)", data=b"\0" * 24)})
    return data.replace(b"Y.npy", b"X.npy")


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def within(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + varint(len(data)) + data


def nested(depth: int) -> bytes:
    """A graph in an attribute of a node of a graph, and so on."""
    data = b""
    for _ in range(depth):
        data = within(1, within(5, within(6, data)))
    return within(7, data)


def constant_elsewhere(folder: Path) -> Path:
    tensor = numpy_helper.from_array(W, "k")
    outside(tensor, "secret.bin", offset=0)
    nodes = [helper.make_node("Constant", [], ["k"], value=tensor), node("MatMul", "x", "k")]
    (folder / "net.onnx").write_bytes(model(nodes, {}, (3,)).SerializeToString())
    return folder / "net.onnx"


def long_name(folder: Path) -> Path:
    """Found by the fuzzer: the system refuses to look for such a file at all."""
    built = convolutional()
    outside(built.graph.initializer[0], "x" * 3000, offset=0)
    (folder / "net.onnx").write_bytes(built.SerializeToString())
    return folder / "net.onnx"


def function_elsewhere(folder: Path) -> Path:
    built = convolutional()
    tensor = numpy_helper.from_array(W, "k")
    outside(tensor, "../secret.bin", offset=0)
    inner = helper.make_node("Constant", [], ["o"], value=tensor)
    built.functions.append(helper.make_function("d", "f", [], ["o"], [inner], [helper.make_opsetid("", 17)]))
    (folder / "net.onnx").write_bytes(built.SerializeToString())
    return folder / "net.onnx"


def loop(trips: int) -> Callable[[Path], Path]:
    value = helper.make_tensor_value_info
    inputs = [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, None)]
    outputs = [value("c2", TensorProto.BOOL, []), value("v2", TensorProto.FLOAT, None)]
    body = helper.make_graph([node("Identity", "c", out="c2"), node("Sin", "v", out="v2")], "b", inputs, outputs)
    return graph(node("Loop", "n", "go", "x", body=body), n=np.array(trips), go=np.array(True))


def sparse() -> bytes:
    built = convolutional()
    built.graph.sparse_initializer.add().dims.extend([2**40, 2**40])
    return built.SerializeToString()


def shuffled_names() -> bytes:
    built = convolutional()
    built.graph.node[0].name = "\x1b[2J[red]\n" + "n" * 10**5
    built.graph.node[0].op_type = "\x1b]0;owned\x07"
    return built.SerializeToString()


def parquet(table: pa.Table, **facts: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **facts)
    return out.getvalue()


def lists(values: list[Any]) -> bytes:
    return parquet(pa.table({"x": pa.array(values)}))


def few_bytes_many_rows(rows: int) -> bytes:
    """Three columns of one number, as a dictionary and run lengths."""
    return parquet(pa.table({name: np.zeros(rows, dtype=np.int8) for name in "abc"}), row_group_size=2**26)


def changed_flips(**columns: Any) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = folder / "flips.parquet"
        flips().save(path)
        table = pq.read_table(path)
        for name, values in columns.items():
            kind = table.schema.field(name).type
            table = table.set_column(table.column_names.index(name), name, pa.array(values, kind))
        pq.write_table(table, path)
        return path

    return build


def linked_folder(folder: Path) -> Path:
    mutants.dense().save(folder / "net")
    (folder / "other.csv").write_text("0,0,0,0\n")
    (folder / "net" / "B1.csv").unlink()
    os.symlink(folder / "other.csv", folder / "net" / "B1.csv")
    return folder / "net"


network, points, table, constraints, features = (
    mutants.load_network,
    mutants.load_points,
    mutants.load_flips,
    mutants.load_constraints,
    mutants.load_features,
)
ONNX_BOMB = r"elements of .*: expected at most \d+, found \d+; FLIPOPT_MAX_BYTES=\d+ allows it"

HOSTILE: dict[str, Case] = {
    # not a plain file
    "a pipe": (made("points.csv", os.mkfifo), points, "not a file"),
    "a device": (made("points.npy", lambda path: os.symlink("/dev/zero", path)), points, "not a file"),
    "a folder": (made("points.npz", lambda path: path.mkdir()), points, "not a file"),
    "an empty file": (raw("net.onnx", b""), network, "the file is empty"),
    "a link to nowhere": (made("net.npz", lambda path: os.symlink("nowhere", path)), network, "no such file"),
    "a link in a folder": (linked_folder, network, "B1.csv: a link, which is not followed"),
    "one kind of file under the name of another": (raw("points.npy", lists([[1.0] * 3])), points, "not a readable npy"),
    # npz and npy
    "a pickle": (raw("points.npy", pickle.dumps([1, 2])), points, "not a readable npy file"),
    "a pickle in an array": (raw("points.npy", npy("(1,)", "|O", pickle.dumps(0))), points, "holds Python objects"),
    "a zip bomb": (raw("points.npz", zeros((2**20, 600))), points, "unpacks to: expected at most"),
    "small numbers that grow": (
        raw("points.npz", zeros((2**20, 100))),
        points,
        "bytes of its numbers: expected at most",
    ),
    "a shape of 2^62": (raw("points.npy", npy(f"({2**62}, 3)")), points, "claims shape"),
    "a negative shape": (raw("points.npy", npy("(-1, 3)")), points, "claims shape"),
    "text of 8 GB": (raw("points.npy", npy("(1, 3)", "<U2000000000")), points, "not a readable npy|claims shape"),
    "a header of brackets": (raw("points.npy", npy("(" * 5000)), points, "not a readable npy file"),
    "a header of deep brackets": (raw("points.npy", npy("(" * 900 + ")" * 900)), points, "not a readable npy file"),
    "a header that runs": (raw("points.npy", npy("__import__('os').abort()")), points, "not a readable npy file"),
    "letters beyond Unicode": (
        raw("f.npz", archive(**{"settings.npy": npy("()", "<U1", b"\xff" * 4)})),
        features,
        "not text",
    ),
    "members outside": (raw("p.npz", archive(**{"../X.npy": npy("(1, 3)", data=b"\0" * 24)})), points, r"found \.\./X"),
    "two members of one name": (raw("points.npz", doubled()), points, "expected one array 'X', found two"),
    "a directory of a larger zip": (
        raw("points.npz", archive(X=b"")[:-22] + b"PK\6\7" + b"\0" * 16 + archive(X=b"")[-22:]),
        points,
        "the directory of a larger one",
    ),
    "features of huge images": (
        made(
            "features.npz",
            lambda path: np.savez(
                path,
                settings=json.dumps(
                    {"format": "flipopt-wavelet-features-1", "shape": [2**30, 2**30], "wavelet": "haar"}
                    | {"level": 1, "mode": "periodization", "dimensions": 2}
                ),
                selected=np.arange(3),
            ),
        ),
        features,
        "not a WaveletFeatures file",
    ),
    # ONNX
    "a Constant with data elsewhere": (constant_elsewhere, network, "expected the file 'secret.bin' beside the model"),
    "data in a file whose name is too long": (long_name, network, "expected the file 'xxx"),
    "a function with data elsewhere": (function_elsewhere, network, "only if it is in the same folder"),
    "a loop of 2^62": (loop(2**62), network, r"\(Loop\): expected a graph without control flow.*control_flow=True"),
    "a declared width": (graph(node("Relu", "x"), sides=(2**40,)), network, ONNX_BOMB),
    "an identity of a declared width": (graph(node("Relu", "x"), sides=(30000,)), network, ""),
    "a product of small matrices": (
        graph(
            node("MatMul", "x", "a", out="t"),
            node("MatMul", "t", "b"),
            a=np.ones((3, 1), "f4"),
            b=np.ones((1, 2**27), "i1"),
        ),
        network,
        "net.onnx: .*: expected at most",
    ),
    "a product with itself": (
        graph(node("Transpose", "x", out="t", perm=[0, 2, 1]), node("MatMul", "t", "x"), sides=(1, 2**16)),
        network,
        ONNX_BOMB,
    ),
    "a sum that spreads out": (
        graph(node("Sin", "x", out="s"), node("Add", "s", "c"), sides=(1, 2**13), c=np.ones((2**15, 1), "f4")),
        network,
        ONNX_BOMB,
    ),
    "doubling thirty times": (
        graph(
            *(node("Concat", f"t{k}", f"t{k}", out=f"t{k + 1}", axis=1) for k in range(30)), node("Sin", "x", out="t0")
        ),
        network,
        "nothing before it computes|no node computes",
    ),
    "doubling in order": (
        graph(
            node("Sin", "x", out="t0"),
            *(node("Concat", f"t{k}", f"t{k}", out=f"t{k + 1}", axis=1) for k in range(40)),
            node("Identity", "t40"),
        ),
        network,
        ONNX_BOMB,
    ),
    "numbers by the billion": (
        graph(
            node("Sin", "x", out="s"),
            node("Range", "a", "b", "c", out="r"),
            node("Add", "s", "r"),
            a=ints(0)[0],
            b=ints(2**40)[0],
            c=ints(1)[0],
        ),
        network,
        ONNX_BOMB,
    ),
    "strides of 2^62": (
        graph(
            node("Conv", "x", "K", out="t", strides=[2**62, 2**62], pads=[2**61] * 4),
            node("Flatten", "t"),
            sides=(1, 4, 4),
            K=np.ones((1, 1, 1, 1), "f4"),
        ),
        network,
        ONNX_BOMB,
    ),
    "a circle": (
        graph(node("Identity", "y", out="t"), node("Identity", "t")),
        network,
        "without circles|nothing before it",
    ),
    "negative sides": (graph(node("Reshape", "x", "s"), s=ints(-5, -7)), network, r"\(Reshape\)"),
    "NaN in weights": (graph(node("MatMul", "x", "k"), k=W * np.nan), network, "k holds NaN"),
    "an unknown operator": (graph(node("Evil", "x", domain="com.evil")), network, r"node 'culprit' \(com.evil.Evil\)"),
    "sparse tensors": (raw("net.onnx", sparse()), network, "sparse tensors are not read"),
    "messages that grow a hundredfold": (raw("net.onnx", within(7, b"\x0a\x00" * 2**20)), network, "takes in memory"),
    "deep messages": (raw("net.onnx", nested(40)), network, "not an ONNX file: messages nested more than"),
    "names for a terminal": (raw("net.onnx", shuffled_names()), network, r"node '\\x1b\[2J\[red\]\\nnnn"),
    "names that are not text": (raw("net.onnx", within(7, within(1, b"\x1a\x02\xff\xfe"))), network, "is not text"),
    # Parquet
    "few bytes and many rows": (raw("points.parquet", few_bytes_many_rows(2**26)), points, "rows: expected at most"),
    "lists of nulls": (raw("points.parquet", lists([[1.0, 2.0, 3.0], None])), points, "lists of one length"),
    "lists of lists": (raw("points.parquet", lists([[[1.0]]] * 3)), points, "column 'x': expected numbers"),
    "dates": (raw("p.parquet", parquet(pa.table({"a": pa.array([0], pa.timestamp("ns"))}))), points, "found timestamp"),
    "decimals": (
        raw("p.parquet", parquet(pa.table({"a": pa.array([1]).cast(pa.decimal128(20))}))),
        points,
        "found decimal",
    ),
    "a footer of 4 GB": (raw("p.parquet", b"PAR1" + b"\xff" * 4 + b"PAR1"), points, "it has no footer"),
    "a distance of NaN": (changed_flips(distance=[np.nan, 1.0, np.nan]), table, "column distance, row 0"),
    "a negative distance": (changed_flips(distance=[-1.0, 1.0, np.nan]), table, "column distance, row 0"),
    "a class of -1": (changed_flips(i=[-1, 0, 0]), table, "column i, row 0"),
    "a class against itself": (changed_flips(i=[2, 0, 0]), table, "column j, row 0: expected a class"),
    "a negative row": (changed_flips(row=[-1, 0, 1]), table, "column row, row 0: expected 0 or more"),
    "a point of infinity": (changed_flips(x=[[np.inf, 0, 0], [0] * 3, [0] * 3]), table, "column x, row 0"),
    "a residual of NaN": (changed_flips(kkt_residual=[np.nan] * 3), table, "column kkt_residual, row 0"),
    "a row that is null": (changed_flips(row=[None, 1, 2]), table, "column row: expected int64"),
    "a status for a terminal": (changed_flips(status=["\x1b[2J", "LIMIT", "LIMIT"]), table, r"found '\\x1b\[2J'"),
    # text
    "commas without end": (raw("points.csv", b"," * (2**24 + 2)), points, "characters in a line: expected at most"),
    "NUL in a table": (raw("points.csv", b"a,b,c\n1,\x00,2\n"), points, ""),
    "UTF-16": (raw("points.csv", "a,b,c\n1,2,3\n".encode("utf-16")), points, "not a CSV file"),
    "a quote that never ends": (
        raw("points.csv", b'a,b,c\n"' + b"1," * 100000),
        points,
        "not a CSV file: field larger",
    ),
    "constraints within constraints": (raw("c.json", b"[" * 100000), constraints, "not a JSON file"),
    "an infinite coefficient": (
        raw("c.json", b'[{"coefficients": {"age": Infinity}, "lower": 0}]'),
        constraints,
        "coefficient of age: expected a finite number",
    ),
    "a number of 5000 digits": (
        raw("c.json", b'[{"coefficients": {"age": 1' + b"0" * 5000 + b"}}]"),
        constraints,
        "not a JSON",
    ),
}
"""Name to builder, loader and what the error says; nothing where the file is harmless in the end and read."""
