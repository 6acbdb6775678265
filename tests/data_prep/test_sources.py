from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from data_prep.sources import SOURCES, DownloadError, RemoteFile, Source, download, source, unpack
from flipopt.common.errors import FileFormatError, InputError

CONTENT = bytes(range(256)) * 2000
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT whole, corrupted or cut off, by the name asked for."""

    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.path == "/corrupted":
            self.wfile.write(CONTENT[:-1] + b"?")
        elif self.path == "/interrupted":
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
        else:
            self.wfile.write(CONTENT)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()
    thread.join()


def test_a_whole_file_arrives(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    download(RemoteFile("f.gz", f"{server}/whole", MD5), tmp_path / "f.gz")
    assert (tmp_path / "f.gz").read_bytes() == CONTENT
    assert "f.gz" in capsys.readouterr().out  # the progress bar


@pytest.mark.parametrize(
    ("path", "message"),
    [("corrupted", "expected MD5"), ("interrupted", "stopped after|could not be fetched"), ("missing", "404")],
)
def test_a_failed_transfer_leaves_nothing_behind(server: str, path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(b"old")
    with pytest.raises(DownloadError, match=message) as caught:
        download(RemoteFile("f.gz", f"{server}/{path}", MD5), tmp_path / "f.gz")
    assert path in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["f.gz"]
    assert (tmp_path / "f.gz").read_bytes() == b"old"


def test_no_server_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="could not be fetched"):
        download(RemoteFile("f", "http://127.0.0.1:9/f", MD5), tmp_path / "f", timeout=2)
    assert not list(tmp_path.iterdir())


def test_files_on_the_machine_are_found_and_the_rest_is_fetched(server, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FLIPOPT_DATA", str(tmp_path / "cache"))
    elsewhere = tmp_path / "elsewhere"
    remote = RemoteFile("a", f"{server}/a", MD5)
    assert Source("toy", ("a",), (remote,)).find() is None
    assert Source("toy", ("a",), (remote,)).fetch() == tmp_path / "cache" / "toy"
    assert (tmp_path / "cache" / "toy" / "a").read_bytes() == CONTENT
    elsewhere.mkdir()
    (elsewhere / "b").write_bytes(b"b")
    assert Source("other", ("b",), (), (elsewhere,)).fetch() == elsewhere


def test_an_archive_gives_up_only_the_files_asked_for(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("in/wanted", "in/other", "../escape"):
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
    unpack(archive, ("in/wanted",), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == ["wanted"]
    with pytest.raises(FileFormatError, match="not the expected archive"):
        unpack(archive, ("in/absent",), tmp_path / "out")
    archive.write_bytes(archive.read_bytes()[:40])
    with pytest.raises(FileFormatError, match="not the expected archive"):
        unpack(archive, ("in/wanted",), tmp_path / "out")


def test_every_source_is_complete_and_an_unknown_one_is_named() -> None:
    assert set(SOURCES) == {"mnist", "fashion-mnist", "cifar-10"}
    for entry in SOURCES.values():
        assert entry.remote
        assert all(len(remote.md5) == 32 and "://" in remote.url for remote in entry.remote)
    with pytest.raises(InputError, match="data set: expected one of mnist"):
        source("imagenet")
