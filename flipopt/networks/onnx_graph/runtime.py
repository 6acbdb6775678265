"""Forward passes of a graph by onnxruntime."""

from __future__ import annotations

import threading
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.limits import limits
from flipopt.common.quoting import brief, listed
from flipopt.networks.onnx_graph.scores import Head

_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16"}
SECONDS = 5.0
"""Longest trial of a graph."""
FEW = 64
"""Rows that go to a session with one thread together: what small convolutions make of more leaves the core's cache
(``python -m benchmarks bisection``)."""


class Runtime:
    """A session that gives the named tensors of a model; a fixed batch is filled up with copies of the last row.

    Nothing is computed when the session is made. ``trial`` limits its memory and the time of a run; ``threads`` are its
    own, as many as there are cores where it is 0. One thread takes FEW rows at a time.
    """

    def __init__(
        self,
        path: Path,
        model: onnx.ModelProto,
        names: list[str],
        batch: int | None,
        trial: bool = False,
        threads: int = 0,
    ) -> None:
        import onnxruntime

        self.path, self.names, self.batch, self.trial = path, names, batch, trial
        self.most = FEW if threads == 1 else None
        shown = onnx.ModelProto()
        shown.CopyFrom(model)
        known = {value.name: value for value in shown.graph.output}
        wanted = [known.get(name, onnx.ValueInfoProto(name=name)) for name in dict.fromkeys(names)]
        del shown.graph.output[:]
        shown.graph.output.extend(wanted)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        if trial:
            _require_cap()
            options.add_session_config_entry("session.use_env_allocators", "1")
        try:
            self.session = onnxruntime.InferenceSession(
                shown.SerializeToString(),
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=["ConstantFolding"],  # which would run parts of the graph here
            )
        except Exception as error:  # onnxruntime's errors have no common base
            raise FileFormatError(f"{path}: onnxruntime does not accept it: {brief(error)}") from error
        declared = self.session.get_inputs()
        if len(declared) != 1 or declared[0].type not in _DTYPES:
            found = listed(value.type for value in declared) or "none"
            raise FileFormatError(f"{path}: expected an input of float32 or float64, found {found}")
        self.input, self.dtype = declared[0].name, np.dtype(_DTYPES[declared[0].type])

    @classmethod
    def tried(
        cls, path: Path, model: onnx.ModelProto, names: list[str], batch: int | None, rows: Array, threads: int = 0
    ) -> tuple[Runtime, list[Array]]:
        """A session whose graph took little memory and time on a few ``rows``, and what it gave for them."""
        values = cls(path, model, names, batch, trial=True)(rows)
        return cls(path, model, names, batch, threads=threads), values

    def __call__(self, X: Array) -> list[Array]:
        """The tensors at X (rows, ...)."""
        points = np.ascontiguousarray(X, dtype=self.dtype)
        size = self.batch or self.most or len(points)
        if self.batch is None and size >= len(points):
            return self._run(points)
        run = self._run if self.batch is None else self._filled
        parts = [run(points[k : k + size]) for k in range(0, len(points), size)]
        return [np.concatenate(rows) for rows in zip(*parts, strict=True)]

    def _filled(self, points: Array) -> list[Array]:
        missing = (self.batch or 0) - len(points)
        whole = np.concatenate([points, np.repeat(points[-1:], missing, axis=0)])
        return [array[: len(points)] for array in self._run(whole)]

    def _run(self, points: Array) -> list[Array]:
        import onnxruntime

        options = onnxruntime.RunOptions()
        options.only_execute_path_to_fetches = True
        clock = threading.Timer(SECONDS, setattr, (options, "terminate", True)) if self.trial else None
        try:
            if clock:
                clock.start()
            return [np.asarray(array) for array in self.session.run(self.names, {self.input: points}, options)]
        except Exception as error:  # onnxruntime's errors have no common base
            late = f"it took more than {SECONDS:.0f} s; " if options.terminate else ""
            raise FileFormatError(f"{self.path}: onnxruntime could not evaluate it: {late}{brief(error)}") from error
        finally:
            if clock:
                clock.cancel()


@cache
def _require_cap() -> None:
    """Limit the memory of all sessions of this process that ask for the common allocator: those of trials."""
    import onnxruntime

    arena = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    place = onnxruntime.OrtMemoryInfo("Cpu", arena, 0, onnxruntime.OrtMemType.DEFAULT)
    size = {"max_mem": limits().size, "arena_extend_strategy": 1}
    onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(size))


def logits(head: Head, Y: Array) -> Array:
    """The scores Y (batch, ...) as logits (batch, classes), as :func:`flipopt.networks.onnx_graph.module.logits`."""
    Y = Y.reshape(len(Y), -1)
    match head:
        case "column":
            return np.column_stack([np.zeros(len(Y), Y.dtype), Y[:, -1]])
        case "log":
            return np.asarray(np.log(Y + np.finfo(Y.dtype).tiny))
        case "log_sigmoid":
            return np.asarray(-np.logaddexp(0, -Y))
        case "pairwise" if Y.shape[1] == 2:
            return np.column_stack([np.zeros(len(Y), Y.dtype), Y[:, 0]])
        case "pairwise":
            classes = round((1 + np.sqrt(1 + 8 * Y.shape[1])) / 2)
            own = np.full((len(Y), classes, classes), np.inf, dtype=Y.dtype)
            for p, (i, j) in enumerate(combinations(range(classes), 2)):
                own[:, i, j], own[:, j, i] = Y[:, p], -Y[:, p]
            return np.asarray(own.min(axis=2))
    return Y
