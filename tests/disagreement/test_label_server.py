"""The server of the page: who is let in, what is taken, and that nothing else can be had from it."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import flipopt as fo
from flipopt.cli.main import main
from flipopt.disagreement import read_labels, write_form
from flipopt.disagreement.labelling import Answers, Server, Task

IMAGES = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4)
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    answers = Answers(tmp_path / "labels.csv", len(IMAGES), 10)
    with Server(Task.of(IMAGES), answers) as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield one
        one.shutdown()
        thread.join()
    answers.close()


def asked(
    server: Server, method: str, path: str, body: bytes | str | None = None, **headers: str
) -> tuple[int, bytes, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        reply = connection.getresponse()
        return reply.status, reply.read(), dict(reply.headers)
    finally:
        connection.close()


def post(server: Server, what: str, **said: object) -> tuple[int, object]:
    status, content, _ = asked(server, "POST", f"/{server.token}/{what}", json.dumps(said), **JSON)
    return status, json.loads(content)


def test_an_answer_is_in_the_file_before_it_is_acknowledged(server: Server) -> None:
    assert post(server, "load", labeller="ann") == (200, [])
    assert post(server, "answer", labeller=" ann ", image=3, label=7, seconds=1.25) == (200, None)
    assert server.answers.path.read_text() == "labeller,image,label,seconds\nann,3,7,1.250\n"
    assert post(server, "answer", labeller="ann", image=3, label=7, seconds=2) == (200, None)
    assert post(server, "load", labeller="ann") == (200, [[3, 7]])
    status, said = post(server, "answer", labeller="ann", image=3, label=8, seconds=1)
    assert status == 409
    assert "has labelled image 3" in said["error"]
    assert post(server, "undo", labeller="ann") == (200, 3)
    assert post(server, "undo", labeller="ann") == (200, None)
    assert read_labels(server.answers.path, 5, 10).labellers == ()


def test_people_at_the_same_time_lose_nothing(server: Server) -> None:
    def person(name: str) -> None:
        for image in range(5):
            assert post(server, "answer", labeller=name, image=image, label=image, seconds=1)[0] == 200

    threads = [threading.Thread(target=person, args=(f"person {k}",)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_labels(server.answers.path, 5, 10)
    assert len(found.labellers) == 6
    found.require_complete()


@pytest.mark.parametrize(
    "said",
    [
        {"image": 5, "label": 0, "seconds": 1},
        {"image": -1, "label": 0, "seconds": 1},
        {"image": 0, "label": 10, "seconds": 1},
        {"image": 0, "label": True, "seconds": 1},
        {"image": 0, "label": "0", "seconds": 1},
        {"image": 0, "label": 0, "seconds": -1},
        {"image": 0, "label": 0, "seconds": float("nan")},
        {"image": 0, "label": 0},
        {"image": 0, "label": 0, "seconds": 1, "labeller": "=cmd"},
        {"image": 0, "label": 0, "seconds": 1, "labeller": "a\nb,0,0,0"},
        {"image": 0, "label": 0, "seconds": 1, "labeller": 3},
    ],
)
def test_an_answer_that_nobody_could_give_is_refused(server: Server, said: dict) -> None:
    status, _ = post(server, "answer", **{"labeller": "ann", **said})
    assert status == 409
    assert server.answers.count == 0


def test_only_the_whole_address_leads_anywhere(server: Server) -> None:
    token = server.token
    assert asked(server, "GET", f"/{token}/")[0] == 200
    for path in ("/", "/favicon.ico", f"/{token}", f"/{token[:-1]}/", f"/{token}x/", "/x/", f"/{token.swapcase()}/"):
        assert asked(server, "GET", path)[0] == 404, path
    assert asked(server, "POST", "/wrong/answer", "{}", **JSON)[0] == 404


def test_no_path_leads_out(server: Server) -> None:
    assert asked(server, "GET", f"/{server.token}/image/4.png")[1].startswith(b"\x89PNG")
    for path in (
        "image/5.png", "image/-1.png", "image/01.png", "image/1.png/", "image/../labels.csv", "labels.csv",
        "../labels.csv", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/labels.csv", "//etc/passwd", "page.js",
        "image/1.png?x=../..", "answer",
    ):  # fmt: skip
        status, content, _ = asked(server, "GET", f"/{server.token}/{path}")
        assert status == 404, path
        assert b"labeller" not in content


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", ""])
def test_another_host_is_refused(server: Server, host: str) -> None:
    """A page of another site whose name was made to lead here (DNS rebinding) sends its own name."""
    port = server.server_address[1]
    status, content, _ = asked(server, "GET", f"/{server.token}/", Host=host.format(port))
    assert status == 421
    assert b"<html" not in content
    assert asked(server, "GET", f"/{server.token}/", Host=f"LOCALHOST:{port}")[0] == 200


def test_no_host_and_two_hosts_are_refused(server: Server) -> None:
    good = f"Host: 127.0.0.1:{server.server_address[1]}\r\n"
    for hosts in ("", good + "Host: evil.example\r\n"):
        with socket.create_connection(server.server_address[:2], timeout=10) as connection:
            connection.sendall(f"GET /{server.token}/ HTTP/1.1\r\n{hosts}\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 400")


def test_another_sites_page_cannot_answer(server: Server) -> None:
    body = json.dumps({"labeller": "ann", "image": 0, "label": 0, "seconds": 1})
    path = f"/{server.token}/answer"
    assert asked(server, "POST", path, body, **JSON, Origin="http://evil.example")[0] == 403
    assert asked(server, "POST", path, body, **JSON, Origin="null")[0] == 403
    assert asked(server, "POST", path, body, Content_Type="text/plain")[0] == 415
    assert server.answers.count == 0
    own = f"http://127.0.0.1:{server.server_address[1]}"
    assert asked(server, "POST", path, body, **JSON, Origin=own)[0] == 200


def test_a_large_post_is_refused_and_nothing_of_it_is_read(server: Server) -> None:
    status, content, headers = asked(server, "POST", f"/{server.token}/answer", b"0" * 10_000_000, **JSON)
    assert status == 413
    assert json.loads(content)["error"] == "expected at most 1024 bytes"
    assert headers["Connection"] == "close"
    assert asked(server, "POST", f"/{server.token}/answer", b"0" * 1025, **JSON)[0] == 413
    assert asked(server, "POST", f"/{server.token}/answer", b"{", **JSON)[0] == 400
    assert asked(server, "POST", f"/{server.token}/answer", b"[" * 1000, **JSON)[0] == 400
    assert asked(server, "POST", f"/{server.token}/answer", b"3", **JSON)[0] == 400
    for length in ("-1", "1e3", "9" * 30):
        assert asked(server, "POST", f"/{server.token}/answer", b"", Content_Length=length, **JSON)[0] in (411, 413)
    chunked = {"Transfer_Encoding": "chunked", "Content_Length": "5"}
    assert asked(server, "POST", f"/{server.token}/answer", b"0\r\n\r\n", **chunked, **JSON)[0] == 411
    assert post(server, "load", labeller="ann")[0] == 200  # it is still there


def test_every_reply_has_its_headers_and_the_policy_allows_only_this_script(server: Server) -> None:
    for method, path in (
        ("GET", f"/{server.token}/"),
        ("GET", "/"),
        ("DELETE", "/"),
        ("GET", f"/{server.token}/image/0.png"),
    ):
        headers = asked(server, method, path)[2]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Server"] == "flipopt"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
    page = asked(server, "GET", f"/{server.token}/")[1].decode()
    for kind in ("script", "style"):
        (text,) = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in server.page.policy
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_a_name_of_a_class_cannot_be_a_script(tmp_path: Path) -> None:
    write_form(tmp_path / "form.html", IMAGES, ["</script><script>alert(1)</script>", "b"], question="<img src=x>")
    page = (tmp_path / "form.html").read_text()
    assert page.count("<script>") == page.count("</script>") == 1
    assert "<img src=x>" not in page


def test_all_addresses_at_once_are_refused(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "labels.csv", len(IMAGES), 10)
    for host in ("0.0.0.0", "::", ""):
        with pytest.raises(fo.InputError, match="host: expected one address"):
            Server(Task.of(IMAGES), answers, host)
    with pytest.raises(fo.StorageError, match="cannot serve at 203.0.113.1"):
        Server(Task.of(IMAGES), answers, "203.0.113.1")
    answers.close()


def test_the_command_writes_forms_and_puts_files_together(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", X=IMAGES.reshape(5, 16) / 255)
    images, run = str(tmp_path / "images.npz"), CliRunner()
    wrong = run.invoke(main, ["label", images, "--out", str(tmp_path / "labels.csv")])
    assert wrong.exit_code == 1
    assert "rows of pixels with their shape" in wrong.output
    form = run.invoke(main, ["label", images, "--shape", "4x4", "--form", str(tmp_path / "form.html")])
    assert form.exit_code == 0, form.output
    assert (tmp_path / "form.html").read_text().count("data:image/png") == 5
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.csv").write_text(f"labeller,image,label,seconds\n{name},4,1,1\n")
    parts = ["--merge", str(tmp_path / "ann.csv"), "--merge", str(tmp_path / "bob.csv")]
    merged = run.invoke(main, ["label", images, "--shape", "4x4", *parts, "--out", str(tmp_path / "all.csv")])
    assert merged.exit_code == 0, merged.output
    assert "'ann' lacks 4 images" in merged.output
    assert len(read_labels(tmp_path / "all.csv").labellers) == 2
    again = run.invoke(
        main, ["label", images, "--shape", "4x4", *parts, *parts[:2], "--out", str(tmp_path / "all.csv")]
    )
    assert again.exit_code == 1
    assert "found two" in again.output
    assert run.invoke(main, ["label", images, "--shape", "4x4"]).exit_code == 1
