"""Serving the page to this machine: a token in the address, known hosts alone, and no file but the answers."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import socket
import sys
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from flipopt.common.errors import FlipoptError, InputError, StorageError
from flipopt.disagreement.labelling.answers import Answers
from flipopt.disagreement.labelling.images import png
from flipopt.disagreement.labelling.page import Page, Task
from flipopt.disagreement.labels import Answer, as_name

LARGEST = 1024
"""Bytes of a request's body: more than any answer takes."""
LOOPBACK = ("127.0.0.1", "localhost")
LONGEST_ANSWER = 1e6
"""Seconds that count."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PICTURE = re.compile(r"image/(0|[1-9][0-9]{0,8})\.png", re.ASCII)


class RefusedError(Exception):
    """A request that is not answered, with a status and a reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Server(ThreadingHTTPServer):
    """Serves one task; answers go to one file.

    Parameters
    ----------
    task, answers
        What is asked, and where answers go.
    host, port
        An address of this machine, by default one that only it can reach; port 0: any that is free.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, task: Task, answers: Answers, host: str = "127.0.0.1", port: int = 0) -> None:
        if host in ("", "0.0.0.0", "::", "*"):
            raise InputError(f"host: expected one address of this machine, found {host!r}, which is all of them")
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.task, self.answers = task, answers
        self.page, self.token = Page.served(task), secrets.token_urlsafe(16)
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise StorageError(f"host: cannot serve at {host}, port {port}: {error}") from error
        names = {host, *(LOOPBACK if host in LOOPBACK else ())}
        bound = self.server_address[1]
        self.hosts = {f"[{name}]:{bound}" if ":" in name else f"{name}:{bound}" for name in names}
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{bound}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off is no news; whoever asked asks again."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One request. Nothing of it is ever a path of the file system."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 20

    def do_GET(self) -> None:
        self._reply(self._get)

    def do_POST(self) -> None:
        self._reply(self._post)

    def _reply(self, act: Any) -> None:
        try:
            what = self._checked()
            self._send(HTTPStatus.OK, *act(what))
        except RefusedError as refusal:
            self.close_connection = True
            self._send(refusal.status, "application/json", json.dumps({"error": refusal.reason}).encode())
            self._drain()

    def _checked(self) -> str:
        """What is asked for, below the token; refuses whoever does not know it, or came by another name."""
        if self.headers.get_all("Host") is None or self.headers.get_all("Host") != [self.headers["Host"]]:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "expected one Host header")
        if self.headers["Host"].lower() not in self.server.hosts:
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "unknown host")
        origin = self.headers["Origin"]
        if origin is not None and urlsplit(origin)[:2] != ("http", self.headers["Host"].lower()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "unknown origin")
        token, slash, what = self.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()) or not slash:
            raise RefusedError(HTTPStatus.NOT_FOUND, "nothing here: use the whole address that flipopt label shows")
        return what

    def _get(self, what: str) -> tuple[str, bytes]:
        if what == "":
            return "text/html; charset=utf-8", self.server.page.html.encode()
        if (match := PICTURE.fullmatch(what)) and int(match[1]) < len(self.server.task.images):
            return "image/png", png(self.server.task.images[int(match[1])])
        raise RefusedError(HTTPStatus.NOT_FOUND, "nothing here")

    def _post(self, what: str) -> tuple[str, bytes]:
        if what not in ("load", "answer", "undo"):
            raise RefusedError(HTTPStatus.NOT_FOUND, "nothing here")
        said = self._body()
        try:
            labeller = as_name(_field(said, "labeller", str), "labeller")
            if what == "load":
                found: Any = [answer[1:3] for answer in self.server.answers.of(labeller)]
            elif what == "undo":
                undone = self.server.answers.undo(labeller)
                found = undone and undone.image
            else:
                self.server.answers.add(self._answer(labeller, said))
                found = None
        except StorageError as error:
            raise RefusedError(HTTPStatus.INSUFFICIENT_STORAGE, f"The answer could not be kept: {error}") from error
        except FlipoptError as error:
            raise RefusedError(HTTPStatus.CONFLICT, str(error)) from error
        return "application/json", json.dumps(found).encode()

    def _answer(self, labeller: str, said: dict[str, Any]) -> Answer:
        task, seconds = self.server.task, _field(said, "seconds", int | float)
        if not 0 <= seconds <= LONGEST_ANSWER:
            raise InputError("seconds: expected a number of seconds")
        image, label = _field(said, "image", int), _field(said, "label", int)
        if not (0 <= image < len(task.images) and 0 <= label < len(task.classes)):
            raise InputError("image, label: expected one of those on the page")
        return Answer(labeller, image, label, float(seconds))

    def _body(self) -> dict[str, Any]:
        """The JSON of a request: short, and of a kind that no other site's form can send."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "expected a Content-Length")
        if len(length) > 9 or int(length) > LARGEST:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {LARGEST} bytes")
        if self.headers.get_content_type() != "application/json":
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        try:
            said = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "expected JSON") from error
        if not isinstance(said, dict):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        return said

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", f"{self.server.page.policy}; frame-ancestors 'none'")
        super().end_headers()

    def _drain(self) -> None:
        """Let a refusal arrive: what is still being sent is thrown away for a moment, as else the connection breaks."""
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(0.5)
        until = time.monotonic() + 2
        while time.monotonic() < until and self.rfile.read1(2**16):
            pass

    def version_string(self) -> str:
        return "flipopt"

    def log_message(self, *arguments: Any) -> None:
        """Nothing: addresses hold the token."""


def _field(said: dict[str, Any], name: str, kind: Any) -> Any:
    value = said.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{name}: expected another value")
    return value
