"""Names, as the library looks them up that is compiled for macOS: on an emulated processor, in Darwin's structs."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable

import dnslib
import pytest
from netsandbox_interpose._native import lib

pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
pytest.importorskip("unicorn", reason="no emulated processor (package unicorn of the test extra)")

from tests.rig import darwin
from tests.rig import darwin_names as names
from tests.rig.darwin import AF_INET, AF_INET6
from tests.rig.darwin_names import AI_CANONNAME, AI_NUMERICHOST, AI_V4MAPPED, Asked, MacWithNames
from tests.rig.mac_map import content, table

RESOLVER, KEPT = 4102, 77
MAP = table(lib.NS_STRATEGY_PORT, "0.0.0.0", resolver=RESOLVER)
POOL = ["198.18.0.1", "198.18.0.2"]


def within(address: str) -> ipaddress.IPv6Address:
    return ipaddress.IPv6Address(f"::ffff:{address}")


def found(question: bytes) -> list[bytes]:
    reply = dnslib.DNSRecord.parse(question).reply()
    for address in POOL:
        reply.add_answer(*dnslib.RR.fromZone(f"{reply.q.qname} 60 A {address}"))
    return [bytes(reply.pack())]


def refusing(rcode: int) -> Callable[[bytes], list[bytes]]:
    def refuse(question: bytes) -> list[bytes]:
        reply = dnslib.DNSRecord.parse(question).reply()
        reply.header.rcode = rcode
        return [bytes(reply.pack())]

    return refuse


def made(library: bytes, port_map: bytes | None = content(MAP)) -> MacWithNames:
    mac = MacWithNames(library, port_map)
    mac.resolve = found
    return mac


@pytest.fixture
def mac(library: bytes) -> MacWithNames:
    return made(library)


def check_a_lookup(library: bytes) -> None:
    mac = made(library)
    mac.errno = KEPT
    entries = [(address, 443, None) for address in POOL]
    assert (mac.getaddrinfo("example.com", "443"), mac.errno) == ((0, entries), KEPT)
    head = struct.pack(">HHHHHH", names.ID, 0x100, 1, 0, 0, 0)
    assert mac.questions == [head + b"\7example\3com\0\0\1\0\1"]
    assert mac.kernel == [("connect", darwin.DOOR_FD, darwin.name("127.0.0.1", RESOLVER))]
    assert mac.real == [Asked(address.encode(), b"443", AI_NUMERICHOST, 0) for address in POOL]
    assert (mac.descriptors, mac.freed) == (set(), [])


def test_a_name_is_one_question_and_a_list_of_the_systems_for_each_address(library: bytes) -> None:
    check_a_lookup(library)


def test_hints_go_to_the_system_but_for_what_is_answered_here(mac: MacWithNames) -> None:
    flags = AI_CANONNAME | names.AI_ADDRCONFIG | AI_V4MAPPED
    entries = [(POOL[0], 80, "example.com"), (POOL[1], 80, None)]
    assert mac.getaddrinfo("example.com.", "80", flags, AF_INET) == (0, entries)
    assert {(asked.flags, asked.family) for asked in mac.real} == {(AI_NUMERICHOST | AI_V4MAPPED, AF_INET)}
    assert mac.getaddrinfo("example.com", None, hints=False)[1] == [(address, 0, None) for address in POOL]


def test_ipv6_is_ipv4_within_it_or_nothing(mac: MacWithNames) -> None:
    assert mac.getaddrinfo("example.com", "80", 0, AF_INET6) == (names.EAI_NONAME, [])
    assert mac.real == []
    for flag in (AI_V4MAPPED, names.AI_V4MAPPED_CFG):
        error, entries = mac.getaddrinfo("example.com", "80", flag, AF_INET6)
        assert (error, [ipaddress.IPv6Address(entry[0]) for entry in entries]) == (0, [within(one) for one in POOL])


def test_a_list_that_cannot_be_finished_is_freed(mac: MacWithNames) -> None:
    mac.real_errors = [names.EAI_SERVICE]
    assert (mac.getaddrinfo("example.com", "unknown"), mac.freed) == ((names.EAI_SERVICE, []), [])
    mac.real_errors = [0, names.EAI_MEMORY]
    assert mac.getaddrinfo("example.com", "80") == (names.EAI_MEMORY, [])
    assert len(mac.freed) == 1


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST.", "shop.localhost"])
def test_localhost_is_known_without_asking(mac: MacWithNames, name: str) -> None:
    assert mac.getaddrinfo(name, "80") == (0, [("127.0.0.1", 80, None), ("::1", 80, None)])
    assert mac.getaddrinfo(name, "80", 0, AF_INET) == (0, [("127.0.0.1", 80, None)])
    assert mac.getaddrinfo(name, "80", 0, AF_INET6) == (0, [("::1", 80, None)])
    assert mac.gethostbyname(name) == (name.removesuffix("."), AF_INET, ["127.0.0.1"])
    assert mac.gethostbyname(name, AF_INET6) == (name.removesuffix("."), AF_INET6, ["::1"])
    assert (mac.questions, mac.kernel) == ([], [])


@pytest.mark.parametrize("node", ["192.0.2.1", "127.1", "::1", "fe80::1%en0", "a:b", ""])
def test_numbers_are_the_systems_to_read_and_not_to_look_up(mac: MacWithNames, node: str) -> None:
    mac.getaddrinfo(node, "80", AI_CANONNAME)
    assert mac.real == [Asked(node.encode(), b"80", AI_CANONNAME | AI_NUMERICHOST, 0)]
    assert mac.questions == []


def test_what_needs_no_answer_goes_to_the_system_as_it_is(mac: MacWithNames) -> None:
    mac.getaddrinfo(None, "80", 1)
    mac.getaddrinfo("example.com", "80", AI_NUMERICHOST)
    assert mac.real == [Asked(None, b"80", 1, 0), Asked(b"example.com", b"80", AI_NUMERICHOST, 0)]
    assert mac.gethostbyname("192.0.2.1") == 0
    assert mac.gethostbyname("192.0.2.1 example.com") == names.HOST_NOT_FOUND, "which inet_aton takes for a number"
    assert mac.real_hosts == [(b"192.0.2.1", AF_INET)]
    assert mac.questions == []


FAILURES = {
    2: (names.EAI_AGAIN, names.TRY_AGAIN),
    3: (names.EAI_NONAME, names.HOST_NOT_FOUND),
    5: (names.EAI_NONAME, names.HOST_NOT_FOUND),
}


def check_the_failures(library: bytes) -> None:
    for rcode, (error, host_error) in FAILURES.items():
        mac = made(library)
        mac.resolve = refusing(rcode)
        assert mac.getaddrinfo("denied.test", "80") == (error, [])
        assert mac.gethostbyname("denied.test") == host_error
        assert (mac.real, mac.real_hosts, mac.descriptors) == ([], [], set())


def test_errors_are_darwins_and_the_system_is_not_asked_after_them(library: bytes) -> None:
    """INV-1."""
    check_the_failures(library)


def test_a_silent_resolver_is_asked_three_times_and_a_lost_one_once(mac: MacWithNames) -> None:
    mac.resolve = lambda question: []
    assert mac.getaddrinfo("example.com", "80") == (names.EAI_AGAIN, [])
    assert len(mac.questions) == 3
    mac.questions.clear()
    mac.send_error = 61  # ECONNREFUSED: what came back of the question before
    assert mac.getaddrinfo("example.com", "80") == (names.EAI_FAIL, [])
    assert mac.gethostbyname("example.com") == names.NO_RECOVERY
    assert (mac.real, mac.real_hosts, mac.descriptors) == ([], [], set())


def test_hosts_have_every_address(mac: MacWithNames) -> None:
    assert mac.gethostbyname("example.com.") == ("example.com", AF_INET, POOL)
    assert mac.gethostbyname("example.com", AF_INET) == ("example.com", AF_INET, POOL)
    assert mac.gethostbyname("example.com", AF_INET6) == names.NO_DATA
    answers = [mac.gethostbyname(f"host{number}.test") for number in range(40)]
    assert answers == [(f"host{number}.test", AF_INET, POOL) for number in range(40)]


@pytest.mark.parametrize("port_map", [None, content(table(lib.NS_STRATEGY_PORT, "0.0.0.0"))])
def test_without_a_resolver_the_system_is_asked(library: bytes, port_map: bytes | None) -> None:
    mac = made(library, port_map)
    assert mac.getaddrinfo("example.com", "80", 3, AF_INET) == (names.EAI_NONAME, [])
    assert mac.real == [Asked(b"example.com", b"80", 3, AF_INET)]
    mac.gethostbyname("example.com")
    assert mac.real_hosts == [(b"example.com", AF_INET)]


@pytest.mark.attack(106)
def test_a_map_that_went_bad_is_a_failure(mac: MacWithNames) -> None:
    """INV-1."""
    assert mac.getaddrinfo("example.com", "80")[0] == 0
    mac.real.clear()
    for wrong in ({"magic": 1}, {"count": 0}, {"strategy": 9}):
        mac.rewrite_map(content(table(lib.NS_STRATEGY_PORT, "0.0.0.0", resolver=RESOLVER, **wrong)))
        assert mac.getaddrinfo("example.com", "80") == (names.EAI_FAIL, [])
        assert mac.gethostbyname("example.com") == names.NO_RECOVERY
    assert (mac.real, mac.real_hosts) == ([], [])


test_a_fault_in_the_sources_is_noticed = darwin.noticed(
    ("getaddrinfo.c", "request->last->ai_next = more;", "", check_a_lookup),
    ("dns.c", "rcode == NXDOMAIN || rcode == REFUSED", "rcode == NXDOMAIN", check_the_failures),
    ("resolver.c", "close(fd);", "", check_a_lookup),
)
