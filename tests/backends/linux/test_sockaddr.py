"""Socket addresses as bytes: read as the kernel reads them, every length and every family."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.sockaddr import as_ipv4, read_endpoint, with_port, written
from netsandbox.backends.namespaces import remote_process

V4, V6 = socket.AF_INET, socket.AF_INET6
ports = st.integers(0, 65535)
families = st.sampled_from([V4, V6])


def inet(address: str, port: int, family: int = V4) -> bytes:
    return struct.pack("=H", family) + port.to_bytes(2, "big") + socket.inet_pton(V4, address) + bytes(8)


def inet6(address: str, port: int, *, flow: int = 0, scope: int = 0) -> bytes:
    packed = socket.inet_pton(V6, address)
    return struct.pack("=H", V6) + port.to_bytes(2, "big") + struct.pack("=I", flow) + packed + struct.pack("=I", scope)


@given(st.ip_addresses(v=4), ports, st.binary(max_size=20))
def test_ipv4_is_read_whole_and_what_follows_is_ignored(address, port, tail):
    assert read_endpoint(V4, inet(str(address), port) + tail) == (str(address), port)
    assert read_endpoint(V4, inet(str(address), port)[:8] + tail.ljust(8)) == (str(address), port)


@given(st.ip_addresses(v=6), ports, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_ipv6_is_read_whatever_its_flow_and_scope(address, port, flow, scope):
    found = read_endpoint(V6, inet6(str(address), port, flow=flow, scope=scope))
    assert found == (as_ipv4(address.packed), port)
    assert ipaddress.ip_address(found[0]) in (address, _meant(address))


def _meant(address):
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return {"::": ipaddress.ip_address("0.0.0.0"), "::1": ipaddress.ip_address("127.0.0.1")}.get(str(address), address)


@given(st.ip_addresses(v=6))
def test_one_spelling_for_each_meaning(address):
    assert ipaddress.ip_address(as_ipv4(address.packed)) == _meant(address)


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("::", "0.0.0.0"),
        ("::1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::ffff:0.0.0.0", "0.0.0.0"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::127.0.0.1", "::127.0.0.1"),
        ("::fffe:127.0.0.1", "::fffe:7f00:1"),
        ("64:ff9b::7f00:1", "64:ff9b::7f00:1"),
        ("fe80::1", "fe80::1"),
        ("100::1", "100::1"),
    ],
)
def test_only_what_the_kernel_takes_for_ipv4_is_called_so(address, meant):
    """INV-7: a spelling that is not loopback must not pass for it, and the reverse."""
    assert read_endpoint(V6, inet6(address, 7)) == (meant, 7)


@given(families, st.binary(max_size=40))
def test_any_bytes_are_an_endpoint_or_nothing(family, data):
    found = read_endpoint(family, data)
    if found is not None:
        assert len(data) >= (16 if family == V4 else 24)
        ipaddress.ip_address(found[0])
        assert found[1] == int.from_bytes(data[2:4], "big")


@pytest.mark.parametrize(("family", "shortest"), [(V4, 16), (V6, 24)])
def test_every_short_length_is_nothing(family, shortest):
    whole = inet("127.0.0.1", 80) if family == V4 else inet6("::1", 80)
    for length in range(len(whole) + 1):
        assert (read_endpoint(family, whole[:length]) is not None) == (length >= shortest), length


@pytest.mark.parametrize("family", [V4, V6])
def test_every_other_family_is_nothing(family):
    data = bytearray(inet6("::1", 80) if family == V6 else inet("127.0.0.1", 80) + bytes(12))
    taken = []
    for said in range(65536):
        data[:2] = struct.pack("=H", said)
        if read_endpoint(family, bytes(data)) is not None:
            taken.append(said)
    assert taken == ([V6] if family == V6 else [socket.AF_UNSPEC, V4])


@pytest.mark.parametrize("family", [V4, V6])
@pytest.mark.parametrize("said", [0, 1, 2, 3, 10, 16, 17, 0x0200, 0xFFFF])
@pytest.mark.parametrize("length", [0, 1, 2, 8, 15, 16, 23, 24, 28, 128])
def test_whatever_the_kernel_binds_we_have_read(family, said, length):
    """The kernel is asked: where it says yes, address and port are what we read; what we do not read it refuses."""
    whole = struct.pack("=H", said) + bytes(6) + bytes(120)
    read = read_endpoint(family, whole[:length])
    with socket.socket(family) as sock:
        number = remote_process.bind(sock.fileno(), whole[:length])
        if read is None:
            assert number in (errno.EINVAL, errno.EAFNOSUPPORT), os.strerror(number)
        else:
            assert number == 0, os.strerror(number)
            assert sock.getsockname()[0] in ("0.0.0.0", "::")


@given(families, st.binary(min_size=16, max_size=40), ports, ports)
def test_another_port_changes_nothing_else(family, data, first, second):
    changed = with_port(data, first)
    assert len(changed) == len(data)
    assert (changed[:2], changed[4:]) == (data[:2], data[4:])
    assert int.from_bytes(changed[2:4], "big") == first
    assert with_port(changed, second) == with_port(data, second)


@given(st.ip_addresses(), ports)
def test_what_is_written_is_what_the_kernel_reads(address, port):
    data = written(V4 if address.version == 4 else V6, str(address), port)
    assert data == (inet(str(address), port) if address.version == 4 else inet6(str(address), port))


@pytest.mark.parametrize(("family", "address"), [(V4, "0.0.0.0"), (V6, "::"), (V4, "127.0.0.1"), (V6, "::1")])
def test_what_is_written_can_be_bound(family, address):
    with socket.socket(family) as sock:
        assert remote_process.bind(sock.fileno(), written(family, address, 0)) == 0
        assert sock.getsockname()[0] == address
