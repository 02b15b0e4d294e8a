"""The hooks as they are compiled for macOS, run on an emulated processor of both architectures.

What to expect is asked of the same rules as Linux' module has them, which test_rewrite.py and test_map.py hold to their
promises: the hooks must bring exactly that to the kernel, in Darwin's sockaddr and with Darwin's error numbers.
tests/rig/darwin.py stands in for everything below the library."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import Any

import pytest
from netsandbox_interpose._native import ffi, lib

pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
pytest.importorskip("unicorn", reason="no emulated processor (package unicorn of the test extra)")

from tests.rig import darwin
from tests.rig.darwin import EACCES, EADDRINUSE, EADDRNOTAVAIL, MAGIC, REPLY, Mac
from tests.rig.mac_map import BASE, COUNT, DEVICE, DOOR, TOKEN, content, for_darwin, for_linux, table

LOCAL = ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"]
ELSEWHERE = ["192.0.2.1", "255.255.255.255", "126.255.255.255", "128.0.0.1", "::2", "fe80::1", "::ffff:192.0.2.1"]
ADDRESSES = [*LOCAL, *ELSEWHERE, DEVICE, "::ffff:" + DEVICE, "127.0.0.2"]
PORTS = [0, 53, 3000, 3128, 4000, BASE + 7, BASE + COUNT]
ANSWERED = BASE + 9
KEPT = 77  # an errno that a call which succeeds must leave alone
PLANS = {
    **{"bind": lib.ns_plan_bind, "connect": lib.ns_plan_connect, "connectx": lib.ns_plan_connect},
    **{"sendto": lib.ns_plan_send, "sendmsg": lib.ns_plan_send},
}


PORT_MAP = table(lib.NS_STRATEGY_PORT, "0.0.0.0")
DEVICE_MAP = table(lib.NS_STRATEGY_DEVICE, DEVICE)
FAIL_MAP = table(lib.NS_STRATEGY_FAIL, "0.0.0.0")
FAIL_ON_DEVICE_MAP = table(lib.NS_STRATEGY_FAIL, DEVICE)
MAPS = {"port": PORT_MAP, "device": DEVICE_MAP, "fail": FAIL_MAP, "fail on device": FAIL_ON_DEVICE_MAP}


def plan(how: Any, made: Any, name: bytes, *more: int) -> Any:
    """What Linux makes of the same address."""
    found = ffi.new("struct ns_plan *")
    how(made, for_linux(name), len(name), *more, found)
    return found


def planned(found: Any, name: bytes) -> bytes:
    return for_darwin(bytes(found.name)[: found.length]) if found.verdict == lib.NS_CHANGED else name


def reach(mac: Mac, call: str, name: bytes) -> list[tuple[str, int, bytes]]:
    """What came to the kernel by one call, but for the library's own way to the supervisor."""
    mac.kernel.clear()
    mac.requests.clear()
    mac.errno = KEPT
    assert mac.give(call, name) == (7 if call in ("sendto", "sendmsg") else 0)
    assert mac.errno == KEPT
    assert not mac.descriptors
    return [entry for entry in mac.kernel if entry[1] != darwin.DOOR_FD]


@pytest.mark.parametrize("strategy", MAPS)
@pytest.mark.parametrize("call", ["connect", "connectx", "sendto", "sendmsg"])
def test_what_is_reached_is_what_linux_reaches(library: bytes, call: str, strategy: str) -> None:
    mac = Mac(library, content(MAPS[strategy]))
    for address in ADDRESSES:
        for port in PORTS:
            for length in (None, 0):  # programs that know only Linux leave sin_len zero
                name = darwin.name(address, port, length)
                expected = planned(plan(PLANS[call], MAPS[strategy], name), name)
                assert reach(mac, call, name) == [(call, 5, expected)]


@pytest.mark.parametrize("strategy", MAPS)
def test_what_is_bound_is_what_linux_binds_and_asks_for(library: bytes, strategy: str) -> None:
    made = MAPS[strategy]
    mac = Mac(library, content(made))
    mac.reply = REPLY.pack(MAGIC, 0, ANSWERED, 0)
    for address in ADDRESSES:
        for port in PORTS:
            name = darwin.name(address, port)
            found = plan(lib.ns_plan_bind, made, name)
            asked = found.verdict == lib.NS_REQUEST
            where = socket.inet_ntoa(bytes(found.address))
            if asked:
                found = plan(lib.ns_plan_answer, made, name, ANSWERED)
            assert reach(mac, "bind", name) == [("bind", 5, planned(found, name))]
            assert mac.requests == ([(port, where, 6, TOKEN)] if asked else [])


def check_the_bytes(library: bytes) -> None:
    mac = Mac(library, content(PORT_MAP))
    for call in PLANS:
        for before, after in GOLDEN.items():
            assert reach(mac, call, bytes.fromhex(before)) == [(call, 5, bytes.fromhex(after))]


# 3000 is 0bb8, 31007 is 791f; the family of IPv6 is 30 on Darwin.
GOLDEN = {
    "1002 0bb8 7f000001 0000000000000000": "1002 791f 7f000001 0000000000000000",
    "0002 0bb8 7f000001 0000000000000000": "1002 791f 7f000001 0000000000000000",
    "1002 0bb8 00000000 0000000000000000": "1002 791f 00000000 0000000000000000",
    f"1c1e 0bb8 00000000 {'00' * 15}01 00000000": f"1c1e 791f 00000000 {'00' * 15}01 00000000",
    f"001e 0bb8 00000007 {'00' * 16} 00000000": f"1c1e 791f 00000007 {'00' * 16} 00000000",
    f"1c1e 0bb8 00000000 {'00' * 10}ffff7f000001 00000009": f"1c1e 791f 00000000 {'00' * 10}ffff7f000001 00000009",
    "1002 0bb8 c0000201 0000000000000000": "1002 0bb8 c0000201 0000000000000000",
}


def test_the_bytes_that_reach_the_kernel(library: bytes) -> None:
    check_the_bytes(library)


def test_the_supervisor_is_asked_at_its_door(library: bytes) -> None:
    mac = Mac(library, content(PORT_MAP))
    mac.reply = REPLY.pack(MAGIC, 0, ANSWERED, 0)
    mac.socket_type = darwin.SOCK_DGRAM
    assert mac.give("bind", darwin.name("::", 4000)) == 0
    assert mac.kernel == [
        ("connect", darwin.DOOR_FD, darwin.name("127.0.0.1", DOOR)),
        ("bind", 5, darwin.name("::", ANSWERED)),
    ]
    assert mac.requests == [(4000, "0.0.0.0", 17, TOKEN)]


def test_a_socket_without_ports_is_left_alone(library: bytes) -> None:
    mac = Mac(library, content(PORT_MAP))
    mac.socket_type = darwin.SOCK_RAW
    assert reach(mac, "bind", darwin.name("127.0.0.1", 3000)) == [("bind", 5, darwin.name("127.0.0.1", 3000))]


@pytest.mark.parametrize(
    ("call", "result"), [("getsockname", 0), ("getpeername", 0), ("accept", 9), ("recvfrom", 3), ("recvmsg", 3)]
)
def test_the_way_back_is_what_the_program_asked_for(library: bytes, call: str, result: int) -> None:
    mac = Mac(library, content(PORT_MAP))
    for address in ADDRESSES:
        here = address not in ELSEWHERE
        told, known = darwin.name(address, BASE + 7), darwin.name(address, 3000 if here else BASE + 7)
        for room in (0, 2, 8, 15, 16, 27, 28, 128):
            mac.errno = KEPT
            assert mac.ask(call, told, room) == (result, known[:room], len(told))
            assert mac.errno == KEPT
        assert mac.ask(call, darwin.name(address, 3128))[1] == darwin.name(address, 3128), "passing"
    assert mac.ask(call, b"", 16) == (result, b"", 0), "no address, as of a connected socket"


@pytest.mark.parametrize("address", [*LOCAL, DEVICE])
def test_a_program_sees_the_device_as_it_wrote_it(library: bytes, address: str) -> None:
    mac = Mac(library, content(DEVICE_MAP))
    mac.reply = REPLY.pack(MAGIC, 0, 3000, 0)
    written = darwin.name(address, 3000)
    bound = reach(mac, "bind", written)[0][2]
    shown = darwin.name("::ffff:127.0.0.1" if address == "::ffff:0.0.0.0" else address, 3000)
    assert mac.ask("getsockname", bound) == (0, shown, len(shown))
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1", "::ffff:0.0.0.0": "::ffff:127.0.0.1"}.get(address, address)
    assert reach(mac, "connect", written)[0][2] == bound
    for call in ("getsockname", "getpeername"):
        assert mac.ask(call, bound)[1] == darwin.name(reached, 3000)


def test_who_listens_without_a_name_gets_one_in_the_window(library: bytes) -> None:
    mac = Mac(library, content(PORT_MAP))
    mac.reply = REPLY.pack(MAGIC, 0, ANSWERED, 0)
    mac.told, mac.errno = darwin.name("0.0.0.0", 0), KEPT
    assert (mac.machine.call("listen", 5, 1), mac.errno) == (0, KEPT)
    assert mac.kernel[1:] == [("bind", 5, darwin.name("0.0.0.0", ANSWERED)), ("listen", 5, b"")]
    mac.told = darwin.name("0.0.0.0", BASE + 7)
    mac.kernel.clear()
    assert mac.machine.call("listen", 5, 1) == 0
    assert mac.kernel == [("listen", 5, b"")]


@pytest.mark.parametrize("call", ["connect", "connectx"])
def test_no_family_is_ipv4_to_a_stream_and_no_peer_to_a_datagram_socket(library: bytes, call: str) -> None:
    """Darwin's kernel takes AF_UNSPEC for AF_INET in connect, too, but for datagram sockets; Linux never does."""
    name, changed = (bytes([16, 0]) + darwin.name("127.0.0.1", port)[2:] for port in (3000, BASE + 7))
    mac = Mac(library, content(PORT_MAP))
    assert reach(mac, call, name) == [(call, 5, changed)]
    mac.socket_type = darwin.SOCK_DGRAM
    assert reach(mac, call, name) == [(call, 5, name)]
    mac = Mac(library, None)
    assert (mac.give(call, name), mac.errno, mac.kernel) == (-1, EACCES, [])


def test_error_numbers_are_those_of_darwin(library: bytes) -> None:
    mac = Mac(library, content(DEVICE_MAP))
    mac.v6only = 1
    assert (mac.give("bind", darwin.name("::1", 3000)), mac.errno, mac.kernel) == (-1, EADDRNOTAVAIL, [])


def test_any_port_is_asked_for_again_when_it_was_taken_meanwhile(library: bytes) -> None:
    mac = Mac(library, content(PORT_MAP))
    mac.reply = REPLY.pack(MAGIC, 0, ANSWERED, 0)
    mac.bind_errors = [EADDRINUSE] * 3
    assert mac.give("bind", darwin.name("127.0.0.1", 0)) == 0
    assert len(mac.requests) == 4
    mac.bind_errors = [EADDRINUSE] * 4
    assert (mac.give("bind", darwin.name("127.0.0.1", 0)), mac.errno) == (-1, EADDRINUSE)
    mac.bind_errors = [EADDRINUSE] * 4
    mac.requests.clear()
    assert (mac.give("bind", darwin.name("127.0.0.1", 4000)), mac.errno) == (-1, EADDRINUSE)
    assert len(mac.requests) == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (REPLY.pack(MAGIC, EADDRINUSE, 0, 0), EADDRINUSE),
        (REPLY.pack(MAGIC, 0, 0, 0), EACCES),
        (REPLY.pack(MAGIC, -1, ANSWERED, 0), EACCES),
        (REPLY.pack(MAGIC + 1, 0, ANSWERED, 0), EACCES),
        (b"", EACCES),
    ],
)
def test_a_supervisor_that_refuses_or_talks_nonsense_is_a_refusal(library: bytes, reply: bytes, error: int) -> None:
    """INV-1."""
    mac = Mac(library, content(PORT_MAP))
    mac.reply = reply
    assert (mac.give("bind", darwin.name("127.0.0.1", 4000)), mac.errno) == (-1, error)
    assert [call for call, *_ in mac.kernel] == ["connect"], "the door, and no bind"
    assert not mac.descriptors


def refuses_what_is_local(mac: Mac) -> None:
    mac.told = darwin.name("127.0.0.1", BASE + 7)
    assert (mac.machine.call("listen", 5, 1), mac.errno) == (-1, EACCES)
    for call in PLANS:
        for address in LOCAL:
            mac.errno = 0
            assert (mac.give(call, darwin.name(address, 3000)), mac.errno) == (-1, EACCES)
    assert (mac.kernel, mac.requests) == ([], [])
    assert mac.give("connect", darwin.name("192.0.2.1", 3000)) == 0
    assert mac.ask("getsockname", darwin.name("127.0.0.1", BASE + 7))[1] == darwin.name("127.0.0.1", BASE + 7)
    assert not mac.descriptors


def check_a_missing_map(library: bytes) -> None:
    refuses_what_is_local(Mac(library, None))


@pytest.mark.attack(106)
def test_without_a_map_nothing_local_is_reached(library: bytes) -> None:
    """INV-1."""
    check_a_missing_map(library)


WRONG = [
    *(
        {"magic": 1},
        {"version": lib.NS_MAP_VERSION + 1},
        {"size": PORT_MAP.size - 1},
        {"size": PORT_MAP.size + 4},
        {"strategy": 0},
    ),
    *({"strategy": 4}, {"strategy": lib.NS_STRATEGY_DEVICE}, {"count": 0}, {"count": 4097}, {"base": 0}),
    *({"base": 65500}, {"door": 0}, {"passing_count": 65}),
]


def check_a_wrong_header(library: bytes) -> None:
    for fields in WRONG:
        refuses_what_is_local(Mac(library, content(table(lib.NS_STRATEGY_PORT, "0.0.0.0", **fields))))


@pytest.mark.attack(106)
def test_nonsense_in_the_header_is_no_map(library: bytes) -> None:
    check_a_wrong_header(library)


@pytest.mark.attack(106)
@pytest.mark.parametrize("size", [0, 1, 16, PORT_MAP.size - 1])
def test_a_short_file_is_no_map(library: bytes, size: int) -> None:
    refuses_what_is_local(Mac(library, content(PORT_MAP)[:size]))


@pytest.mark.attack(106)
def test_garbage_never_leads_out_of_the_map(library: bytes) -> None:
    """The byte after the map faults; a map that goes bad while it is in use is no map either."""
    chance = random.Random(106)
    mac = Mac(library, content(PORT_MAP))
    assert mac.give("connect", darwin.name("127.0.0.1", 3000)) == 0
    for _ in range(40):
        garbage = table(lib.NS_STRATEGY_PORT, "0.0.0.0")
        ffi.memmove(garbage, chance.randbytes(200), 200)
        garbage.sequence &= ~1
        if chance.random() < 0.8:
            garbage.magic, garbage.version, garbage.size = PORT_MAP.magic, PORT_MAP.version, PORT_MAP.size
            garbage.strategy, garbage.passing_count = chance.randrange(5), chance.randrange(80)
            garbage.count = chance.choice([0, 1, 4096, 4097, 65535])
        mac.rewrite_map(content(garbage))
        for call in ("connect", "sendto"):
            name = darwin.name(chance.choice(LOCAL), chance.randrange(65536))
            found = plan(PLANS[call], garbage, name)
            mac.kernel.clear()
            refused = mac.give(call, name) == -1
            assert refused is (found.verdict == lib.NS_REFUSE)
            assert mac.kernel == ([] if refused else [(call, 5, planned(found, name))])


def check_an_unfinished_map(library: bytes) -> None:
    mac = Mac(library, content(table(lib.NS_STRATEGY_PORT, "0.0.0.0", sequence=3)))
    assert (mac.give("connect", darwin.name("127.0.0.1", 3000)), mac.errno, mac.kernel) == (-1, EACCES, [])
    mac = Mac(library, content(PORT_MAP))
    assert mac.give("connect", darwin.name("127.0.0.1", 3000)) == 0
    mac.rewrite_map(content(table(lib.NS_STRATEGY_PORT, "0.0.0.0", sequence=5)))
    mac.naps = 0
    assert (mac.give("connect", darwin.name("127.0.0.1", 3000)), mac.errno, mac.naps) == (-1, EACCES, 100)


@pytest.mark.attack(106)
def test_a_writer_that_never_ends_is_no_map_and_nobody_waits_long(library: bytes) -> None:
    check_an_unfinished_map(library)


@pytest.mark.parametrize(
    ("unit", "before", "after", "check"),
    [
        ("rewrite.c", "plan->name[offsetof(struct sockaddr, sa_len)] = (uint8_t)plan->length;", "", check_the_bytes),
        ("sockaddr.c", "port = htons(port);", "", check_the_bytes),
        ("rewrite.c", "        refuse(plan, EACCES);\n        return 0;", "        return 0;", check_a_missing_map),
        ("map.c", "READ(map->size) == sizeof *map &&", "", check_a_wrong_header),
        ("map.c", "(before & 1) == 0", "1", check_an_unfinished_map),
    ],
)
def test_a_fault_in_the_sources_is_noticed(unit: str, before: str, after: str, check: Callable[[bytes], None]) -> None:
    """So that these tests are known to be able to fail."""
    faulty = darwin.with_fault(unit, before, after)
    assert Mac(faulty, content(PORT_MAP)).give("connect", darwin.name("192.0.2.1", 80)) == 0, "it runs, all the same"
    with pytest.raises(AssertionError):
        check(faulty)
