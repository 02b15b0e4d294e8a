"""The doors of a session, each on the socket that the plan names for it; here the sockets are in the host's network."""

from __future__ import annotations

import _socket
import contextlib
import socket
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import dnslib
import pytest

from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.backend import NamespacesBackend
from netsandbox.policy.policy import Policy
from netsandbox.session.doors import Doors
from netsandbox.session.upstream import HostResolver, ServiceInputs
from netsandbox.settings import Bounds, RunSettings
from tests.rig.authority import Authority
from tests.rig.canary import Canaries, StreamCanary
from tests.rig.fake_log import FakeLog
from tests.rig.loop_thread import LoopThread
from tests.rig.threaded_server import read_all, read_exactly
from tests.rig.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the doors of a Mac have tests/backends/seatbelt")
FAMILIES = pytest.mark.parametrize("six", ["", "6"])


def made(door: plan.Door) -> _socket.socket:
    """As the helper makes it, but on a port of this host's loopback."""
    sock = _socket.socket(door.family, door.kind)
    sock.bind(("127.0.0.1" if door.family == socket.AF_INET else "::1", 0))
    if door.kind == socket.SOCK_STREAM:
        sock.listen()
    return sock


class Opened(LoopThread):
    def __init__(self, origin: int, authority: Authority) -> None:
        super().__init__()
        self.log = FakeLog()
        self.sockets = {door.name: made(door) for door in plan.doors()}
        self.places = {name: sock.getsockname()[:2] for name, sock in self.sockets.items()}
        backend = NamespacesBackend(SimpleNamespace(settings=RunSettings()))  # type: ignore[arg-type]
        backend._doors = self.sockets
        policy = Policy(allow_domains=[f"allowed.test:{origin}"], allow_addresses=[f"127.0.0.1:{origin}"])
        resolver = HostResolver(((authority.host, authority.port),))
        self.doors = Doors(
            self.loop,
            ServiceInputs(policy, self.log, resolver),  # type: ignore[arg-type]
            backend.doors(),
            Bounds(),
        )
        self.run(lambda: None)

    def client(self, name: str) -> socket.socket:
        return socket.create_connection(self.places[name], PATIENCE)

    def fetch(self, name: str, url: str) -> bytes:
        with self.client(name) as client:
            host = url.split("/")[2]
            client.sendall(f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return read_all(client)

    def close(self) -> None:
        self.run(self.doors.close)
        self.end()


@pytest.fixture
def origin(canary: Canaries) -> StreamCanary:
    return canary.http(body=b"ok")


@pytest.fixture
def opened(origin: StreamCanary, authority: Authority) -> Iterator[Opened]:
    authority.answer("allowed.test", "127.0.0.1")
    scene = Opened(origin.port, authority)
    yield scene
    scene.close()


@FAMILIES
def test_the_mixed_door_reaches_what_is_allowed_and_nothing_else(
    opened: Opened, origin: StreamCanary, six: str
) -> None:
    assert opened.fetch(f"mixed{six}", "http://denied.test/").startswith(b"HTTP/1.1 403 ")
    assert origin.accepts == 0
    assert opened.fetch(f"mixed{six}", f"http://allowed.test:{origin.port}/").endswith(b"ok")
    assert origin.accepts == 1
    told = [(each["verdict"], each["host"], each["door"]) for each in opened.log.of("egress")]
    assert told == [("deny", "denied.test", "http"), ("allow", "allowed.test", "http")]


@FAMILIES
def test_the_transparent_door_goes_by_where_the_client_meant_to_go(
    opened: Opened, origin: StreamCanary, six: str
) -> None:
    """The destination is the door itself, on an address of the host: it is refused under every name."""
    heard = b""
    with contextlib.suppress(ConnectionError), opened.client(f"transparent{six}") as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: allowed.test:{origin.port}\r\n\r\n".encode())
        heard = read_all(client)
    assert heard == b""
    wait_for(lambda: opened.log.of("egress"))
    (record,) = opened.log.of("egress")
    assert (record["verdict"], record["door"], record["port"]) == (
        "deny",
        "transparent",
        opened.places[f"transparent{six}"][1],
    )
    assert origin.accepts == 0


@FAMILIES
@pytest.mark.parametrize(("name", "rcode"), [("allowed.test", "NOERROR"), ("denied.test", "NXDOMAIN")])
def test_both_doors_for_names_give_the_same_answer(
    opened: Opened, authority: Authority, six: str, name: str, rcode: str
) -> None:
    question = bytes(dnslib.DNSRecord.question(name).pack())
    family = socket.AF_INET6 if six else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE)
        client.connect(opened.places[f"dns{six}"])
        client.send(question)
        answers = [client.recv(4096)]
    with opened.client(f"dns-tcp{six}") as client:
        client.sendall(len(question).to_bytes(2, "big") + question)
        size = int.from_bytes(read_exactly(client, 2), "big")
        answers.append(read_exactly(client, size))
    parsed = [dnslib.DNSRecord.parse(answer) for answer in answers]
    assert [dnslib.RCODE[each.header.rcode] for each in parsed] == [rcode] * 2
    assert [[str(record.rdata)[:7] for record in each.rr] for each in parsed] == [
        ["198.18."] * (rcode == "NOERROR")
    ] * 2
    assert authority.queries == []


@FAMILIES
def test_other_datagrams_are_recorded_and_end_here(opened: Opened, six: str) -> None:
    family = socket.AF_INET6 if six else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.sendto(b"12345", opened.places[f"udp{six}"])
    wait_for(lambda: opened.log.of("udp"))
    (record,) = opened.log.of("udp")
    assert (record["verdict"], record["port"]) == ("deny", opened.places[f"udp{six}"][1])


def test_connections_are_counted_over_all_doors_and_end_with_them(origin: StreamCanary, authority: Authority) -> None:
    opened = Opened(origin.port, authority)
    clients = [opened.client(name) for name in ("mixed", "mixed6")]
    for client in clients:
        client.sendall(b"GET ")  # held: the head is incomplete
    wait_for(lambda: opened.run(lambda: opened.doors.flows) == 2)
    opened.run(opened.doors.close)
    assert opened.run(lambda: opened.doors.flows) == 0
    assert [sock.fileno() for sock in opened.sockets.values()] == [-1] * len(opened.sockets)
    for client in clients:
        assert read_all(client) == b""
        client.close()
    opened.end()
