"""One direction of a relay: bytes go from a source to a sink, and never more than one buffer is held.

The first 64 KiB go by recv and send, which is cheapest for short messages. A pump that moves more uses splice(2) with a
borrowed pipe, so that the bytes never enter this process. Where splice is missing or refused it keeps copying.

Pipes are pooled, non-blocking and as large as the kernel allows. A pump borrows one only while bytes are in it, so a
thousand idle tunnels hold none. An unprivileged user may own 64 MiB of pipe buffers (pipe(7), pipe-user-pages-soft);
past that F_SETPIPE_SZ fails and the pipe keeps its 64 KiB. Root may own any number, so the pool lends a few only.

What a peer does not take is held, and a session chooses its peers. So the more connections there are, the less is read
at a time: `PipePool.share`.
"""

from __future__ import annotations

import errno
import fcntl
import os

from netsandbox.runtime.stream import MAX_BUFFER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.stream import Stream

PIPE_SIZE = 1 << 20
MAX_IDLE_PIPES = 16
MAX_LENT_PIPES = 64
MAX_HELD = 32 << 20  # bytes of one direction of a pool's connections; five times that if 16,384 come one by one
MIN_BUFFER = 4096
F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)

SPLICE_AFTER = 64 * 1024
MAX_SPLICES = 8  # moves per turn, so that one fast tunnel does not starve the rest
UNLIMITED = 1 << 62
SHORT_MOVE = 64 * 1024  # after less than this in one move the source is nearly empty: wait for its next event
_splice = getattr(os, "splice", None)
_FLAGS = getattr(os, "SPLICE_F_MOVE", 0) | getattr(os, "SPLICE_F_NONBLOCK", 0)


class PipePool:
    """Lends (read end, write end) pairs that are empty. `buffer` is how many bytes a connection may read at a time."""

    __slots__ = ("_idle", "_lent", "buffer")

    def __init__(self) -> None:
        self._idle: list[tuple[int, int]] = []
        self._lent = 0
        self.buffer = MAX_BUFFER

    def share(self, connections: int) -> None:
        """Let this many connections read."""
        self.buffer = max(MIN_BUFFER, min(MAX_BUFFER, MAX_HELD // (connections or 1)))

    def take(self) -> tuple[int, int] | None:
        """None when descriptors have run out, or many pipes are lent: the caller copies instead."""
        if self._lent >= MAX_LENT_PIPES:
            return None
        if self._idle:
            self._lent += 1
            return self._idle.pop()
        try:
            pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        self._lent += 1
        try:
            fcntl.fcntl(pipe[1], F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            pass
        return pipe

    def give(self, pipe: tuple[int, int]) -> None:
        """Take back an empty pipe."""
        if len(self._idle) < MAX_IDLE_PIPES:
            self._lent -= 1
            self._idle.append(pipe)
        else:
            self.drop(pipe)

    def drop(self, pipe: tuple[int, int]) -> None:
        """Close a pipe that was lent; bytes in it are gone."""
        self._lent -= 1
        _close(pipe)

    def close(self) -> None:
        while self._idle:
            _close(self._idle.pop())


def _close(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    os.close(pipe[1])


class Pump:
    """`blocked`: bytes wait for the sink. `eof`: the source has ended. `ended`: the sink has got the end too."""

    spent = False  # of a `MeteredPump`: a budget lets none of the bytes pass that wait

    __slots__ = ("blocked", "copying", "ended", "eof", "held", "in_pipe", "moved", "pipe", "pipes", "sink", "source")

    def __init__(self, source: Stream, sink: Stream, pipes: PipePool) -> None:
        self.source = source
        self.sink = sink
        self.pipes = pipes
        self.moved = 0
        self.held = b""
        self.pipe: tuple[int, int] | None = None
        self.in_pipe = 0
        self.blocked = False
        self.eof = False
        self.ended = False
        self.copying = _splice is None

    def pump(self) -> None:
        """The source is readable."""
        if self.moved > SPLICE_AFTER and not self.copying:
            self.splice(UNLIMITED)
            return None
        try:
            data = self.source.recv(self.pipes.buffer)
        except BlockingIOError:
            return None
        if data:
            return self.push(data)
        self.eof = True
        return None

    def push(self, data: bytes) -> None:
        """Send *data*, hold what the sink does not take."""
        try:
            sent = self.sink.sock.send(data)
        except BlockingIOError:
            sent = 0
        self.moved += sent
        if sent < len(data):
            self.held = data[sent:]
            self.blocked = True

    def flush(self) -> None:
        """The sink is writable again."""
        if self.held:
            data, self.held, self.blocked = self.held, b"", False
            self.push(data)
        elif self.in_pipe:
            self._empty_pipe()
            if not self.blocked:
                self._return_pipe()

    def close(self) -> None:
        pipe, self.pipe = self.pipe, None
        if pipe is not None:
            self.pipes.drop(pipe)

    def splice(self, limit: int) -> int:
        """Move what is there, at most *limit* bytes; how many were taken from the source."""
        assert _splice is not None
        taken: int = 0
        pipe = self.pipe = self.pipes.take()
        if pipe is None:
            self.copying = True
            return taken
        for _ in range(MAX_SPLICES):
            try:
                count: int = _splice(self.source.fd, pipe[1], min(PIPE_SIZE, limit - taken), flags=_FLAGS)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EINVAL:  # this kind of socket does not splice: copy
                    raise
                self.copying = True
                break
            if not count:
                self.eof = True
                break
            taken += count
            self.in_pipe = count
            self._empty_pipe()
            if self.blocked:
                return taken
            if count < SHORT_MOVE or taken == limit:
                break
        self._return_pipe()
        return taken

    def _empty_pipe(self) -> None:
        assert _splice is not None
        assert self.pipe is not None
        self.blocked = True
        while self.in_pipe:
            try:
                count = _splice(self.pipe[0], self.sink.fd, self.in_pipe, flags=_FLAGS)
            except BlockingIOError:
                return
            self.in_pipe -= count
            self.moved += count
        self.blocked = False

    def _return_pipe(self) -> None:
        pipe, self.pipe = self.pipe, None
        if pipe is not None:
            self.pipes.give(pipe)
