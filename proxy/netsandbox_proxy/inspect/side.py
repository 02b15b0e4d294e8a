"""One socket of an inspected connection: the client's, or one to the server."""

from __future__ import annotations

from mitmproxy.connection import Connection

from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.stream import Stream
from netsandbox_proxy.inspect.allowance import Allowance

READ = 256 * 1024  # the more at once, the less is spent on events: a body takes a third less time than with 64 KiB
PEEK = 2  # MSG_PEEK
MAX_WAITING = 256 * 1024  # bytes to one side that the kernel has not taken
MAX_ANSWERS = 4 * MAX_WAITING  # to a side that is read no more: it asks for answers (PING) and takes none


class Side:
    """One socket: what waits to be sent there, and whether it is read. *limit*: of a server, if there is a budget."""

    def __init__(self, stream: Stream, connection: Connection, limit: Allowance | None = None) -> None:
        self.stream = stream
        self.connection = connection
        self.waiting = bytearray()
        self.is_ending = False  # half-close when everything was sent
        self.has_ended = False  # the peer sent its end
        self.unchecked = 0  # bytes since it was last checked that a layer can use them
        self._limit = limit

    def read(self) -> bytes | None:
        """Empty at the end; None if nothing is there, or nothing may pass yet."""
        limit = self._limit
        if limit is None:
            return self.stream.read(READ)
        try:
            present = len(self.stream.recv(READ, PEEK))
        except BlockingIOError:
            return None
        count = limit.down.take(present)
        if present and not count:
            return None
        limit.down.left -= count
        return self.stream.read(count or 1)

    def send(self) -> int:
        """Send what waits, as far as kernel and budget take it; the number of bytes."""
        limit = self._limit
        count = MAX_WAITING if limit is None else limit.up.take(min(len(self.waiting), MAX_WAITING))
        with memoryview(self.waiting) as view:
            sent = self.stream.send(view[:count]) if count else 0
        del self.waiting[:sent]
        if limit is not None:
            limit.up.left -= sent
        return sent

    def watch(self, *, reads: bool) -> None:
        reads = reads and not self.has_ended and len(self.waiting) < MAX_ANSWERS
        wanted = (IN if reads else 0) | (OUT if self.waiting else 0)
        self.stream.want(wanted if self._limit is None else self._limit.events(wanted))

    def finish(self) -> None:
        """Everything was sent: half-close, or close if the peer has ended too."""
        if self.has_ended:
            self.close()
        elif not self.stream.closed:
            try:
                self.stream.shut()
            except OSError:
                self.close()
            self.is_ending = False

    def close(self) -> None:
        """Shut the socket down rather than only close it: the supervisor holds a copy."""
        if not self.stream.closed:
            try:
                self.stream.sock.shutdown(2)
            except OSError:
                pass
            self.stream.close()
