"""The broker's plan: steps in the order of native/setup.h, and addresses that no other session has."""

from __future__ import annotations

import ipaddress
import re
import struct

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.broker import plan
from tests.rig.native_units import FOLDERS


def steps(data: bytes) -> list[tuple[bytes, bytes]]:
    found = []
    while data:
        (length,) = struct.unpack_from("=I", data, 1)
        found.append((data[:1], data[5 : 5 + length]))
        data = data[5 + length :]
    return found


def words(payload: bytes) -> tuple[int, ...]:
    return struct.unpack(f"={len(payload) // 4}I", payload)


def test_a_whole_plan() -> None:
    made = plan.build(
        (1, 2, 3, 1),
        [5432, 6379],
        (b"first", b"second", b"third"),
        handled=0xFFFF,
        permits=[(4, "/usr"), (7, "/home/me/\udcff")],
        sockets="/state",
        limits=b"Z\4\0\0\0abcd",
        working="/home/me",
    )
    assert steps(made) == [
        (b"N", struct.pack("=4I", 1, 2, 3, 1)),
        (b"O", struct.pack("=I", 5432)),
        (b"O", struct.pack("=I", 6379)),
        (b"Z", b"abcd"),
        (b"H", struct.pack("=II", 0xFFFF, 3)),
        (b"P", struct.pack("=I", 4) + b"/usr\0"),
        (b"P", struct.pack("=I", 7) + b"/home/me/\xff\0"),
        (b"S", b"/state\0"),
        (b"W", b"/home/me\0"),
        (b"F", b"first"),
        (b"F", b"second"),
        (b"F", b"third"),
    ]


def test_the_command_begins_here_if_no_folder_is_named() -> None:
    made = plan.build((1, 2, 3, 0), (), (b"", b"", b""), handled=0, permits=(), sockets="/")
    assert [operation for operation, _ in steps(made)] == [b"N", b"H", b"S", b"F", b"F", b"F"]


def test_tcp_is_always_taken_away() -> None:
    """Landlock's rights to bind and to connect (INV-7)."""
    made = plan.build((1, 2, 3, 0), (), (b"", b"", b""), handled=0, permits=(), sockets="/")
    assert words(dict(steps(made))[b"H"]) == (0, 3)


@given(
    base=st.integers(1024, 65535), other=st.integers(1024, 65535), device=st.ip_addresses(v=4, network="127.0.0.0/8")
)
def test_addresses_are_of_the_loopback_and_of_one_session(base: int, other: int, device: ipaddress.IPv4Address) -> None:
    own = plan.addresses(base, str(device))
    assert own[0] == int(device)
    assert all(ipaddress.ip_address(number).is_loopback for number in own)
    assert own[1] != own[2]
    if other != base:
        assert not set(own[1:]) & set(plan.addresses(other, str(device))[1:])


def test_the_doors_are_in_the_order_of_the_header() -> None:
    text = (FOLDERS[0] / "setup.h").read_text()
    listed = re.findall(r"^    DOOR_(\w+)", text, re.MULTILINE)
    assert listed == ["MIXED", "TRANSPARENT", "DNS", "DATAGRAMS", "DROPPED", "HOST"]
    assert plan.DOORS == ("mixed", "transparent", "dns-tcp", "dns", "udp")
