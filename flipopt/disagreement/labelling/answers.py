"""The file that answers are written to, one after the other, each on the disk before it is acknowledged."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from flipopt.common.errors import FileFormatError, InputError, StorageError
from flipopt.common.files import reading, require_file
from flipopt.common.limits import limits
from flipopt.common.quoting import quoted
from flipopt.common.writing import require_place, storing, write_synced
from flipopt.disagreement.labels import HEADER, Answer, parsed
from flipopt.runs.locks import locked


class Answers:
    """A CSV file that this process alone writes to, for any number of threads.

    A line that was half written when a process was killed is taken away when the file is opened again: its answer was
    never acknowledged, and the image is shown again.

    Parameters
    ----------
    path
        The file; what is in it is gone on with.
    images, classes
        How many there are.
    """

    def __init__(self, path: str | Path, images: int, classes: int) -> None:
        self.path, self.images, self.classes = Path(path), images, classes
        self._lock = threading.Lock()
        require_place(self.path)
        with storing(self.path):
            self._file = self.path.open("a+b", buffering=0)
        if not locked(self._file):
            self._file.close()
            raise StorageError(f"{self.path}: another process writes to it")
        try:
            content = self._sound()
            with reading(self.path, "a CSV file"):
                text = content.decode("utf-8-sig")
            found = parsed(text, self.path, images, classes) if text else []
            self._answers = {answer[:2]: answer for answer in found}
            self._repair(len(content))
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def of(self, labeller: str) -> list[Answer]:
        """The answers of a labeller, in the order in which they were given."""
        with self._lock:
            return [answer for answer in self._answers.values() if answer.labeller == labeller]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._answers)

    def add(self, answer: Answer) -> None:
        """Write an answer. The same again changes nothing: whoever did not hear of it asks again."""
        with self._lock:
            known = self._answers.get(answer[:2])
            if known is not None and known.label != answer.label:
                raise InputError(
                    f"{quoted(answer.labeller)} has labelled image {answer.image}; undo that, or reload the page"
                )
            if known is None:
                with storing(self.path):
                    self._write(answer.line().encode())
                self._answers[answer[:2]] = answer

    def undo(self, labeller: str) -> Answer | None:
        """Take away the last answer of a labeller, and return it; None if there is none."""
        with self._lock:
            last = next((answer for answer in reversed(self._answers.values()) if answer.labeller == labeller), None)
            if last is not None:
                left = {key: answer for key, answer in self._answers.items() if answer is not last}
                self._replace("".join([f"{HEADER}\n", *(answer.line() for answer in left.values())]).encode())
                self._answers = left
            return last

    def _sound(self) -> bytes:
        """What is in the file, but for a last line that has no end."""
        if os.fstat(self._file.fileno()).st_size == 0:
            return b""
        require_file(self.path, limits().text)
        with storing(self.path):
            self._file.seek(0)
            content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and not HEADER.encode().startswith(content):
            raise FileFormatError(f"{self.path}: expected a first line {HEADER}, found {quoted(content[:60])}")
        return whole

    def _repair(self, length: int) -> None:
        """Cut the file to what is sound; an empty one begins with the header."""
        with storing(self.path):
            self._file.truncate(length)
            if length == 0:
                self._write(f"{HEADER}\n".encode())

    def _write(self, content: bytes) -> None:
        """Append, all or nothing, and have it on the disk."""
        before = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError:
            os.ftruncate(self._file.fileno(), before)
            raise

    def _replace(self, content: bytes) -> None:
        """Another content, whole or not at all."""
        write_synced(self.path, content)
        with storing(self.path):
            self._file.close()
            self._file = self.path.open("a+b", buffering=0)
        locked(self._file)
