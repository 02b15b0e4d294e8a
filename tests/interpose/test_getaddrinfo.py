"""Names, as a Mac's library has them answered by the session's resolver: run on Linux by real programs."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import dnslib
import pytest

from tests.rig import ports
from tests.rig.mac_doors import MacDoors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")

POOL = "198.18.0.9"
ANY, V4, V6 = 0, int(socket.AF_INET), int(socket.AF_INET6)
NONAME, AGAIN, FAIL, SERVICE = (getattr(socket, f"EAI_{name}") for name in ("NONAME", "AGAIN", "FAIL", "SERVICE"))
HOST_NOT_FOUND, TRY_AGAIN, NO_RECOVERY, NO_DATA = 1, 2, 3, 4  # <netdb.h>

Lookups = Callable[..., list[str]]


@pytest.fixture
def lookups(doors: MacDoors, program: Callable[..., Path]) -> Lookups:
    """lookups("info", family, flags, service, names…) or lookups("host", family, names…) -> a line for each name."""
    doors.authority.answer("example.com", POOL)
    built = program("lookups")

    def run(*arguments: object) -> list[str]:
        done = doors.run(built, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("family", [ANY, V4])
@pytest.mark.parametrize("name", ["example.com", "EXAMPLE.com", "example.com."])
def test_a_name_has_the_address_that_the_door_gives(doors: MacDoors, lookups: Lookups, family: int, name: str) -> None:
    assert lookups("info", family, 0, "443", name) == [f"- {POOL}:443/1"]
    assert [(query.name.lower(), query.type, query.transport) for query in doors.authority.queries] == [
        ("example.com.", "A", "udp")
    ]


def test_services_have_their_ports_and_unknown_ones_are_refused(lookups: Lookups) -> None:
    assert lookups("info", V4, 0, "https", "example.com") == [f"- {POOL}:443/1"]
    assert lookups("info", V4, 0, "", "example.com") == [f"- {POOL}:0/1"]
    assert lookups("info", V4, 0, "no-such-service", "example.com") == [f"error {SERVICE}"]


def test_the_canonical_name_is_the_one_that_was_asked_for(lookups: Lookups) -> None:
    flags = socket.AI_CANONNAME
    assert lookups("info", ANY, flags, "80", "example.com.", "localhost") == [
        f"example.com {POOL}:80/1",
        "localhost 127.0.0.1:80/1 ::1:80/1",
    ]


def test_every_address_is_in_the_list_in_its_order(doors: MacDoors, lookups: Lookups) -> None:
    addresses = [f"198.18.0.{number}" for number in range(1, 20)]
    doors.authority.answer("many.test", *addresses)
    doors.authority.alias("alias.test", "many.test")
    shown = " ".join(f"{address}:80/1" for address in addresses[:16])
    assert lookups("info", V4, 0, "80", "many.test", "alias.test") == [f"- {shown}"] * 2
    assert lookups("host", 0, "many.test") == [" ".join(["many.test 1", *addresses[:16]])]


def test_ipv6_is_asked_for_in_vain_unless_ipv4_may_be_within_it(lookups: Lookups) -> None:
    assert lookups("info", V6, 0, "80", "example.com") == [f"error {NONAME}"]
    assert lookups("info", V6, socket.AI_V4MAPPED, "80", "example.com") == [f"- ::ffff:{POOL}:80/1"]
    assert lookups("host", V6, "example.com") == [f"error {NO_DATA}"]


def test_localhost_is_answered_without_asking_anybody(doors: MacDoors, lookups: Lookups) -> None:
    names = ["localhost", "LocalHost", "localhost.", "shop.localhost", "a.shop.LOCALHOST."]
    assert lookups("info", ANY, socket.AI_ADDRCONFIG, "80", *names) == ["- 127.0.0.1:80/1 ::1:80/1"] * 5
    assert lookups("info", V4, 0, "80", *names) == ["- 127.0.0.1:80/1"] * 5
    assert lookups("info", V6, 0, "80", *names) == ["- ::1:80/1"] * 5
    assert lookups("host", 0, "localhost") == ["localhost 1 127.0.0.1"]
    assert lookups("host", V6, "shop.localhost.") == ["shop.localhost 1 ::1"]
    long = "x." * 200 + "localhost"
    assert lookups("host", 0, long) == [f"{long[:255]} 1 127.0.0.1"]
    doors.session.map.resolver = 0
    assert lookups("info", V4, 0, "80", "shop.localhost") == ["- 127.0.0.1:80/1"]
    assert doors.authority.queries == []


def test_numbers_are_read_without_asking_anybody(doors: MacDoors, lookups: Lookups) -> None:
    numbers = {"192.0.2.1": "192.0.2.1", "127.1": "127.0.0.1", "0x7f000001": "127.0.0.1", "::1": "::1"}
    assert lookups("info", ANY, 0, "80", *numbers) == [f"- {known}:80/1" for known in numbers.values()]
    assert lookups("info", ANY, 0, "80", "fe80::1%lo", "") == ["- fe80::1:80/1", f"error {NONAME}"]
    assert lookups("info", ANY, 0, "80", "a:b", "::1 x", "1.2.3.4 x") == [f"error {NONAME}"] * 3
    assert lookups("info", V4, socket.AI_NUMERICHOST, "80", "example.com") == [f"error {NONAME}"]
    assert lookups("host", 0, "192.0.2.1", "127.1") == ["192.0.2.1 1 192.0.2.1", "127.1 1 127.0.0.1"]
    assert doors.authority.queries == []


@pytest.mark.parametrize(
    ("rcode", "error", "host_error"),
    [
        ("NXDOMAIN", NONAME, HOST_NOT_FOUND),
        ("REFUSED", NONAME, HOST_NOT_FOUND),
        ("NOERROR", NONAME, HOST_NOT_FOUND),
        ("SERVFAIL", AGAIN, TRY_AGAIN),
        ("NOTIMP", AGAIN, TRY_AGAIN),
    ],
)
def test_what_the_door_refuses_fails(
    doors: MacDoors, lookups: Lookups, rcode: str, error: int, host_error: int
) -> None:
    doors.authority.fail("denied.test", rcode)
    assert lookups("info", ANY, 0, "80", "denied.test") == [f"error {error}"]
    assert lookups("host", 0, "denied.test") == [f"error {host_error}"]
    assert doors.authority.names == ["denied.test"] * 2


def test_what_is_no_name_is_asked_of_nobody(doors: MacDoors, lookups: Lookups) -> None:
    names = ["a..b", ".", ".a", "x" * 64 + ".test", ".".join(["x" * 63] * 4), "spa ce.test", "\N{SNOWMAN}.test"]
    assert lookups("info", ANY, 0, "80", *names) == [f"error {NONAME}"] * len(names)
    assert lookups("host", 0, *names) == [f"error {HOST_NOT_FOUND}"] * len(names)
    assert doors.authority.queries == []


@pytest.fixture
def known_name() -> str:
    """One that the system's resolver finds without the network."""
    lines = (line.partition("#")[0].split() for line in Path("/etc/hosts").read_text().splitlines())
    names = [name for line in lines for name in line[1:] if not name.startswith("localhost")]
    if not names:
        pytest.skip("/etc/hosts has no name but localhost")
    return names[0]


def test_a_resolver_that_is_gone_is_a_failure_and_the_systems_is_not_asked(
    doors: MacDoors, lookups: Lookups, known_name: str
) -> None:
    """INV-1. The twin without a resolver in the map shows that the system's would have known."""
    doors.session.map.resolver = ports.free_port()
    assert lookups("info", ANY, 0, "80", "example.com", known_name) == [f"error {FAIL}"] * 2
    assert lookups("host", 0, "example.com", known_name) == [f"error {NO_RECOVERY}"] * 2
    doors.session.map.resolver = 0
    assert lookups("info", ANY, 0, "80", known_name)[0].startswith("- ")
    assert doors.authority.queries == []


def test_a_silent_resolver_is_asked_three_times(doors: MacDoors, lookups: Lookups) -> None:
    doors.authority.silence("silent.test")
    assert lookups("info", ANY, 0, "80", "silent.test") == [f"error {AGAIN}"]
    assert doors.authority.names == ["silent.test"] * 3
    assert len({query.raw for query in doors.authority.queries}) == 1, "an answer that comes late is one"


def test_what_is_no_answer_does_not_end_the_wait(doors: MacDoors, lookups: Lookups) -> None:
    def reply(query: bytes) -> list[bytes]:
        good = dnslib.DNSRecord.parse(query).reply()
        good.add_answer(*dnslib.RR.fromZone(f"late.test 60 A {POOL}"))
        whole = bytes(good.pack())
        (number,) = struct.unpack_from("!H", query)
        foreign = struct.pack("!H", number ^ 1) + whole[2:-1] + b"\x66"
        return [b"", query, foreign, whole[:-1], whole + b"x", whole]

    doors.authority.reply("late.test", reply)
    assert lookups("info", V4, 0, "80", "late.test") == [f"- {POOL}:80/1"]


def test_threads_that_ask_at_once_get_their_own(doors: MacDoors, lookups: Lookups) -> None:
    assert lookups("threads", "example.com") == ["lost 0"]
