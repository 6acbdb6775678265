"""A real browser, led as a person would lead it: keys, clicks, reloads and a look at the page.

It is spoken to by the DevTools protocol over a pair of pipes, which needs no package and opens no port.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser import BROWSER

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
SECONDS = 30.0
SPECIAL = {"Backspace": 8, "Enter": 13}


class Tab:
    """One page of a browser."""

    def __init__(self, asked: int, said: int) -> None:
        self._asked, self._said, self._buffer, self._number = asked, said, b"", 0
        self._session = ""
        self.faults: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The browser's answer; errors of the page that it tells of meanwhile are kept."""
        number = self._send(method, parameters)
        while True:
            told = self._next()
            if told.get("id") == number:
                assert "error" not in told, told
                return dict(told["result"])
            if told.get("method") == "Page.javascriptDialogOpening":  # is this page to be left?
                self._send("Page.handleJavaScriptDialog", {"accept": True})
            if told.get("method") == "Runtime.exceptionThrown":
                self.faults.append(str(told["params"]["exceptionDetails"].get("exception", {}).get("description")))
            if told.get("method") == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.faults.append(told["params"]["entry"]["text"])

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._asked, json.dumps(message).encode() + b"\0")
        return self._number

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._said], [], [], SECONDS)[0], "the browser does not reply"
            part = os.read(self._said, 2**16)
            assert part, "the browser has gone"
            self._buffer += part
        first, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(first))

    def open(self, address: str) -> None:
        """Go there, and wait until the page is loaded."""
        self.ask("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def reload(self) -> None:
        self.run("window.before = true")
        self.ask("Page.reload")
        self.wait("document.readyState === 'complete' && !window.before")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true."""
        until = time.monotonic() + SECONDS
        while not self.run(condition):
            assert time.monotonic() < until, f"{condition} never became true; {self.run('document.body.innerText')}"
            time.sleep(0.005)

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """A key, down and up."""
        code = SPECIAL.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of it."""
        box = self.run(f"(({selector_box})({json.dumps(selector)}))")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def size(self, width: int, height: int, phone: bool = False) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def look(self, path: Path) -> None:
        """A picture of the page."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


selector_box = """(selector) => {
  const one = document.querySelector(selector); one.scrollIntoView();
  const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2];
}"""


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """A new one, with a profile in ``folder``."""
    assert BROWSER is not None
    (for_it, asked), (said, by_it) = os.pipe(), os.pipe()
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    # The browser reads from 3 and writes to 4.
    shell = ["bash", "-c", f'exec 3<&{for_it} 4>&{by_it}; exec "$@"', "bash", *command]
    process = subprocess.Popen(
        shell, pass_fds=(for_it, by_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    os.close(for_it)
    os.close(by_it)
    try:
        yield Tab(asked, said)
    finally:
        process.kill()
        process.wait()
        os.close(asked)
        os.close(said)
