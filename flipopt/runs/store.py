"""A run on disk: a folder with a manifest and one Parquet file a finished chunk.

The manifest says what is computed, once and for all. A chunk is named by the items that it holds and the checksum of
its bytes, and is written whole or not at all; so whatever ends a process, the folder is sound, and what is missing can
be read from the names. pandas, DuckDB and Dask read the folder as it is: files that begin with _ or . are passed over.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flipopt.common.checks import optional_package
from flipopt.common.errors import FileFormatError, StorageError
from flipopt.common.writing import remove_abandoned, storing, write_synced
from flipopt.runs.fingerprint import digest, fingerprint
from flipopt.runs.locks import taken
from flipopt.runs.machine import facts

if TYPE_CHECKING:
    import pandas
    import pyarrow

MANIFEST = "_manifest.json"
FORMAT = 1
"""Of the folder; a later one that this version cannot read has another number."""
LARGEST_MANIFEST = 2**24
OPEN = 10**12 - 1
"""The total of a run of which nobody knows how long it is: the largest number that a name has room for."""
NAME = re.compile(r"([0-9]{12})-([0-9]{12})-([0-9a-f]{32})\.parquet")
ABOUT = b"flipopt.chunk"
"""Key of what a chunk says of itself, in the metadata of its schema."""


@dataclass(frozen=True)
class Chunk:
    """A finished part: its items, its file and the checksum that the file was written with."""

    part: range
    path: Path
    checksum: str

    @classmethod
    def at(cls, path: Path) -> Chunk | None:
        """From the name of a file; None if it is not that of a chunk."""
        match = NAME.fullmatch(path.name)
        return Chunk(range(int(match[1]), int(match[2])), path, match[3]) if match else None

    def read(self) -> bytes:
        """Its bytes; an error if they are not those that were written."""
        with storing(self.path):
            content = self.path.read_bytes()
        if digest(content) != self.checksum:
            raise FileFormatError(f"{self.path}: expected the checksum {self.checksum}, found {digest(content)}")
        return content

    @property
    def sound(self) -> bool:
        """Whether the file is as it was written."""
        try:
            return bool(self.read())
        except (FileFormatError, StorageError):
            return False


class Run:
    """A folder of results, whole or in the making.

    Attributes
    ----------
    folder
        Where it is.
    manifest
        ``kind`` of the results; ``what`` is computed, by name; the number of items in ``total``; the ``step`` that
        limits of chunks are multiples of; when it was ``created``, with which ``versions``.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifest = _read_manifest(self.folder)

    @classmethod
    def begin(
        cls,
        folder: str | Path,
        kind: str,
        what: Mapping[str, Any],
        total: int,
        step: int,
        otherwise: str = "choose another folder",
    ) -> Run:
        """A new run, or the one that is in the folder.

        If that is another one, an error says what differs, and what to do ``otherwise``.
        """
        folder = Path(folder)
        if not (folder / MANIFEST).exists():
            _found(folder, {"format": FORMAT, "kind": kind, "total": total, "step": step, "what": dict(what)})
        run = cls(folder)
        run._require_same(kind, what, total, otherwise)
        return run

    @property
    def total(self) -> int:
        """Items of the whole run."""
        return int(self.manifest["total"])

    @property
    def step(self) -> int:
        """Limits of chunks are multiples of it."""
        return int(self.manifest["step"])

    @property
    def lock(self) -> Path:
        """The file to be alone with while writing."""
        return self.folder / MANIFEST

    @property
    def busy(self) -> bool:
        """Whether a process works on it."""
        return taken(self.lock)

    @property
    def key(self) -> str:
        """Of what is computed: a chunk of another run has another one."""
        return fingerprint(self.manifest["kind"], self.manifest["what"])

    @property
    def chunks(self) -> list[Chunk]:
        """What is finished, in order."""
        with storing(self.folder):
            found = [Chunk.at(path) for path in sorted(self.folder.iterdir())]
        chunks: list[Chunk] = []
        for chunk in found:
            if chunk and (not chunks or chunk.part.start >= chunks[-1].part.stop) and self._fits(chunk.part):
                chunks.append(chunk)
        return chunks

    @property
    def done(self) -> int:
        """Items that are finished."""
        return sum(len(chunk.part) for chunk in self.chunks)

    @property
    def missing(self) -> list[range]:
        """Items that are not finished, in order."""
        limits = [0, *(limit for chunk in self.chunks for limit in (chunk.part.start, chunk.part.stop)), self.total]
        return [range(low, high) for low, high in zip(limits[::2], limits[1::2], strict=True) if low < high]

    def repair(self) -> list[Chunk]:
        """Delete chunks that are damaged and files that a process has left unfinished; for who holds the lock."""
        remove_abandoned(self.folder, age=0.0)
        sound = {chunk.path for chunk in self.chunks if chunk.sound}
        every = [Chunk.at(path) for path in self.folder.iterdir()]
        damaged = [chunk for chunk in every if chunk and chunk.path not in sound]
        for chunk in damaged:
            with storing(chunk.path):
                chunk.path.unlink(missing_ok=True)
        return damaged

    def add(self, part: range, table: pyarrow.Table, seconds: float) -> None:
        """Write a finished chunk, which took so many seconds of a worker."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = {"run": self.key, "seconds": round(seconds, 4), "finished": round(time.time(), 3)}
        metadata = {**(table.schema.metadata or {}), ABOUT: json.dumps(about).encode()}
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(metadata), sink)
        content = sink.getvalue().to_pybytes()
        write_synced(self.folder / f"{part.start:012d}-{part.stop:012d}-{digest(content)}.parquet", content)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pyarrow.Table]:
        """The finished chunks one after the other, checked against their checksums."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for chunk in self.chunks:
            try:
                # In this thread alone: one of Arrow's, which lets go of Python's bytes when the interpreter has
                # ended, aborts the process.
                file = pq.ParquetFile(pa.BufferReader(chunk.read()), pre_buffer=False)
                table = file.read(columns=columns, use_threads=False)
            except pa.ArrowException as error:
                raise FileFormatError(f"{chunk.path}: not a Parquet file: {error}") from error
            about = _about(table)
            if about.get("run") != self.key:
                raise FileFormatError(f"{chunk.path}: expected a chunk of this run, found one of another")
            yield table

    def to_pandas(self) -> pandas.DataFrame:
        """What is finished, as a DataFrame (needs pandas)."""
        pandas = optional_package("pandas", "bench", "to_pandas")
        frames = [table.to_pandas() for table in self.tables()]
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def counts(self, column: str) -> Counter[str]:
        """How often every value of a column is there; nothing if there is no such column."""
        found: Counter[str] = Counter()
        for table in self.tables([column]):
            found.update(table[column].to_pylist() if column in table.column_names else ())
        return found

    def pace(self) -> list[tuple[int, float, float]]:
        """Of every chunk its items, the seconds of a worker that it took, and when it was finished (Unix time)."""
        abouts = [_about(table) for table in self.tables([])]
        return [
            (len(chunk.part), float(about["seconds"]), float(about["finished"]))
            for chunk, about in zip(self.chunks, abouts, strict=True)
        ]

    def _fits(self, part: range) -> bool:
        return part.start % self.step == 0 and len(part) > 0 and part.stop <= self.total

    def _require_same(self, kind: str, what: Mapping[str, Any], total: int, otherwise: str) -> None:
        asked = json.loads(json.dumps({"kind": kind, "total": total, **what}))
        there = {"kind": self.manifest["kind"], "total": self.total, **self.manifest["what"]}
        differ = [name for name in dict.fromkeys((*there, *asked)) if there.get(name) != asked.get(name)]
        if differ:
            words = "; ".join(f"{name} is {_short(there.get(name))}, not {_short(asked.get(name))}" for name in differ)
            raise StorageError(f"{self.folder}: holds another run, whose {words}; {otherwise}")
        versions = facts()["versions"]
        if self.manifest.get("versions") != versions:
            was = set(str(self.manifest.get("versions")).split("; ")) - set(versions.split("; "))
            warnings.warn(f"{self.folder}: was begun with {', '.join(sorted(was)) or 'fewer packages'}", stacklevel=4)


def open(folder: str | Path) -> Run:  # noqa: A001
    """The run in a folder: its state, and what is finished."""
    return Run(folder)


def _found(folder: Path, about: dict[str, Any]) -> None:
    """Write the manifest of a new run, unless another process is first."""
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in folder.iterdir() if not path.name.startswith(".") and path.name != MANIFEST]
    if others:
        raise StorageError(f"{folder}: expected a run or an empty folder, found {others[0]}")
    stamp = {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "versions": facts()["versions"]}
    write_synced(folder / MANIFEST, (json.dumps(about | stamp, indent=1) + "\n").encode(), replace=False)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise StorageError(f"{folder}: expected a folder with a run, found no {MANIFEST}")
    with storing(path):
        if path.stat().st_size > LARGEST_MANIFEST:
            raise FileFormatError(f"{path}: expected at most {LARGEST_MANIFEST} bytes, found {path.stat().st_size}")
        content = path.read_bytes()
    try:
        manifest = json.loads(content)
        numbers = {name: manifest[name] for name in ("format", "total", "step")}
        sound = isinstance(manifest["kind"], str) and isinstance(manifest["what"], dict)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(f"{path}: not the manifest of a run: {type(error).__name__}") from error
    if not (sound and all(type(number) is int and number >= 0 for number in numbers.values()) and manifest["step"]):
        raise FileFormatError(f"{path}: expected a kind, what is computed, and whole numbers, found {numbers}")
    if manifest["format"] != FORMAT:
        raise FileFormatError(f"{path}: expected format {FORMAT}, found {manifest['format']}")
    return dict(manifest)


def _about(table: pyarrow.Table) -> dict[str, Any]:
    """What a chunk says of itself."""
    try:
        found = json.loads((table.schema.metadata or {}).get(ABOUT, b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
