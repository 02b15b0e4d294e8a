"""The rules of the strategies, as C has them: each address, each direction, and bytes that are no address at all."""

from __future__ import annotations

import errno
import socket
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose._native import ffi, lib

BASE, COUNT, DEVICE, DOOR = 31000, 50, "127.80.1.1", 1011
MAPPED = bytes(10) + b"\xff\xff"
LOCAL = ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"]
ELSEWHERE = ["192.0.2.1", "255.255.255.255", "126.255.255.255", "128.0.0.1", "::2", "fe80::1", "::ffff:192.0.2.1"]

ports = st.integers(1, 65535)
addresses = st.sampled_from(LOCAL + ELSEWHERE + [DEVICE, "::ffff:" + DEVICE, "127.0.0.2"])


def name(address: str, port: int) -> bytes:
    if ":" in address:
        packed = socket.inet_pton(socket.AF_INET6, address)
        return struct.pack("=H", socket.AF_INET6) + struct.pack("!HI16sI", port, 0, packed, 0)
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton(address))


def read(data: bytes) -> tuple[str, int]:
    (family,) = struct.unpack_from("=H", data)
    (port,) = struct.unpack_from("!H", data, 2)
    where = data[4:8] if family == socket.AF_INET else data[8:24]
    return socket.inet_ntop(family, where), port


def make_map(
    strategy: int, slots: dict[int, int] | None = None, device: str = DEVICE, passing: tuple[int, ...] = ()
) -> Any:
    table = ffi.new("struct ns_map *")
    table.magic, table.version, table.size = lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION, ffi.sizeof("struct ns_map")
    table.strategy, table.base, table.count, table.door = strategy, BASE, COUNT, DOOR
    table.device = list(socket.inet_aton(device))
    table.passing_count = len(passing)
    for place, port in enumerate(passing):
        table.passing[place] = port
    for slot, requested in (slots or {}).items():
        table.requested[slot], table.window[requested] = requested, BASE + slot
    return table


def plan(how: Any, table: Any, data: bytes, *more: int) -> Any:
    made = ffi.new("struct ns_plan *")
    how(table, data, len(data), *more, made)
    return made


def outcome(made: Any) -> tuple[str, int] | int:
    """The address to use, or the verdict."""
    if made.verdict == lib.NS_CHANGED:
        return read(bytes(made.name)[: made.length])
    return int(made.verdict)


def restore(table: Any, data: bytes, spelling: int = lib.NS_SPELT_DEFAULT) -> tuple[str, int]:
    buffer = ffi.new("char[]", data)
    lib.ns_restore(table, spelling, buffer, len(data))
    return read(bytes(ffi.buffer(buffer))[: len(data)])


PORT = make_map(lib.NS_STRATEGY_PORT, {7: 3000}, device="0.0.0.0", passing=(53, 3128))
DEVICE_MAP = make_map(lib.NS_STRATEGY_DEVICE, passing=(53,))
FAIL = make_map(lib.NS_STRATEGY_FAIL, device="0.0.0.0")
FAIL_ON_DEVICE = make_map(lib.NS_STRATEGY_FAIL)


@pytest.mark.parametrize("address", LOCAL)
def test_a_mapped_port_is_bound_and_reached_at_its_window_port(address: str) -> None:
    expected = read(name(address, BASE + 7))
    for how in (lib.ns_plan_bind, lib.ns_plan_connect, lib.ns_plan_send):
        assert outcome(plan(how, PORT, name(address, 3000))) == expected


@pytest.mark.parametrize("address", LOCAL)
def test_a_port_without_a_mapping_is_asked_for_to_bind_and_left_alone_to_connect(address: str) -> None:
    made = plan(lib.ns_plan_bind, PORT, name(address, 4000))
    as_v4 = "0.0.0.0" if address in ("0.0.0.0", "::", "::ffff:0.0.0.0") else "127.0.0.1"
    assert (made.verdict, made.port, socket.inet_ntoa(bytes(made.address))) == (lib.NS_REQUEST, 4000, as_v4)
    assert outcome(plan(lib.ns_plan_connect, PORT, name(address, 4000))) == lib.NS_PASS
    assert outcome(plan(lib.ns_plan_answer, PORT, name(address, 4000), BASE + 9)) == read(name(address, BASE + 9))


@pytest.mark.parametrize("table", [PORT, DEVICE_MAP])
@pytest.mark.parametrize("how", [lib.ns_plan_bind, lib.ns_plan_connect, lib.ns_plan_send])
def test_passing_ports_are_never_touched(table: Any, how: Any) -> None:
    assert outcome(plan(how, table, name("127.0.0.1", 53))) == lib.NS_PASS


@given(st.sampled_from(ELSEWHERE), st.integers(0, 65535), st.sampled_from([PORT, DEVICE_MAP, FAIL, ffi.NULL]))
def test_what_is_not_local_is_left_to_the_kernel_even_without_a_map(address: str, port: int, table: Any) -> None:
    for how in (lib.ns_plan_bind, lib.ns_plan_connect, lib.ns_plan_send):
        assert outcome(plan(how, table, name(address, port))) == lib.NS_PASS
    assert restore(table, name(address, port)) == read(name(address, port))


@pytest.mark.parametrize("address", LOCAL)
def test_without_a_map_everything_local_is_refused(address: str) -> None:
    """INV-1."""
    for how in (lib.ns_plan_bind, lib.ns_plan_connect, lib.ns_plan_send):
        made = plan(how, ffi.NULL, name(address, 3000))
        assert (made.verdict, made.error) == (lib.NS_REFUSE, errno.EACCES)


def test_an_answer_without_a_port_is_a_refusal() -> None:
    for table in (PORT, FAIL):
        made = plan(lib.ns_plan_answer, table, name("127.0.0.1", 4000), 0)
        assert (made.verdict, made.error) == (lib.NS_REFUSE, errno.EACCES)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", DEVICE),
        ("0.0.0.0", DEVICE),
        ("::1", "::ffff:" + DEVICE),
        ("::", "::ffff:" + DEVICE),
        ("::ffff:127.0.0.1", "::ffff:" + DEVICE),
        ("::ffff:0.0.0.0", "::ffff:" + DEVICE),
    ],
)
def test_localhost_is_the_device_and_the_port_stays(address: str, expected: str) -> None:
    assert plan(lib.ns_plan_bind, DEVICE_MAP, name(address, 3000)).verdict == lib.NS_REQUEST
    bound = plan(lib.ns_plan_answer, DEVICE_MAP, name(address, 3000), 9999)
    assert outcome(bound) == (expected, 3000)
    assert bool(bound.dual) is (":" in address)
    assert outcome(plan(lib.ns_plan_connect, DEVICE_MAP, name(address, 3000))) == (expected, 3000)
    assert outcome(plan(lib.ns_plan_answer, DEVICE_MAP, name(address, 0), 0)) == (expected, 0)


@pytest.mark.parametrize(
    ("requested", "spelling", "shown"),
    [
        ("127.0.0.1", lib.NS_SPELT_DEFAULT, "127.0.0.1"),
        ("0.0.0.0", lib.NS_SPELT_ANY4, "0.0.0.0"),
        ("::1", lib.NS_SPELT_ONE6, "::1"),
        ("::", lib.NS_SPELT_ANY6, "::"),
        ("::ffff:127.0.0.1", lib.NS_SPELT_DEFAULT, "::ffff:127.0.0.1"),
        (DEVICE, lib.NS_SPELT_DEVICE, DEVICE),
    ],
)
def test_the_way_back_from_the_device_is_what_the_program_wrote(requested: str, spelling: int, shown: str) -> None:
    bound = plan(lib.ns_plan_answer, DEVICE_MAP, name(requested, 3000), 3000)
    assert bound.spelling == spelling
    assert restore(DEVICE_MAP, bytes(bound.name)[: bound.length], spelling) == (shown, 3000)


def test_another_loopback_address_is_the_supervisors_to_refuse_and_not_rewritten() -> None:
    made = plan(lib.ns_plan_bind, DEVICE_MAP, name("127.0.0.9", 3000))
    assert (made.verdict, socket.inet_ntoa(bytes(made.address))) == (lib.NS_REQUEST, "127.0.0.9")
    assert outcome(plan(lib.ns_plan_answer, DEVICE_MAP, name("127.0.0.9", 3000), 3000)) == ("127.0.0.9", 3000)
    assert outcome(plan(lib.ns_plan_connect, DEVICE_MAP, name("127.0.0.9", 3000))) == lib.NS_PASS


@given(address=addresses, port=st.integers(0, 65535))
def test_strategy_fail_passes_only_the_window_on_the_allowed_device(address: str, port: int) -> None:
    inside = BASE <= port < BASE + COUNT
    local = address not in ELSEWHERE
    anywhere, on_device = (plan(lib.ns_plan_bind, table, name(address, port)) for table in (FAIL, FAIL_ON_DEVICE))
    assert anywhere.verdict == (lib.NS_PASS if inside or not local else lib.NS_REQUEST)
    assert on_device.verdict == (lib.NS_PASS if (inside and DEVICE in address) or not local else lib.NS_REQUEST)
    assert plan(lib.ns_plan_connect, FAIL, name(address, port)).verdict == lib.NS_PASS


@given(st.lists(ports, min_size=COUNT, max_size=COUNT, unique=True), st.sampled_from(LOCAL), st.data())
def test_the_rewriting_of_bind_is_undone_for_the_program(
    requested: list[int], address: str, data: st.DataObject
) -> None:
    """Attack 110: what the program sees is what it requested, whatever stands in the other slots."""
    table = make_map(lib.NS_STRATEGY_PORT, dict(enumerate(requested)), device="0.0.0.0")
    port = data.draw(st.sampled_from(requested))
    made = plan(lib.ns_plan_bind, table, name(address, port))
    assert made.verdict == lib.NS_CHANGED
    assert BASE <= read(bytes(made.name)[: made.length])[1] < BASE + COUNT
    assert restore(table, bytes(made.name)[: made.length]) == read(name(address, port))


@given(address=addresses, port=st.integers(0, 65535), length=st.integers(0, 28))
def test_a_short_address_is_left_to_the_kernel(address: str, port: int, length: int) -> None:
    whole = name(address, port)
    needed = 16 if len(whole) == 16 else 24
    for table in (PORT, DEVICE_MAP, FAIL, ffi.NULL):
        made = plan(lib.ns_plan_connect, table, whole[:length])
        assert length >= needed or made.verdict == lib.NS_PASS
        assert made.length <= length


@given(st.binary(max_size=140), st.sampled_from([PORT, DEVICE_MAP, FAIL, ffi.NULL]), st.integers(0, 65535))
def test_bytes_that_are_no_address_do_no_harm(data: bytes, table: Any, port: int) -> None:
    for how in (lib.ns_plan_bind, lib.ns_plan_connect, lib.ns_plan_send):
        assert plan(how, table, data).verdict in (lib.NS_PASS, lib.NS_CHANGED, lib.NS_REQUEST, lib.NS_REFUSE)
    assert plan(lib.ns_plan_answer, table, data, port).length <= min(len(data), 28)
    buffer = ffi.new("char[]", data + b"guard")
    for spelling in range(16):
        lib.ns_restore(table, spelling, buffer, len(data))
    assert bytes(ffi.buffer(buffer))[len(data) :] == b"guard\0"


def test_an_unspecified_family_means_ipv4_to_bind_and_send_and_nothing_to_connect() -> None:
    """connect(2) forgets the peer by it; bind(2) and udp(7) on Linux still take it for AF_INET."""
    data = b"\0\0" + name("0.0.0.0", 3000)[2:]
    assert plan(lib.ns_plan_connect, PORT, data).verdict == lib.NS_PASS
    for how in (lib.ns_plan_bind, lib.ns_plan_send):
        made = plan(how, PORT, data)
        assert (made.verdict, bytes(made.name)[:4]) == (lib.NS_CHANGED, b"\0\0" + struct.pack("!H", BASE + 7))
