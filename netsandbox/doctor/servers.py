"""The servers outside the session while probes run: canaries, the control, name servers, and their thread.

- A canary must receive nothing. It needs no thread: the kernel keeps what arrives until it is counted. A connection
  that was made and closed again stays in the accept queue, and a datagram in the receive buffer.
- The control is a server that the policy allows. If it is not reached, the silence of the canaries proves nothing.
- A name server counts its queries: one is the session's upstream, another a canary for direct queries.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from netsandbox_dns.wire import A, Query, address_answer, nodata, nxdomain, parse_query

BACKLOG = 16
MAX_COUNTED = 1000


class Canary:
    """One listening or receiving socket. `received()` counts what has arrived since it was made."""

    def __init__(self, family: int, kind: int, address: str) -> None:
        self.address = address
        self._received = 0
        self._stream = kind == socket.SOCK_STREAM
        self._socket = socket.socket(family, kind)
        try:
            if family == socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.bind(address if family == socket.AF_UNIX else (address, 0))
            if self._stream:
                self._socket.listen(BACKLOG)
            self._socket.settimeout(0)
        except OSError:
            self._socket.close()
            raise

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def received(self) -> int:
        for _ in range(MAX_COUNTED):
            try:
                self._take()
            except BlockingIOError:
                break
            self._received += 1
        return self._received

    def close(self) -> None:
        self._socket.close()

    def _take(self) -> None:
        if self._stream:
            self._socket.accept()[0].close()
        else:
            self._socket.recv(1)


CONTROL_SECONDS = 2.0
MAX_HEAD = 16384
REPLY = b"HTTP/1.1 200 control\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class Control:
    """A small HTTP server on the host's loopback; `visits` counts requests that were answered."""

    def __init__(self) -> None:
        self.visits = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0)

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def fileno(self) -> int:
        return self._socket.fileno()

    def serve(self) -> None:
        with self._socket.accept()[0] as client:
            client.settimeout(CONTROL_SECONDS)
            head = b""
            while b"\r\n\r\n" not in head and len(head) < MAX_HEAD and (piece := client.recv(4096)):
                head += piece
            if b"\r\n\r\n" in head:
                client.sendall(REPLY)
                self.visits += 1

    def close(self) -> None:
        self._socket.close()


DNS_SECONDS = 1.0
TTL = 60
LOOPBACK = bytes([127, 0, 0, 1])


class NameServer:
    """Answers *names* with 127.0.0.1, by UDP and by TCP on one port. `queries` counts (name, type)."""

    def __init__(self, names: Iterable[str], address: str = "127.0.0.1") -> None:
        self.queries: Counter[tuple[str, int]] = Counter()
        self.address = address
        self._names = frozenset(names)
        self.stream = socket.create_server((address, 0))
        self.stream.settimeout(0)
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.datagrams.bind((address, self.port))
        except OSError:
            self.close()
            raise
        self.datagrams.settimeout(0)

    @property
    def port(self) -> int:
        port: int = self.stream.getsockname()[1]
        return port

    @property
    def total(self) -> int:
        return sum(self.queries.values())

    def received(self, name: str) -> int:
        return sum(count for (queried, _), count in self.queries.items() if queried == name)

    def serve_datagram(self) -> None:
        data, client = self.datagrams.recvfrom(4096)
        reply = self._reply(data)
        if reply is not None:
            self.datagrams.sendto(reply, client)

    def serve_stream(self) -> None:
        with self.stream.accept()[0] as client:
            client.settimeout(DNS_SECONDS)
            data = client.recv(4096)
            reply = self._reply(data[2:])
            if reply is not None:
                client.sendall(len(reply).to_bytes(2, "big") + reply)

    def close(self) -> None:
        self.stream.close()
        self.datagrams.close()

    def _reply(self, data: bytes) -> bytes | None:
        query = parse_query(data)
        if not isinstance(query, Query):
            self.queries["?", 0] += 1
            return None
        name = query.name.decode("ascii").lower()
        self.queries[name, query.qtype] += 1
        if name not in self._names:
            return nxdomain(query, "")
        return address_answer(query, LOOPBACK, TTL) if query.qtype == A else nodata(query)


TICK_SECONDS = 0.01


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


class ProbeResponder:
    """Calls the handler of each readable socket, and every *moment* a hundred times a second."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._tick_calls: list[Callable[[], None]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="doctor", daemon=True)

    def watch(self, source: HasDescriptor, serve: Callable[[], None]) -> None:
        """Call this before `start`."""
        self._selector.register(source.fileno(), selectors.EVENT_READ, serve)

    def each_tick(self, call: Callable[[], None]) -> None:
        self._tick_calls.append(call)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._selector.close()

    def _run(self) -> None:
        while not self._over.is_set():
            ready = [key.data for key, _ in self._selector.select(TICK_SECONDS)]
            for call in (*ready, *self._tick_calls):
                try:
                    call()
                except OSError:  # the client left, or nothing was there; only the counts matter
                    pass
