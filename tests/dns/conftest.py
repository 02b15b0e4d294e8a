"""A policy of three names, a log that can be broken, a clock that is turned by hand, and a scripted name server."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dnslib
import pytest
from netsandbox_dns import upstream as upstream_module
from netsandbox_dns.resolv_conf import NameServers
from netsandbox_dns.resolver import Resolver, ResolverOptions
from netsandbox_dns.synthetic_pool import SyntheticPool
from netsandbox_dns.tunnel_guard import TunnelGuard
from netsandbox_dns.upstream import LookupFailed, Resolved, Upstream

from netsandbox.policy.verdict import Verdict, verdict
from netsandbox.runtime.loop import Loop
from tests.rig.threaded_server import read_exactly


class Session:
    """A resolver with everything it needs, and what it wrote."""

    def __init__(self, **options: Any) -> None:
        self.records: list[dict[str, Any]] = []
        self.judged: list[bytes] = []
        self.writable = True
        self.time = 100.0
        self.timers: list[Callable[[], None]] = []
        self.pool = options.pop("pool", None) or SyntheticPool()
        given = ResolverOptions(host_names=("Builder.lan",), **options)
        self.resolver = Resolver(self, self.decide, self.record, self.pool, TunnelGuard(), given)  # type: ignore[arg-type]

    def now(self) -> float:
        return self.time

    def call_later(self, _seconds: float, callback: Callable[[], None]) -> None:
        self.timers.append(callback)

    def decide(self, name: bytes) -> Verdict:
        self.judged.append(name)
        host = name.decode("ascii").lower()
        if host == "broken.test":
            raise RuntimeError("the policy fell over")
        if host in ("allowed.test", "other.test"):
            return verdict("rule", host, 0, allowed=True, rule=host)
        if host == "asked.test":
            return verdict("ask", host, 0, allowed=True)
        if host.endswith(".wild.test"):
            return verdict("rule", host, 0, allowed=True, rule="*.wild.test", wildcard="wild.test")
        return verdict("not-allowed", host, 0)

    def record(self, kind: tuple[Any, ...], count: int, _size: int) -> bool:
        if not self.writable:
            return False
        self.records.append(dict(zip(("host", "qtype", "allowed", "reason", "rule"), kind, strict=True), count=count))
        return True

    def ask(self, name: str, qtype: str = "A", transport: str = "udp") -> dnslib.DNSRecord:
        reply = self.resolver.answer(bytes(dnslib.DNSRecord.question(name, qtype).pack()), transport)
        assert reply is not None
        return dnslib.DNSRecord.parse(reply)

    def counted(self) -> int:
        return sum(record["count"] for record in self.records)


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def make_session() -> type[Session]:
    return Session


def _both() -> tuple[socket.socket, socket.socket]:
    """A UDP and a TCP socket on one port: the kernel's choice for the one may be taken for the other."""
    for _ in range(100):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        try:
            return udp, socket.create_server(udp.getsockname())
        except OSError:
            udp.close()
    raise OSError("no port is free for both UDP and TCP")


class NameServer:
    """Answers on loopback, UDP and TCP, as `script(request, transport)` says: bytes, a list of them, or None."""

    def __init__(self) -> None:
        self.script: Callable[[dnslib.DNSRecord, str], Any] = lambda request, transport: None
        self.asked: list[tuple[str, str, str]] = []
        self.peers: list[tuple[str, int]] = []
        self.udp, self.tcp = _both()
        self.place = self.udp.getsockname()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._serve_udp, self._serve_tcp)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self.tcp.shutdown(socket.SHUT_RDWR)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.place)
        for thread in self._threads:
            thread.join(20)
        self.udp.close()
        self.tcp.close()

    def _told(self, data: bytes, transport: str) -> list[bytes]:
        request = dnslib.DNSRecord.parse(data)
        self.asked.append((str(request.q.qname).rstrip("."), dnslib.QTYPE[request.q.qtype], transport))
        said = self.script(request, transport)
        return [] if said is None else [said] if isinstance(said, bytes) else said

    def _serve_udp(self) -> None:
        while True:
            data, peer = self.udp.recvfrom(4096)
            if not data:
                return
            self.peers.append(peer)
            for reply in self._told(data, "udp"):
                self.udp.sendto(reply, peer)

    def _serve_tcp(self) -> None:
        while True:
            try:
                conn, _ = self.tcp.accept()
            except OSError:
                return
            with conn, contextlib.suppress(OSError):  # who has enough may leave at any moment
                conn.settimeout(20)
                if head := read_exactly(conn, 2):
                    data = read_exactly(conn, int.from_bytes(head, "big"))
                    for reply in self._told(data, "tcp"):
                        conn.sendall(len(reply).to_bytes(2, "big") + reply)


def zone_reply(request: dnslib.DNSRecord, text: str, **header: int) -> bytes:
    """The records of *text* that have the type asked for or are CNAMEs, under the question as it was spelled."""
    reply = request.reply()
    for record in dnslib.RR.fromZone(text):
        if record.rtype in (request.q.qtype, dnslib.QTYPE.CNAME):
            reply.add_answer(record)
    for field, value in header.items():
        setattr(reply.header, field, value)
    return bytes(reply.pack())


@pytest.fixture
def answer_from() -> Callable[..., bytes]:
    return zone_reply


@pytest.fixture
def server() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


class Asker:
    """An upstream on a loop of its own, asked synchronously."""

    def __init__(self, loop: Loop, upstream: Upstream) -> None:
        self.loop = loop
        self.upstream = upstream

    def __call__(self, name: str, *, patience: float = 30.0) -> Resolved | LookupFailed:
        results: list[Resolved | LookupFailed] = []
        self.upstream.lookup(name, lambda result: (results.append(result), self.loop.stop())[0])
        if not results:
            guard = self.loop.call_later(patience, self.loop.stop)
            self.loop.run()
            guard.cancel()
        assert results, f"no answer about {name} in {patience} s"
        return results[0]


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def ask_upstream(loop: Loop, server: NameServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Asker]]:
    monkeypatch.setattr(upstream_module, "SECOND_FAMILY_SECONDS", 10.0)  # a busy machine is not a silent family
    made: list[Upstream] = []

    def make(
        servers: list[tuple[str, int]] | None = None,
        hosts: dict[str, list[str]] | None = None,
        clock: Callable[[], float] = loop.now,
        **options: Any,
    ) -> Asker:
        options = {"timeout": 10.0, "attempts": 2, **options}
        name_servers = NameServers(servers or [server.place], **options)
        upstream = Upstream(loop, name_servers, hosts or {}, clock)
        made.append(upstream)
        return Asker(loop, upstream)

    yield make
    for upstream in made:
        upstream.close()
