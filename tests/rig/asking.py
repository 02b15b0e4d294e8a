"""A program in a session that asks about files, which does what it is told."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

PATIENCE = 30
# Executes each line of its input, and says "done" after it.
PUPPET = """\
import ctypes, errno, os, subprocess, sys, threading, time
def text(path, flags=os.O_RDONLY, data=None, **more):
    try:
        fd = os.open(path, flags, 0o666, **more)
    except OSError as error:
        return errno.errorcode[error.errno]
    try:
        return os.write(fd, data) if data is not None else os.read(fd, 99).decode()
    except IsADirectoryError:
        return "EISDIR"
    finally:
        os.close(fd)
def refused(act, *words):
    try:
        act(*words)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
def ran(path):
    try:
        return subprocess.run([path], capture_output=True, text=True).stdout.strip()
    except OSError as error:
        return errno.errorcode[error.errno]
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Inside:
    """A program in a session that asks, which does what it is told."""

    def __init__(self, netsandbox: Any, *options: str) -> None:
        words = (netsandbox.python, "-I", "-c", PUPPET)
        self.netsandbox = netsandbox
        self.running = netsandbox.spawn("run", "--ask", *options, "--", *words, stdin=subprocess.PIPE)

    def tell(self, line: str) -> None:
        self.running.process.stdin.write(line.encode() + b"\n")
        self.running.process.stdin.flush()

    def told(self) -> str:
        out: str = self.running.read_until(b"done\n").decode().removesuffix("done\n").strip()
        return out

    def do(self, line: str) -> str:
        """What a line prints that needs no answer."""
        self.tell(line)
        return self.told()

    def read(self, path: Path) -> str:
        return self.do(f"print(text({str(path)!r}))")

    def asked(self, path: Path, line: str | None = None, *, operation: str = "read") -> str:
        """The number of the question that a line leads to."""
        self.tell(line or f"print(text({str(path)!r}))")
        (question,) = self.pending()
        assert (question["path"], question["operation"]) == (str(path), operation)
        return str(question["id"])

    def pending(self, count: int = 1) -> list[dict[str, Any]]:
        until = time.monotonic() + PATIENCE
        found: list[dict[str, Any]]
        while len(found := json.loads(self.netsandbox("pending", "--json").stdout)) != count:
            assert time.monotonic() < until, found
            time.sleep(0.05)
        return found

    def answer(self, *words: str | Path) -> str:
        done = self.netsandbox(*words)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def end(self) -> list[dict[str, Any]]:
        """The records."""
        self.running.process.stdin.close()
        assert self.running.wait() == 0
        return list(self.running.audit)
