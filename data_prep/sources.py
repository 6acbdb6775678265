"""Where the data sets are: on this machine, or at their well-known sources on the network."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from flipopt.common.errors import FileFormatError, FlipoptError, InputError
from flipopt.common.writing import atomic_path

CHUNK = 2**16


class DownloadError(FlipoptError, OSError):
    """A file could not be fetched whole; nothing was left behind."""


@dataclass(frozen=True)
class RemoteFile:
    """A file at a well-known address, and the MD5 its publishers give (integrity, not security)."""

    name: str
    url: str
    md5: str


def _idx_files(root: str, md5s: tuple[str, str, str, str]) -> tuple[RemoteFile, ...]:
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    return tuple(RemoteFile(f"{name}.gz", f"{root}/{name}.gz", md5) for name, md5 in zip(names, md5s, strict=True))


@dataclass(frozen=True)
class Source:
    """One data set: the files it needs, folders that may hold them, and where to fetch them."""

    name: str
    files: tuple[str, ...]
    remote: tuple[RemoteFile, ...]
    elsewhere: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        """The folder the data set is kept in: ${FLIPOPT_DATA:-~/.cache/flipopt}/<name>."""
        return data_root() / self.name

    def find(self) -> Path | None:
        """A folder that holds every file, or None."""
        for folder in (self.home, *self.elsewhere):
            if all((folder / file).is_file() for file in self.files):
                return folder
        return None

    def fetch(self) -> Path:
        """The folder of the files, downloaded first where they are not on this machine."""
        found = self.find()
        if found is not None:
            return found
        self.home.mkdir(parents=True, exist_ok=True)
        for remote in self.remote:
            target = self.home / remote.name
            if not target.is_file():
                download(remote, target)
            if target.name.endswith(".tar.gz"):
                unpack(target, self.files, self.home)
        return self.home


def data_root() -> Path:
    """${FLIPOPT_DATA:-~/.cache/flipopt}."""
    return Path(os.environ.get("FLIPOPT_DATA") or Path.home() / ".cache" / "flipopt")


def download(remote: RemoteFile, target: Path, timeout: float = 30.0) -> None:
    """Fetch ``remote`` to ``target``: the name appears only once the whole file is there and its MD5 is right."""
    digest = hashlib.md5(usedforsecurity=False)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    try:
        with atomic_path(target) as temporary:
            with urlopen(remote.url, timeout=timeout) as response, Progress(*columns) as progress:
                length = int(response.headers.get("Content-Length") or 0)
                task = progress.add_task(remote.name, total=length or None)
                received = 0
                with temporary.open("wb") as stream:
                    while chunk := response.read(CHUNK):
                        stream.write(chunk)
                        digest.update(chunk)
                        received += len(chunk)
                        progress.update(task, completed=received)
            if length and received != length:
                raise DownloadError(f"{remote.url}: the transfer stopped after {received} of {length} bytes")
            if digest.hexdigest() != remote.md5:
                raise DownloadError(f"{remote.url}: expected MD5 {remote.md5}, found {digest.hexdigest()}")
    except DownloadError:
        raise
    except HTTPError as error:
        error.close()
        raise DownloadError(f"{remote.url}: could not be fetched: {error}") from None
    except (URLError, OSError, ValueError) as error:
        raise DownloadError(f"{remote.url}: could not be fetched: {error}") from error


def unpack(archive: Path, files: tuple[str, ...], folder: Path) -> None:
    """Take just ``files`` out of a tar archive, each written whole or not at all."""
    try:
        with tarfile.open(archive) as tar:
            for file in files:
                member = tar.extractfile(file)
                if member is None:
                    raise FileFormatError(f"{archive}: {file} is not a file")
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                with atomic_path(folder / file) as temporary, temporary.open("wb") as stream:
                    shutil.copyfileobj(member, stream)
    except (tarfile.TarError, KeyError, EOFError, OSError) as error:
        raise FileFormatError(f"{archive}: not the expected archive: {error}") from error


MNIST = _idx_files(
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)
FASHION_MNIST = _idx_files(
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
)
CIFAR_10 = (
    RemoteFile(
        "cifar-10-binary.tar.gz",
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
    ),
)
CIFAR_FILES = tuple(
    f"cifar-10-batches-bin/{name}.bin" for name in (*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch")
)

SOURCES = {
    source.name: source
    for source in (
        Source("mnist", tuple(file.name for file in MNIST), MNIST),
        Source(
            "fashion-mnist",
            tuple(file.name for file in FASHION_MNIST),
            FASHION_MNIST,
            elsewhere=(Path("/usr/share/datasets/fashion-mnist"),),  # Debian's dataset-fashion-mnist
        ),
        Source("cifar-10", CIFAR_FILES, CIFAR_10),
    )
}


def source(name: str) -> Source:
    """The data set of that name."""
    if name not in SOURCES:
        raise InputError(f"data set: expected one of {', '.join(SOURCES)}, found {name!r}")
    return SOURCES[name]
