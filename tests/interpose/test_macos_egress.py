"""Connections elsewhere, as the library does them that is compiled for macOS: on an emulated processor, byte by byte.

test_route.py holds the rules to their promises on Linux; here it is what reaches Darwin's kernel, in which order."""

from __future__ import annotations

import ipaddress
import random
import socket
import struct

import pytest
from netsandbox_interpose._native import ffi, lib

pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
pytest.importorskip("unicorn", reason="no emulated processor (package unicorn of the test extra)")

from tests.rig import darwin
from tests.rig import darwin_doors as doors
from tests.rig.darwin import EACCES, EINPROGRESS
from tests.rig.darwin_doors import ECONNREFUSED, EISCONN, MacWithDoors
from tests.rig.mac_map import TOKEN, content, for_linux, table

EGRESS, RESOLVER, KEPT = 4101, 4102, 77
MAP = table(lib.NS_STRATEGY_PORT, "0.0.0.0", egress=EGRESS, resolver=RESOLVER)
ELSEWHERE = ["192.0.2.1", "255.255.255.255", "126.255.255.255", "128.0.0.1", "::2", "fe80::1", "::ffff:192.0.2.1"]
LOCAL = ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"]
FD = doors.PROGRAM_FD


@pytest.fixture
def mac(library: bytes) -> MacWithDoors:
    return MacWithDoors(library, content(MAP))


def home(address: str, port: int) -> bytes:
    """The door of the same family, as Darwin writes it."""
    return darwin.name("127.0.0.1" if "." in address and ":" not in address else "::1", port)


def preamble(address: str, port: int) -> bytes:
    known = ipaddress.ip_address(address)
    within = known.ipv4_mapped if isinstance(known, ipaddress.IPv6Address) else known
    packed = (within or known).packed.ljust(16, b"\0")
    return struct.pack("!BBH", 1, 4 if within else 6, port) + packed + TOKEN


def taken(address: str, port: int) -> list[tuple[str, int, bytes]]:
    return [("connect", FD, home(address, EGRESS)), ("send", FD, preamble(address, port))]


def check_the_bytes(library: bytes) -> None:
    mac = MacWithDoors(library, content(MAP))
    mac.errno = KEPT
    assert (mac.give("connect", bytes.fromhex("1002 01bb c0000201 0000000000000000")), mac.errno) == (0, KEPT)
    sent = "0104 01bb c0000201 000000000000000000000000 000102030405060708090a0b0c0d0e0f"
    assert mac.kernel == [
        ("connect", FD, bytes.fromhex("1002 1005 7f000001 0000000000000000")),
        ("send", FD, bytes.fromhex(sent)),
    ]
    mac.kernel.clear()
    assert mac.give("connect", bytes.fromhex(f"1c1e 0050 00000000 20010db8{'00' * 11}07 00000000")) == 0
    sent = f"0106 0050 20010db8{'00' * 11}07 000102030405060708090a0b0c0d0e0f"
    assert mac.kernel == [
        ("connect", FD, bytes.fromhex(f"1c1e 1005 00000000 {'00' * 15}01 00000000")),
        ("send", FD, bytes.fromhex(sent)),
    ]


def test_the_bytes_that_reach_the_kernel(library: bytes) -> None:
    check_the_bytes(library)


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("call", ["connect", "connectx"])
def test_a_connection_goes_to_the_door_behind_its_preamble(mac: MacWithDoors, call: str, blocks: bool) -> None:
    """The socket does not block meanwhile, and is afterwards as it was; so is its SIGPIPE."""
    mac.flags = doors.O_RDWR | (0 if blocks else doors.O_NONBLOCK)
    for address in ELSEWHERE:
        for length in (None, 0):  # programs that know only Linux leave sin_len zero
            mac.kernel.clear()
            mac.errno, mac.connect_errors = KEPT, [EINPROGRESS]
            name = darwin.name(address, 443, length)
            assert (mac.connectx(name) if call == "connectx" else (mac.give(call, name), 0, 1)) == (0, 0, 1)
            assert (mac.errno, mac.kernel) == (KEPT, taken(address, 443))
            assert mac.ask("getpeername", home(address, EGRESS)) == (0, darwin.name(address, 443), len(name))
    assert {blocked for _, blocked in mac.blocked_while} == {False}
    assert (bool(mac.flags & doors.O_NONBLOCK), mac.quiet[FD]) == (not blocks, 0)
    assert not mac.descriptors


def test_the_data_of_connectx_follows_the_preamble(mac: MacWithDoors) -> None:
    assert mac.connectx(darwin.name("192.0.2.1", 443), b"GET /", b" HTTP/1.1") == (0, 14, 1)
    assert mac.kernel == [*taken("192.0.2.1", 443), ("sendmsg", FD, b"GET / HTTP/1.1")]
    assert mac.blocked_while[-1] == ("sendmsg", True), "as the program's socket does"
    mac.errno, mac.send_errors = KEPT, [0, doors.EPIPE]
    assert (mac.connectx(darwin.name("192.0.2.1", 443), b"lost"), mac.errno) == ((0, 0, 1), KEPT)


@pytest.mark.parametrize("kind", [darwin.SOCK_STREAM, darwin.SOCK_DGRAM])
@pytest.mark.parametrize("call", ["connect", "connectx"])
def test_dns_goes_to_the_resolver_without_a_preamble(mac: MacWithDoors, call: str, kind: int) -> None:
    mac.socket_type = kind
    for address in ELSEWHERE:
        mac.kernel.clear()
        mac.errno = KEPT
        name = darwin.name(address, 53)
        assert (mac.connectx(name)[0] if call == "connectx" else mac.give(call, name), mac.errno) == (0, KEPT)
        assert mac.kernel == [("connect", FD, home(address, RESOLVER))]
        assert mac.ask("getpeername", home(address, RESOLVER))[1] == name


def test_a_connection_to_the_resolver_may_be_under_way(mac: MacWithDoors) -> None:
    mac.connect_errors = [EINPROGRESS, EINPROGRESS]
    assert (mac.give("connect", darwin.name("192.0.2.1", 53)), mac.errno) == (-1, EINPROGRESS)
    assert mac.connectx(darwin.name("192.0.2.1", 53), b"early") == (-1, 0, 1)
    assert [call for call, *_ in mac.kernel] == ["connect", "connect"]


@pytest.mark.parametrize("call", ["sendto", "sendmsg"])
def test_a_datagram_to_port_53_goes_to_the_resolver_and_comes_back_from_there(mac: MacWithDoors, call: str) -> None:
    mac.socket_type = darwin.SOCK_DGRAM
    for address in ELSEWHERE:
        mac.kernel.clear()
        mac.errno = KEPT
        assert (mac.give(call, darwin.name(address, 53)), mac.errno) == (7, KEPT)
        assert mac.kernel == [(call, FD, home(address, RESOLVER))]
        for back in ("recvfrom", "recvmsg"):
            for room in (8, 16, 28, 128):
                shown = darwin.name(address, 53)
                assert mac.ask(back, home(address, RESOLVER), room) == (3, shown[:room], len(shown))
        others = darwin.name("192.0.2.99", 53)
        assert mac.ask("recvfrom", others)[1] == others, "somebody else's"


@pytest.mark.parametrize("call", ["sendto", "sendmsg"])
@pytest.mark.parametrize(("kind", "port"), [(darwin.SOCK_DGRAM, 443), (darwin.SOCK_STREAM, 53), (darwin.SOCK_RAW, 53)])
def test_what_else_is_sent_is_the_kernels(mac: MacWithDoors, call: str, kind: int, port: int) -> None:
    mac.socket_type = kind
    name = darwin.name("192.0.2.1", port)
    assert mac.give(call, name) == 7
    assert mac.kernel == [(call, FD, name)]


@pytest.mark.parametrize("kind", [darwin.SOCK_DGRAM, darwin.SOCK_RAW])
def test_a_socket_that_is_no_stream_connects_by_itself(mac: MacWithDoors, kind: int) -> None:
    mac.socket_type = kind
    name = darwin.name("192.0.2.1", 443)
    assert mac.give("connect", name) == 0
    assert mac.kernel == [("connect", FD, name)]


def test_no_family_is_ipv4_to_a_stream(mac: MacWithDoors) -> None:
    name = bytes([16, 0]) + darwin.name("192.0.2.1", 443)[2:]
    assert mac.give("connect", name) == 0
    assert mac.kernel == taken("192.0.2.1", 443)
    mac.socket_type = darwin.SOCK_DGRAM
    mac.kernel.clear()
    assert mac.give("connect", name) == 0
    assert mac.kernel == [("connect", FD, name)]
    assert mac.ask("getpeername", home("192.0.2.1", EGRESS))[1] == home("192.0.2.1", EGRESS), "forgotten"


def test_a_peer_of_another_family_is_somebody_elses(mac: MacWithDoors) -> None:
    """A descriptor that was copied over: what is remembered of its number cannot be right."""
    assert mac.give("connect", darwin.name("192.0.2.1", 443)) == 0
    door = darwin.name("::1", EGRESS)
    assert mac.ask("getpeername", door) == (0, door, len(door))


def refused(mac: MacWithDoors, *after: tuple[str, int, bytes]) -> None:
    mac.kernel.clear()
    assert (mac.give("connect", darwin.name("192.0.2.1", 443)), mac.errno) == (-1, ECONNREFUSED)
    assert mac.kernel == [("connect", FD, home("192.0.2.1", EGRESS)), *after]
    assert (mac.flags, mac.quiet.get(FD, 0)) == (doors.O_RDWR, 0)
    assert mac.ask("getpeername", home("192.0.2.1", EGRESS))[1] == home("192.0.2.1", EGRESS)


def check_the_failures(library: bytes) -> None:
    ended = ("shutdown", FD, bytes([doors.SHUT_RDWR]))
    mac = MacWithDoors(library, content(MAP))
    for error in (ECONNREFUSED, doors.EPERM, doors.ENETUNREACH, darwin.EADDRNOTAVAIL):
        mac.connect_errors = [error]
        refused(mac)
    mac.connect_errors, mac.socket_error = [EINPROGRESS], ECONNREFUSED
    refused(mac)
    mac.connect_errors, mac.socket_error, mac.never_ready = [doors.EINTR], 0, True
    refused(mac, ended)
    mac.never_ready, mac.send_errors = False, [doors.EPIPE]
    refused(mac, ended)


def test_a_door_that_fails_is_a_refused_connection(library: bytes) -> None:
    """INV-1: gone, closed by Seatbelt, unreachable, silent, or hung up."""
    check_the_failures(library)


@pytest.mark.parametrize(
    "error", [EISCONN, doors.EALREADY, doors.EBADF, doors.EINVAL, doors.EPROTOTYPE, doors.EAFNOSUPPORT]
)
def test_what_is_wrong_with_the_socket_is_the_kernels_to_say(mac: MacWithDoors, error: int) -> None:
    assert mac.give("connect", darwin.name("192.0.2.1", 443)) == 0
    mac.kernel.clear()
    mac.connect_errors = [error]
    assert (mac.give("connect", darwin.name("192.0.2.9", 443)), mac.errno) == (-1, error)
    assert mac.kernel == [("connect", FD, home("192.0.2.9", EGRESS))]
    assert mac.ask("getpeername", home("192.0.2.1", EGRESS))[1] == darwin.name("192.0.2.1", 443), "who it was"


def test_what_is_local_is_as_without_the_doors(mac: MacWithDoors) -> None:
    for address in LOCAL:
        for port, mapped in ((3000, 31007), (53, 53), (EGRESS, EGRESS)):
            mac.kernel.clear()
            assert mac.give("connect", darwin.name(address, port)) == 0
            assert mac.kernel == [("connect", FD, darwin.name(address, mapped))]


def test_without_a_map_the_kernel_is_asked(library: bytes) -> None:
    mac = MacWithDoors(library, None)
    for port in (53, 443):
        assert mac.give("connect", darwin.name("192.0.2.1", port)) == 0
    assert mac.kernel == [("connect", FD, darwin.name("192.0.2.1", port)) for port in (53, 443)]


def check_hostile_maps(library: bytes) -> None:
    chance = random.Random(4)
    mac = MacWithDoors(library, content(MAP))
    assert mac.give("connect", darwin.name("192.0.2.1", 443)) == 0
    for _ in range(60):
        garbage = table(lib.NS_STRATEGY_PORT, "0.0.0.0", egress=EGRESS, resolver=RESOLVER)
        ffi.memmove(garbage, chance.randbytes(60), 60)
        garbage.sequence &= ~1
        if chance.random() < 0.8:
            garbage.magic, garbage.version, garbage.size = MAP.magic, MAP.version, MAP.size
            garbage.strategy, garbage.passing_count = chance.choice([1, 3, 3, 9]), chance.randrange(70)
            garbage.base, garbage.count = 31000, chance.choice([1, 50, 4097])
            garbage.egress *= chance.randrange(2)
        mac.rewrite_map(content(garbage))
        mac.kernel.clear()
        name = darwin.name(chance.choice(ELSEWHERE), chance.choice([53, 443]))
        route = ffi.new("struct ns_route *")
        lib.ns_route_plan(garbage, for_linux(name), len(name), socket.AF_UNSPEC, lib.NS_TCP, route)
        result = mac.give("connect", name)
        if route.kind == lib.NS_ROUTE_REFUSE:
            assert (result, mac.errno, mac.kernel) == (-1, EACCES, [])
        elif route.kind == lib.NS_ROUTE_NONE:
            assert (result, mac.kernel) == (0, [("connect", FD, name)])
        else:
            sent = [bytes(ffi.buffer(ffi.addressof(route.preamble)))] * (route.kind == lib.NS_ROUTE_EGRESS)
            assert result == 0
            assert [data for call, _, data in mac.kernel if call == "send"] == sent


@pytest.mark.attack(106)
def test_a_hostile_map_leads_nowhere_else_than_linux_says(library: bytes) -> None:
    check_hostile_maps(library)


test_a_fault_in_the_sources_is_noticed = darwin.noticed(
    ("sockaddr.c", "head.sa_len = (uint8_t)length;", "", check_the_bytes),
    ("route.c", "view->token, sizeof preamble->token", "view->token + 1, 8", check_the_bytes),
    ("egress.c", "    if (failed)\n        shutdown(fd, SHUT_RDWR);", "", check_the_failures),
    ("egress.c", "before = ns_quiet(fd);", "before = 0;", check_the_bytes),
    ("route.c", "route->kind = NS_ROUTE_REFUSE;", "", check_hostile_maps),
)
