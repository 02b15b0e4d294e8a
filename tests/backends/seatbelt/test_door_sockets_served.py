"""The doors of a session on a Mac: the same gate behind a token, and a resolver that knows the same addresses."""

from __future__ import annotations

import base64
import ipaddress
import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dnslib
import pytest

from netsandbox.audit.log import AuditLog
from netsandbox.backends.contract import DoorSockets as Wiring
from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.backends.seatbelt.door_sockets import DoorSockets
from netsandbox.policy.policy import Policy
from netsandbox.runtime.loop import Loop
from netsandbox.session.approvals.inbox import Inbox
from netsandbox.session.approvals.reply import APPROVE, DENY, DONE, Reply, written
from netsandbox.session.doors import Doors
from netsandbox.session.upstream import HostResolver, ServiceInputs
from netsandbox.settings import Bounds
from tests.rig.authority import Authority
from tests.rig.canary import Canaries, StreamCanary
from tests.rig.threaded_server import read_exactly

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

TOKEN = bytes(range(16))
PATIENCE = 20.0
ADDRESSES = ["127.0.0.1", "::1"]


def door_sockets(mixed: DoorSockets, dns: DoorSockets, token: bytes = TOKEN) -> Wiring:
    """As the backend gives them to the session."""
    held = SimpleNamespace(mixed=mixed, dns=dns, token=token)
    backend = SeatbeltBackend(None, SimpleNamespace(own_addresses=lambda clock: frozenset))  # type: ignore[arg-type]
    backend._reservation = held  # type: ignore[assignment]
    found = backend.doors()
    assert found is not None
    return found


class Opened:
    """Doors in a thread; `records` is what was written once they are closed."""

    def __init__(self, folder: Path, origin: int, authority: Authority, answer: str | None = None) -> None:
        self.loop = Loop()
        self.mixed = DoorSockets((), listens=True)
        self.dns = DoorSockets((), listens=True, takes_datagrams=True)
        self._path = folder / "audit.jsonl"
        self.log = AuditLog.open(str(self._path), "20261116T000000000-0000000000000000", cap_bytes=None)
        rules = [f"allowed.test:{origin}", f"*.wild.test:{origin}"]
        policy = Policy(allow_domains=rules, allow_addresses=[f"127.0.0.1:{origin}"])
        self.heard: list[bytes | None] = []
        self.inbox = None if answer is None else self._inbox(answer)
        inputs = ServiceInputs(policy, self.log, HostResolver(((authority.host, authority.port),)), inbox=self.inbox)
        self.doors = Doors(self.loop, inputs, door_sockets(self.mixed, self.dns), Bounds())
        self._bell = socket.socketpair()
        self.loop.watch(self._bell[0].fileno(), 1, lambda events: self.loop.stop())
        self._thread = threading.Thread(target=self.loop.run)
        self._thread.start()

    def _inbox(self, op: str) -> Inbox:
        """Each question is answered in the turn after it was put."""

        def answer() -> None:
            for question in inbox.status():
                self.heard.append(inbox.handle_reply(written(Reply(op, int(str(question["id"])))), 1, 0))

        def notify(text: str) -> None:
            self.loop.call_later(0, answer)

        inbox = Inbox(self.log, 600, clock=self.loop.now, later=self.loop.call_later, notify=notify)
        return inbox

    def close(self) -> None:
        self._bell[1].close()
        self._thread.join(PATIENCE)
        self._bell[0].close()
        self.doors.close()
        assert self.doors.flows == 0
        self.log.close()
        self.loop.close()

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def of(self, event: str, verdict: str) -> list[dict[str, Any]]:
        return [each for each in self.records if each["event"] == event and each.get("verdict") == verdict]

    def ask(self, name: str, address: str = "127.0.0.1", kind: str = "A", *, tcp: bool = False) -> dnslib.DNSRecord:
        data = bytes(dnslib.DNSRecord.question(name, kind).pack())
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as client:
            client.settimeout(PATIENCE)
            client.connect((address, self.dns.port))
            if not tcp:
                client.send(data)
                return dnslib.DNSRecord.parse(client.recv(4096))
            client.sendall(len(data).to_bytes(2, "big") + data)
            size = int.from_bytes(read_exactly(client, 2), "big")
            return dnslib.DNSRecord.parse(read_exactly(client, size))

    def fetch(
        self, to: str, port: int, token: bytes = TOKEN, address: str = "127.0.0.1", host: bytes = b"allowed.test"
    ) -> bytes:
        """As a program with the library in it: a preamble, then its own words. Empty for a reset."""
        packed = ipaddress.ip_address(to).packed
        preamble = bytes((1, 4 if len(packed) == 4 else 6)) + port.to_bytes(2, "big") + packed.ljust(16, b"\0") + token
        with socket.create_connection((address, self.mixed.port), PATIENCE) as client:
            try:
                client.sendall(preamble + b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host)
                return client.recv(4096)
            except ConnectionResetError:
                return b""


@pytest.fixture
def origin(canary: Canaries) -> StreamCanary:
    return canary.http(body=b"ok")


@pytest.fixture
def doors(tmp_path: Path, origin: StreamCanary, authority: Authority) -> Iterator[Opened]:
    for name in ("allowed.test", "denied.test", "www.wild.test"):
        authority.answer(name, "127.0.0.1")
    opened = Opened(tmp_path, origin.port, authority)
    yield opened
    opened.close()


@pytest.mark.parametrize("token", [b"", TOKEN[:-1]])
def test_a_door_without_a_token_is_not_opened(token: bytes) -> None:
    """INV-1: on a loopback that everybody shares it would be everybody's proxy."""
    door = DoorSockets((), listens=False)
    with pytest.raises(ValueError, match="token"):
        door_sockets(door, door, token)
    door.close()


@pytest.mark.attack(182)
@pytest.mark.parametrize("address", ADDRESSES)
def test_with_the_token_the_gate_decides_and_without_it_nobody_is_asked(doors: Opened, address: str) -> None:
    answers = []
    for password in (TOKEN.hex(), "1" * 32, TOKEN.decode("latin-1")):
        with socket.create_connection((address, doors.mixed.port), PATIENCE) as client:
            secret = base64.b64encode(b"x:" + password.encode("latin-1"))
            client.sendall(
                b"GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n"
                b"Proxy-Authorization: Basic " + secret + b"\r\n\r\n"
            )
            answers.append(client.recv(4096).split(b" ")[1])
    assert answers == [b"403", b"407", b"407"]
    denied = doors.of("egress", "deny")
    assert [each.get("host") for each in denied] == ["denied.test", None, None]
    assert TOKEN.hex() not in json.dumps(doors.records)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("tcp", [False, True])
def test_a_program_that_knows_of_no_proxy_asks_for_a_name_and_reaches_it(
    doors: Opened, origin: StreamCanary, authority: Authority, address: str, tcp: bool
) -> None:
    answer = doors.ask("Allowed.test", address, tcp=tcp)
    given = str(answer.a.rdata)
    assert given.startswith("198.18.")
    assert authority.queries == []
    assert b"ok" in doors.fetch(given, origin.port, address=address)
    assert origin.accepts == 1
    assert set(authority.names) == {"allowed.test"}
    (record,) = doors.of("egress", "allow")
    assert (record["door"], record["host"], record["address"]) == ("transparent", "allowed.test", "127.0.0.1")
    assert [each["host"] for each in doors.of("dns", "allow") if each["door"] == "dns"] == ["allowed.test"]


@pytest.mark.parametrize("op", [APPROVE, DENY])
def test_the_same_inbox_asks_here(tmp_path: Path, origin: StreamCanary, authority: Authority, op: str) -> None:
    authority.answer("asked.test", "127.0.0.1")
    opened = Opened(tmp_path, origin.port, authority, answer=op)
    try:
        given = str(opened.ask("asked.test").a.rdata)
        assert given.startswith("198.18.")
        assert authority.queries == []
        answer = opened.fetch(given, origin.port, host=b"asked.test")
    finally:
        opened.close()
    assert opened.heard == [DONE]
    assert (b"ok" in answer, origin.accepts) == ((True, 1) if op == APPROVE else (False, 0))
    outcomes = [each["outcome"] for each in opened.records if each["event"] == "approval"]
    assert outcomes == ["asked", "approved" if op == APPROVE else "denied"]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("tcp", [False, True])
def test_a_name_that_is_not_allowed_has_no_address_and_nobody_hears_of_it(
    doors: Opened, authority: Authority, address: str, tcp: bool
) -> None:
    answer = doors.ask("denied.test", address, tcp=tcp)
    assert dnslib.RCODE[answer.header.rcode] == "NXDOMAIN"
    assert authority.queries == []
    assert [each["host"] for each in doors.of("dns", "deny")] == ["denied.test"]


def test_an_address_that_stands_for_nothing_is_refused(
    doors: Opened, origin: StreamCanary, authority: Authority
) -> None:
    """Neither a guess in the pool nor an address of the world passes because a program says so."""
    for address in ("198.18.0.77", "192.0.2.1"):
        assert doors.fetch(address, origin.port) == b""
    assert [each["door"] for each in doors.of("egress", "deny")] == ["transparent", "transparent"]
    assert (origin.accepts, authority.queries) == (0, [])


@pytest.mark.attack(89)
@pytest.mark.attack(90)
@pytest.mark.attack(92)
@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "0.0.0.0", "::", "64:ff9b::7f00:1", "2002:7f00:1::", "169.254.169.254"]
)
def test_a_preamble_of_the_commands_own_making_opens_nothing_of_the_host(
    doors: Opened, origin: StreamCanary, canary: Canaries, address: str
) -> None:
    """The library writes none for loopback; the command has the token and can. The gate decides, and the guard."""
    closed = canary.http(body=b"forbidden")
    beside = canary.http("::1", closed.port, body=b"forbidden")
    assert doors.fetch(address, closed.port) == b""
    assert (closed.accepts, beside.accepts) == (0, 0)
    assert [(each["door"], each["address"]) for each in doors.of("egress", "deny")] == [("transparent", address)]
    assert b"ok" in doors.fetch("127.0.0.1", origin.port)


@pytest.mark.attack(182)
def test_the_address_of_a_name_is_of_no_use_without_the_token(doors: Opened, origin: StreamCanary) -> None:
    """The resolver asks nobody who he is; the door does."""
    given = str(doors.ask("allowed.test").a.rdata)
    assert doors.fetch(given, origin.port, token=TOKEN[::-1]) == b""
    assert origin.accepts == 0
    assert [(each["door"], each["reason"]) for each in doors.of("egress", "deny")] == [("transparent", "not-allowed")]


@pytest.mark.attack(66)
@pytest.mark.attack(67)
def test_a_question_that_looks_like_a_tunnel_reaches_nobody(
    doors: Opened, authority: Authority, origin: StreamCanary
) -> None:
    """Its twin under the same wildcard is answered, and reached."""
    answer = doors.ask("a" * 60 + ".wild.test")
    assert dnslib.RCODE[answer.header.rcode] == "NXDOMAIN"
    refused = doors.ask("www.wild.test", kind="TXT")
    assert dnslib.RCODE[refused.header.rcode] == "REFUSED"
    assert authority.queries == []
    assert {each["reason"] for each in doors.of("dns", "deny")} == {"tunnel-label", "query-type"}
    assert str(doors.ask("www.wild.test").a.rdata).startswith("198.18.")


def test_what_was_folded_is_written_at_the_end(tmp_path: Path, authority: Authority) -> None:
    doors = Opened(tmp_path, 443, authority)
    for _ in range(5):
        doors.ask("denied.test")
    doors.close()
    assert sum(each.get("count", 1) for each in doors.of("dns", "deny")) == 5
