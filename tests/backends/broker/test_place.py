"""Addresses of calls as the broker reads them (native/place.c): what the kernel would refuse is refused."""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import socket
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.broker.arrivals import MAPPED
from tests.rig.native_units import Library

INET, INET6, UNIX, UNSPEC = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 0
ROOM = 129  # union address


class Places:
    """place.c, by its bytes."""

    def __init__(self, units: ctypes.CDLL) -> None:
        self._units = units

    def read(self, family: int, address: bytes) -> tuple[int, bytes, int]:
        """The errno, the address and the port; what is behind the given bytes is noise, as in a caller's memory."""
        given = ctypes.create_string_buffer(address + b"\xaa" * (ROOM - len(address)), ROOM)
        found = ctypes.create_string_buffer(20)
        number = self._units.place_read(family, given, len(address), found)
        return number, found.raw[:16], struct.unpack_from("=H", found.raw, 16)[0]

    def write(self, family: int, address: bytes, port: int) -> bytes:
        into = ctypes.create_string_buffer(ROOM)
        length = self._units.place_write(family, self._place(address, port), into)
        return into.raw[:length]

    def asks(self, question: str, address: bytes) -> bool:
        return bool(getattr(self._units, question)(self._place(address, 1)))

    def _place(self, address: bytes, port: int) -> Any:
        return ctypes.create_string_buffer(address + struct.pack("=HH", port, 0), 20)


@pytest.fixture(scope="session")
def places(library: Library) -> Places:
    return Places(library("place.c"))


def ipv4(address: bytes, port: int) -> bytes:
    return struct.pack("=H", INET) + port.to_bytes(2, "big") + address + bytes(8)


def ipv6(address: bytes, port: int, scope: bytes = bytes(4)) -> bytes:
    return struct.pack("=H", INET6) + port.to_bytes(2, "big") + bytes(4) + address + scope


def expected(family: int, given: bytes) -> tuple[int, bytes, int]:
    """inet_bind, inet6_bind and their connects, in words."""
    nothing = (bytes(16), 0)
    if len(given) < 2:
        return (errno.EINVAL, *nothing)
    (its,) = struct.unpack_from("=H", given)
    if len(given) >= 16 and its == INET:
        return 0, MAPPED + given[4:8], int.from_bytes(given[2:4], "big")
    if len(given) < (16 if family == INET else 24):
        return (errno.EINVAL, *nothing)
    if family == INET or its != INET6:
        return (errno.EAFNOSUPPORT, *nothing)
    return 0, given[8:24], int.from_bytes(given[2:4], "big")


ADDRESSES = st.one_of(
    st.builds(ipv4, st.binary(min_size=4, max_size=4), st.integers(0, 65535)),
    st.builds(ipv6, st.binary(min_size=16, max_size=16), st.integers(0, 65535), st.binary(min_size=4, max_size=4)),
    st.builds(lambda its, rest: struct.pack("=H", its) + rest, st.integers(0, 65535), st.binary(max_size=110)),
    st.binary(max_size=128),
)


@given(family=st.sampled_from([INET, INET6]), address=ADDRESSES)
def test_every_length_of_an_address_is_read_as_the_kernel_reads_it(places: Places, family: int, address: bytes) -> None:
    """Byte by byte: what is behind the length that the caller gave is never looked at."""
    for length in range(len(address) + 1):
        assert places.read(family, address[:length]) == expected(family, address[:length]), length


@given(address=st.ip_addresses(), port=st.integers(0, 65535))
def test_what_is_written_is_read_back(places: Places, address: Any, port: int) -> None:
    packed = address.packed if address.version == 6 else MAPPED + address.packed
    family = INET6 if address.version == 6 else INET
    assert places.read(family, places.write(family, packed, port)) == (0, packed, port)
    assert places.read(INET6, places.write(INET6, packed, port)) == (0, packed, port)


EDGES = ["0.0.0.0", "127.0.0.1", "127.0.0.2", "127.255.255.255", "126.255.255.255", "128.0.0.0", "::", "::1", "::2"]
EDGES += ["::127.0.0.1", "fe80::1", "64:ff9b::7f00:1", "::ffff:0.0.0.0", "::ffff:127.0.0.1", "::ffff:127.9.9.9"]


@given(address=st.one_of(st.sampled_from(EDGES).map(ipaddress.ip_address), st.ip_addresses()))
def test_what_is_local_is_what_python_calls_so(places: Places, address: Any) -> None:
    """The kernel takes a mapped address for the IPv4 address in it; Python does so from 3.13 on."""
    packed = address.packed if address.version == 6 else MAPPED + address.packed
    meant = ipaddress.ip_address(packed[12:]) if packed[:12] == MAPPED else address
    assert places.asks("is_loopback", packed) == meant.is_loopback
    assert places.asks("is_unspecified", packed) == meant.is_unspecified
    assert places.asks("is_localhost", packed) == (str(meant) in ("127.0.0.1", "::1"))
    assert places.asks("is_ipv4", packed) == (packed[:12] == MAPPED)
