"""Which door takes what is meant for elsewhere, as C has it: each address, each protocol, and bytes that are none."""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose._native import ffi, lib

EGRESS, RESOLVER, TOKEN = 4101, 4102, bytes(range(100, 116))
LOCAL = ["127.0.0.1", "127.255.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"]
NO_PORTS = 0


def name(address: str, port: int, family: int | None = None) -> bytes:
    packed = ipaddress.ip_address(address).packed
    if len(packed) == 4:
        return struct.pack("=H", socket.AF_INET if family is None else family) + struct.pack("!H4s8x", port, packed)
    return struct.pack("=H", socket.AF_INET6) + struct.pack("!HI16sI", port, 0, packed, 0)


def make_map(**fields: int) -> Any:
    table = ffi.new("struct ns_map *")
    table.magic, table.version, table.size = lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION, ffi.sizeof("struct ns_map")
    table.strategy, table.base, table.count, table.door = lib.NS_STRATEGY_PORT, 31000, 50, 1011
    table.egress, table.resolver, table.token = EGRESS, RESOLVER, list(TOKEN)
    for field, value in fields.items():
        setattr(table, field, value)
    return table


def route(table: Any, data: bytes, protocol: int, unspecified: int = socket.AF_UNSPEC) -> Any:
    found = ffi.new("struct ns_route *")
    lib.ns_route_plan(table, data, len(data), unspecified, protocol, found)
    return found


def target(found: Any) -> bytes:
    return bytes(found.name)[: found.length]


@given(st.ip_addresses(), st.integers(0, 65535), st.sampled_from([lib.NS_TCP, lib.NS_UDP, NO_PORTS]))
def test_each_destination_has_its_route(address: Any, port: int, protocol: int) -> None:
    found = route(make_map(), name(str(address), port), protocol)
    within = address.ipv4_mapped if address.version == 6 else address
    local = (within or address).is_loopback or (within or address).is_unspecified
    home = "127.0.0.1" if address.version == 4 else "::1"
    if local or protocol == NO_PORTS or (protocol == lib.NS_UDP and port != 53):
        assert found.kind == lib.NS_ROUTE_NONE
    elif port == 53:
        assert (found.kind, target(found)) == (lib.NS_ROUTE_RESOLVER, name(home, RESOLVER))
    else:
        assert (found.kind, target(found)) == (lib.NS_ROUTE_EGRESS, name(home, EGRESS))
        packed = (within or address).packed
        head = bytes([1, 4 if within else 6]) + struct.pack("!H", port)
        assert bytes(ffi.buffer(ffi.addressof(found.preamble))) == head + packed.ljust(16, b"\0") + TOKEN


def test_the_preamble_byte_by_byte() -> None:
    found = route(make_map(), name("::ffff:192.0.2.1", 443), lib.NS_TCP)
    expected = "0104 01bb c0000201 000000000000000000000000" + TOKEN.hex()
    assert bytes(ffi.buffer(ffi.addressof(found.preamble))) == bytes.fromhex(expected)


@pytest.mark.parametrize("address", LOCAL)
@pytest.mark.parametrize("port", [53, 443])
def test_what_is_local_has_no_door_here(address: str, port: int) -> None:
    for protocol in (lib.NS_TCP, lib.NS_UDP):
        assert route(make_map(), name(address, port), protocol).kind == lib.NS_ROUTE_NONE
    assert not lib.ns_is_elsewhere(name(address, port), len(name(address, port)), socket.AF_UNSPEC)


def test_a_door_that_is_not_there_takes_nothing() -> None:
    dns, web = name("192.0.2.1", 53), name("192.0.2.1", 443)
    assert route(make_map(resolver=0), dns, lib.NS_UDP).kind == lib.NS_ROUTE_NONE
    assert route(make_map(resolver=0), dns, lib.NS_TCP).kind == lib.NS_ROUTE_EGRESS
    assert route(make_map(egress=0), web, lib.NS_TCP).kind == lib.NS_ROUTE_NONE
    assert route(make_map(egress=0), dns, lib.NS_TCP).kind == lib.NS_ROUTE_RESOLVER
    assert route(ffi.NULL, web, lib.NS_TCP).kind == lib.NS_ROUTE_NONE


@pytest.mark.parametrize("wrong", [{"magic": 1}, {"version": 1}, {"sequence": 1}, {"count": 0}, {"strategy": 9}])
def test_a_map_that_makes_no_sense_is_a_refusal(wrong: dict[str, int]) -> None:
    """INV-1."""
    table = make_map(**wrong)
    assert route(table, name("192.0.2.1", 443), lib.NS_TCP).kind == lib.NS_ROUTE_REFUSE
    assert route(table, name("192.0.2.1", 53), lib.NS_UDP).kind == lib.NS_ROUTE_REFUSE
    assert route(table, name("192.0.2.1", 443), lib.NS_UDP).kind == lib.NS_ROUTE_NONE


def test_no_family_means_what_the_caller_says() -> None:
    data = name("192.0.2.1", 443, socket.AF_UNSPEC)
    assert route(make_map(), data, lib.NS_TCP, socket.AF_UNSPEC).kind == lib.NS_ROUTE_NONE
    found = route(make_map(), data, lib.NS_TCP, socket.AF_INET)
    assert (found.kind, target(found)) == (lib.NS_ROUTE_EGRESS, name("127.0.0.1", EGRESS))


@given(st.binary(max_size=140), st.sampled_from([lib.NS_TCP, lib.NS_UDP]))
def test_no_bytes_lead_past_their_end(data: bytes, protocol: int) -> None:
    exact = ffi.new("uint8_t[]", data or b"\0")
    found = ffi.new("struct ns_route *")
    lib.ns_route_plan(make_map(), exact, len(data), socket.AF_INET, protocol, found)
    internet = len(data) >= 16 and data[0:2] in (struct.pack("=H", 0), struct.pack("=H", socket.AF_INET))
    assert found.kind == lib.NS_ROUTE_NONE or internet or len(data) >= 24


@pytest.mark.parametrize(
    ("address", "port", "is_door"),
    [
        *[("127.0.0.1", EGRESS, 1), ("::1", EGRESS, 1), ("127.0.0.1", RESOLVER, 1), ("::1", RESOLVER, 1)],
        *[("127.0.0.1", 80, 0), ("192.0.2.1", EGRESS, 0), ("0.0.0.0", EGRESS, 0), ("127.0.0.1", 0, 0)],
    ],
)
def test_a_door_is_known_by_its_address(address: str, port: int, is_door: int) -> None:
    data = name(address, port)
    assert lib.ns_route_is_door(make_map(), data, len(data)) == is_door
    assert lib.ns_route_is_door(make_map(egress=0, resolver=0), data, len(data)) == 0
    assert lib.ns_route_is_door(ffi.NULL, data, len(data)) == 0
