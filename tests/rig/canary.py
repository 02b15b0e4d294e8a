"""Canaries: real servers that keep everything that reaches them, so that a test can say "not one byte got out".

A canary counts a connection before any handshake or read, so a bare connect is noticed too. `accepts` is exact: who has
connected by then is counted, whether or not the canary's thread has had its turn.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.rig.http import Responder, serve_http

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.rig.certificates import CertificateAuthority

Script = Callable[[socket.socket, "Visit"], None]


@dataclass
class Visit:
    """One accepted connection: who came, which TLS name was asked for, what was sent."""

    peer: object
    data: bytearray = field(default_factory=bytearray)
    server_name: str | None = None
    error: str = ""
    done: bool = False


class _Server:
    """A listening socket with a thread; `close` ends both."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self._changed = threading.Condition()
        self._closing = False
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def path(self) -> str:
        """Where a Unix canary listens (an abstract name begins with NUL)."""
        name = self.listener.getsockname()
        return name if isinstance(name, str) else bytes(name).decode()

    @property
    def host(self) -> str:
        return str(self.listener.getsockname()[0])

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def address(self) -> str:
        """HOST:PORT as the command line takes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def close(self) -> None:
        self._closing = True
        for sock in (self.listener, *self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)
        self.listener.close()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _until(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.05))
        return True

    def _run(self) -> None:
        raise NotImplementedError


class StreamCanary(_Server):
    """Accepts TCP or Unix stream connections, keeps their bytes, answers by a script."""

    def __init__(self, listener: socket.socket, script: Script, context: ssl.SSLContext | None) -> None:
        super().__init__(listener)
        self.visits: list[Visit] = []
        self._script = script
        self._context = context
        self._taking = threading.Lock()  # from the kernel's queue to the list of visits
        listener.setblocking(False)

    @property
    def accepts(self) -> int:
        while True:
            with self._taking:
                if self._closing or not _has_come(self.listener, 0):
                    return len(self.visits)
            time.sleep(0.001)

    @property
    def received(self) -> bytes:
        """All bytes of all connections (plain text where TLS is spoken)."""
        return b"".join(bytes(visit.data) for visit in self.visits)

    def wait(self, accepts: int = 1, timeout: float = 20) -> bool:
        """True once ACCEPTS connections have come and ended."""
        return self._until(lambda: sum(visit.done for visit in self.visits) >= accepts, timeout)

    def _run(self) -> None:
        while not self._closing:
            _has_come(self.listener, None)
            with self._taking:
                try:
                    sock, peer = self.listener.accept()
                except (BlockingIOError, ConnectionAbortedError):  # who had come has left
                    continue
                except OSError:
                    return
                visit = Visit(peer)
                self.visits.append(visit)
            self._open.add(sock)
            self._notify()
            threading.Thread(target=self._serve, args=(sock, visit), daemon=True).start()

    def _serve(self, sock: socket.socket, visit: Visit) -> None:
        sock.settimeout(30)
        try:
            with sock, self._secured(sock, visit) as stream:
                self._script(stream, visit)
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_WR)
        except (OSError, ValueError) as error:
            visit.error = str(error)
        finally:
            self._open.discard(sock)
            visit.done = True
            self._notify()

    def _secured(self, sock: socket.socket, visit: Visit) -> socket.socket:
        if self._context is None:
            return sock

        def remember(_: ssl.SSLObject | ssl.SSLSocket, name: str | None, __: ssl.SSLContext) -> None:
            visit.server_name = name

        self._context.sni_callback = remember
        return self._context.wrap_socket(sock, server_side=True)


class DatagramCanary(_Server):
    """Keeps every datagram; `reply` answers each."""

    def __init__(self, listener: socket.socket, reply: bytes | None) -> None:
        super().__init__(listener)
        self.datagrams: list[bytes] = []
        self._reply = reply

    @property
    def received(self) -> bytes:
        return b"".join(self.datagrams)

    def wait(self, datagrams: int = 1, timeout: float = 20) -> bool:
        return self._until(lambda: len(self.datagrams) >= datagrams, timeout)

    def _run(self) -> None:
        self.listener.settimeout(0.1)  # shutdown does not wake recvfrom on an unconnected socket
        while not self._closing:
            try:
                data, peer = self.listener.recvfrom(65535)
            except TimeoutError:
                continue
            except OSError:
                return
            self.datagrams.append(data)
            self._notify()
            if self._reply is not None:
                with contextlib.suppress(OSError):
                    self.listener.sendto(self._reply, peer)


def _has_come(listener: socket.socket, patience: float | None) -> bool:
    """Whether somebody waits to be accepted, or the listener has been shut down."""
    queue = select.poll()
    queue.register(listener, select.POLLIN)
    return bool(queue.poll(patience))


def _keep(stream: socket.socket, visit: Visit) -> None:
    while data := stream.recv(65536):
        visit.data += data


def _echo(stream: socket.socket, visit: Visit) -> None:
    while data := stream.recv(65536):
        visit.data += data
        stream.sendall(data)


Server = TypeVar("Server", bound=_Server)


class Canaries:
    """Starts canaries for one test; all are closed at its end."""

    def __init__(self, authority: Callable[[], CertificateAuthority], folder: Path) -> None:
        self._ca = authority
        self._folder = folder
        self._servers: list[_Server] = []

    def tcp(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        greeting: bytes = b"",
        echo: bool = False,
        script: Script | None = None,
        tls: tuple[str, ...] = (),
    ) -> StreamCanary:
        """A TCP server: GREETING is sent first; then bytes are kept (or echoed, or SCRIPT takes over). TLS: names."""
        body = script or (_echo if echo else _keep)

        def speak(stream: socket.socket, visit: Visit) -> None:
            stream.sendall(greeting)
            body(stream, visit)

        listener = socket.create_server((host, port), family=_family(host), backlog=256)
        context = self._ca().issue(*tls).context() if tls else None
        return self._started(StreamCanary(listener, speak, context))

    def http(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        body: bytes = b"canary\n",
        status: int = 200,
        handler: Responder | None = None,
        tls: tuple[str, ...] = (),
    ) -> StreamCanary:
        """An HTTP/1.1 server with keep-alive. HANDLER(method, target, headers, body) -> (status, headers, body)."""
        respond = handler or (lambda *_: (status, {}, body))
        return self.tcp(host, port, script=lambda stream, visit: serve_http(stream, visit.data, respond), tls=tls)

    def udp(self, host: str = "127.0.0.1", port: int = 0, *, reply: bytes | None = None) -> DatagramCanary:
        listener = socket.socket(_family(host), socket.SOCK_DGRAM)
        try:
            listener.bind((host, port))
        except OSError:
            listener.close()
            raise
        return self._started(DatagramCanary(listener, reply))

    def unix(self, path: str | Path | None = None, *, echo: bool = False) -> StreamCanary:
        """A Unix stream server; a PATH that begins with NUL is abstract."""
        where = str(path or self._folder / f"canary{len(self._servers)}.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(where)
        if not where.startswith("\0"):
            Path(where).chmod(0o777)
        listener.listen(64)
        return self._started(StreamCanary(listener, _echo if echo else _keep, None))

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def _started(self, server: Server) -> Server:
        self._servers.append(server)
        server.start()
        return server


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@pytest.fixture
def canary(request: pytest.FixtureRequest, short_tmp: Path) -> Iterator[Canaries]:
    """Starts servers that remember what reached them."""
    canaries = Canaries(lambda: request.getfixturevalue("ca"), short_tmp)
    yield canaries
    canaries.close()
