"""A shell that stays inside one session, so that many measurements use the same supervisor, as in a long build."""

from __future__ import annotations

import os
import select
import subprocess
import time
from typing import IO

import place
from processes import stop_group
from product import Product

MARK = b"\x1eend\n"


class Box:
    """`pid` is the supervisor's."""

    def __init__(self, product: Product, options: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            product.run(options, ["/bin/sh"]),
            env={**place.environment(), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.run("true")

    def run(self, command: str, seconds: float = 60) -> str:
        """The output of a shell command inside; its standard error is ours."""
        stdin, stdout = _pipe(self._process.stdin), _pipe(self._process.stdout)
        stdin.write(command.encode() + b" </dev/null\nprintf '\\036end\\n'\n")
        stdin.flush()
        return _read_until_mark(stdout.fileno(), time.monotonic() + seconds).decode()

    def stop(self) -> None:
        stop_group(self._process)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _read_until_mark(fd: int, end: float) -> bytes:
    output = b""
    while not output.endswith(MARK):
        ready, _, _ = select.select([fd], [], [], max(0.0, end - time.monotonic()))
        chunk = os.read(fd, 65536) if ready else b""
        if not chunk:
            raise TimeoutError(f"the command in the session did not end; its output so far: {output[-200:]!r}")
        output += chunk
    return output.removesuffix(MARK)
