"""Pipes for splice(2): pooled, non-blocking, as large as the kernel lets us have them.

A lane borrows a pipe only while bytes are in it, so a thousand idle tunnels hold none. An unprivileged user may own 64
MiB of pipe buffers (pipe(7), pipe-user-pages-soft); past that F_SETPIPE_SZ fails and the pipe keeps its 64 KiB.
"""

from __future__ import annotations

import fcntl
import os

PIPE_SIZE = 1 << 20
IDLE_PIPES = 16
F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)


class PipePool:
    """Lends (read end, write end) pairs that are empty."""

    __slots__ = ("_idle",)

    def __init__(self) -> None:
        self._idle: list[tuple[int, int]] = []

    def take(self) -> tuple[int, int] | None:
        """None when descriptors have run out: the caller copies instead."""
        if self._idle:
            return self._idle.pop()
        try:
            pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.fcntl(pipe[1], F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            pass
        return pipe

    def give(self, pipe: tuple[int, int]) -> None:
        """Take back an empty pipe."""
        if len(self._idle) < IDLE_PIPES:
            self._idle.append(pipe)
        else:
            self.drop(pipe)

    @staticmethod
    def drop(pipe: tuple[int, int]) -> None:
        """Close a pipe; bytes in it are gone."""
        os.close(pipe[0])
        os.close(pipe[1])

    def close(self) -> None:
        while self._idle:
            self.drop(self._idle.pop())
