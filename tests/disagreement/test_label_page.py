"""The page in a real browser, with a real server behind it that is killed on the way: no answer is lost or twice."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from flipopt.disagreement import read_labels, write_form
from flipopt.disagreement.labelling import png
from tests.browser import needs_browser
from tests.chromium import SECONDS, Tab, browser

IMAGES = 165
COMMAND = "from flipopt.cli.main import main; main()"


def pictures() -> np.ndarray:
    """All different: the number of each is in its first pixels."""
    images = np.zeros((IMAGES, 8, 8), dtype=np.uint8)
    images[:, 0, 0] = np.arange(IMAGES)
    return images


class Program:
    """``flipopt label`` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        np.savez(folder / "images.npz", images=pictures())
        arguments = ["label", str(folder / "images.npz"), "--out", str(folder / "labels.csv")]
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = ""
        for line in self.process.stdout:
            if line.startswith("open http"):
                self.address = line.split()[1]
                break
        assert self.address.startswith("http://127.0.0.1:"), self.process.stderr

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        code = self.process.wait(SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


def shown(tab: Tab) -> int:
    """The number of the image on the page."""
    return int(re.search(r"image/(\d+)\.png", tab.run("document.getElementById('image').src"))[1])


def label_next(tab: Tab, given: dict[int, int], count: int, key: int) -> None:
    """Answer the image on the page by a key, and wait until that is kept."""
    tab.wait("ready && !busy")
    given[shown(tab)] = key
    tab.press(str(key))
    tab.wait(f"document.getElementById('done').textContent === '{count} of {IMAGES}'")


def begin(tab: Tab, address: str, name: str) -> None:
    tab.open(address)
    tab.wait("document.activeElement.id === 'name'")
    tab.type(name)
    tab.press("Enter")
    tab.wait("document.getElementById('start').hidden")


@needs_browser
def test_165_images_by_keys_with_undo_reload_and_a_killed_server(tmp_path: Path) -> None:
    given: dict[int, int] = {}
    program = Program(tmp_path)
    with browser(tmp_path) as tab:
        begin(tab, program.address, "Ann")
        for count in range(1, 41):
            label_next(tab, given, count, count % 10)
        order = list(given)
        assert order != sorted(order)  # shuffled

        tab.press("Backspace")  # undo, and another answer
        tab.wait(f"document.getElementById('done').textContent === '39 of {IMAGES}'")
        assert shown(tab) == order[-1]
        label_next(tab, given, 40, 9)

        tab.press("p")  # a pause hides the image and takes no answers
        tab.wait("paused")
        tab.press("5")
        assert tab.run("document.getElementById('image').hidden")
        tab.click("#resume")
        tab.wait("!paused")
        assert tab.run("document.getElementById('done').textContent") == f"40 of {IMAGES}"

        tab.reload()  # which goes on without asking for the name again
        tab.wait(f"document.getElementById('done').textContent === '40 of {IMAGES}'")
        for count in range(41, 91):
            label_next(tab, given, count, count % 10)
        assert tab.faults == []

        program.end(signal.SIGKILL)
        tab.press("1")  # which nobody hears
        tab.wait("document.getElementById('fault').textContent.includes('does not reply')")
        with (tmp_path / "labels.csv").open("a") as file:
            file.write("Ann,1")  # as if it had been killed in the middle of a line
        program = Program(tmp_path)
        tab.faults.clear()
        begin(tab, program.address, "Ann")
        for count in range(91, IMAGES + 1):
            label_next(tab, given, count, count % 10)
        tab.wait("!document.getElementById('end').hidden")
        assert tab.faults == []
        assert "Thank you" in tab.run("document.body.innerText")
    assert program.end(signal.SIGINT) == 128 + signal.SIGINT
    found = read_labels(tmp_path / "labels.csv", IMAGES, 10)
    assert Counter((answer.labeller, answer.image) for answer in found.answers()) == Counter(
        {("Ann", image): 1 for image in range(IMAGES)}
    )
    assert dict(enumerate(found.labels[0].tolist())) == given
    assert (found.seconds >= 0).all()


@needs_browser
def test_another_name_has_another_order_and_words_have_buttons(tmp_path: Path) -> None:
    program = Program(tmp_path)
    firsts = []
    with browser(tmp_path) as tab:
        for name in ("Ann", "Bob", "Ann"):
            begin(tab, program.address, name)
            tab.wait("ready && !busy")
            firsts.append([shown(tab), tab.run("todo.slice(0, 20)")])
            tab.run("sessionStorage.clear()")
        tab.click("#classes button:nth-child(7)")
        tab.wait(f"document.getElementById('done').textContent === '1 of {IMAGES}'")
        for phone, width, height in ((False, 1280, 800), (True, 360, 640)):
            tab.size(width, height, phone)
            assert tab.run("document.documentElement.scrollWidth") <= width
            assert tab.run("document.getElementById('pause').getBoundingClientRect().bottom") <= height
        assert tab.faults == []
    program.end(signal.SIGTERM)
    assert firsts[0] == firsts[2] != firsts[1]
    assert read_labels(tmp_path / "labels.csv", IMAGES, 10).labels[0, firsts[0][0]] == 6


@needs_browser
def test_a_form_needs_nothing_and_gives_the_same_file(tmp_path: Path) -> None:
    write_form(tmp_path / "form.html", pictures()[:12], [f"kind {k}" for k in range(12)])
    address = (tmp_path / "form.html").as_uri()
    with browser(tmp_path) as tab:
        tab.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        begin(tab, address, 'Ann "A", B')
        for count in range(1, 13):
            tab.wait("ready && !busy")
            if count == 6:
                begin(tab, address, 'Ann "A", B')  # a reload in the middle
                tab.wait("ready && !busy")
            if count % 2:
                tab.press("3")
            else:
                tab.click("#classes button:nth-child(12)")  # more than there are keys
            tab.wait(f"document.getElementById('progress').value === {count}")
        tab.click("#undo-last")
        tab.wait("ready && !busy && !document.getElementById('work').hidden")
        tab.press("0")
        tab.wait("!document.getElementById('end').hidden")
        tab.click("#end .download")
        until = time.monotonic() + SECONDS
        while not (files := list(tmp_path.glob("labels-*.csv"))) and time.monotonic() < until:
            time.sleep(0.02)
        assert (
            tab.run("performance.getEntriesByType('resource').filter((one) => !/^(data|blob):/.test(one.name)).length")
            == 0
        )
        assert tab.faults == []
    found = read_labels(files[0], 12, 12)
    assert found.labellers == ('Ann "A", B',)
    found.require_complete()
    assert Counter(found.labels[0].tolist()) == {3: 6, 11: 5, 0: 1}


def test_a_picture_is_the_image() -> None:
    pillow = pytest.importorskip("PIL.Image")
    import io

    for image in (pictures()[3], np.arange(48, dtype=np.uint8).reshape(4, 4, 3)):
        np.testing.assert_array_equal(np.asarray(pillow.open(io.BytesIO(png(image)))), image)
