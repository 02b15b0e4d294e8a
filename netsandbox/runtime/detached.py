"""A session without a terminal (`run --detach`): its output is kept in a file of its state folder.

    <state home>/netsandbox/sessions/<id>/output, output.1

The command writes to a pipe, which the supervisor reads: so the files are bounded, and no session can open them. Until
the command has been executed, errors go to the caller's standard error, and the caller waits for `started`.
"""

from __future__ import annotations

import fcntl
import os

from netsandbox.paths import OUTPUT_NAME, session_dir, unusable

MAX_OUTPUT = 16 << 20  # bytes of a file; two are kept
CHUNK = 1 << 16
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
LOST = b"\nnetsandbox: output was lost here, since the file could not be written\n"


class Detached:
    """Made in the process that will be the supervisor. *caller* is a pipe to the process that waits for the start."""

    def __init__(self, caller: int) -> None:
        self._caller = caller
        self.output, self._writing = os.pipe()
        os.set_blocking(self.output, False)
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self.stdio = (self._null, self._writing, self._writing)
        self._path = ""
        self._file = -1
        self._size = 0
        self._has_lost = False
        self._is_started = False

    def open(self, session: str) -> None:
        self._path = os.path.join(session_dir(session), OUTPUT_NAME)
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            self._open_file()
        except OSError as error:
            raise unusable(f"cannot make {self._path!a}", error) from None

    def _open_file(self) -> None:
        self._file = os.open(self._path, FLAGS, 0o600)
        self._size = 0
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # `logs -f` sees by it that the session lives
        except OSError:  # a reader looks at this moment, or the file system knows no locks
            pass

    def started(self, session: str, name: str) -> None:
        """The command has been executed: leave the caller and its terminal."""
        self._is_started = True
        os.dup2(self._null, 0)
        self._take_over()
        try:
            os.write(self._caller, f"{session} {name}".encode("ascii"))
        except OSError:  # the caller is gone, and needs no answer
            pass
        os.close(self._caller)

    def _take_over(self) -> None:
        """What this process itself still has to say belongs to the output."""
        for number in (1, 2):
            os.dup2(self._file, number)

    def on_output(self, events: int) -> None:
        self._take()

    def _take(self) -> bool:
        """Keep the next part of the output; whether there was one."""
        try:
            data = os.read(self.output, CHUNK)
        except BlockingIOError:
            return False
        try:
            if self._size + len(data) > MAX_OUTPUT:
                self._rotate()
            self._write(LOST + data if self._has_lost else data)
            self._has_lost = False
        except OSError:  # the disk is full: the command goes on
            self._has_lost = True
        return bool(data)

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        while data:
            data = data[os.write(self._file, data) :]

    def _rotate(self) -> None:
        os.rename(self._path, f"{self._path}.1")
        old = self._file
        self._open_file()
        os.close(old)

    def close(self) -> None:
        """Keep what is in the pipe: nobody writes to it any more, but what this process has to say still comes."""
        while self._take():
            pass
        if self._is_started:
            self._take_over()  # the newest file
