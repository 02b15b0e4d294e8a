"""The host's own addresses are read as the kernel tells them, and again when interfaces change."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux import own_addresses
from netsandbox.backends.linux.own_addresses import (
    FRESH_SECONDS,
    LocalAddresses,
    OwnAddresses,
    parse_fib_trie,
    parse_if_inet6,
    parse_ipv6_route,
)
from netsandbox.policy.address_guard import OWN, guarded
from netsandbox.policy.ip import Address, parse

FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.0
           /24 link UNICAST
        |-- 192.0.2.17
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
Local:
     |-- 127.0.0.1
        /32 host LOCAL
"""
IF_INET6 = """\
00000000000000000000000000000001 01 80 10 80       lo
20010db8000000000000000000000017 02 40 00 80     eth0
"""


def test_local_addresses_are_told_from_networks_and_broadcasts() -> None:
    assert {address.text for address, _ in parse_fib_trie(FIB_TRIE)} == {"192.0.2.17", "127.0.0.1"}


def test_ipv6_addresses_are_read_from_their_hex() -> None:
    assert {address.text for address, _ in parse_if_inet6(IF_INET6)} == {"::1", "2001:db8::17"}


WIDE_TRIE = """\
Local:
     +-- 203.0.113.0/24 2 0 2
        |-- 203.0.113.0
           /24 host LOCAL
        |-- 203.0.113.128
           /25 link UNICAST
     |-- 127.0.0.0
        /31 link UNICAST
        /8 host LOCAL
"""
IPV6_ROUTES = """\
20010db8000700000000000000000000 30 0000 00 0000 00000400 00000001 00000000 80200001       lo
20010db8000000000000000000000005 80 0000 00 0000 00000000 00000003 00000000 00300001     eth0
20010db8000800000000000000000000 30 0000 00 0000 00000400 00000001 00000000 00000001     eth0
"""


def held(text: str, local: LocalAddresses) -> bool:
    address = parse(text)
    assert address is not None
    assert (guarded(address, local) == OWN) is (address in local)
    return address in local


@pytest.mark.attack(231)
def test_every_address_of_a_wide_local_route_reaches_the_host() -> None:
    local = LocalAddresses([*parse_fib_trie(WIDE_TRIE), *parse_ipv6_route(IPV6_ROUTES)])
    assert local
    for text in ("203.0.113.0", "203.0.113.9", "203.0.113.255", "2001:db8:7::", "2001:db8:7:ffff::1", "2001:db8::5"):
        assert held(text, local), text
    for text in ("203.0.114.0", "2001:db8:8::1", "2001:db8::6", "::203.0.112.9"):
        assert not held(text, local), text
    assert guarded(Address(6, 0x64FF9B << 96 | 0xCB007109), local) == OWN  # the same behind NAT64


@pytest.mark.attack(231)
@pytest.mark.parametrize("name", ["ROUTES4", "ADDRESSES6", "ROUTES6"])
def test_a_list_that_cannot_be_read_lets_nothing_through(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the absence of IPv6 is no error: then its lists are not there, and that for IPv4 is."""
    monkeypatch.setattr(own_addresses, name, str(tmp_path))  # a folder cannot be read, even by root
    with pytest.raises(OSError, match="directory"):
        OwnAddresses(lambda: 0.0)()
    monkeypatch.setattr(own_addresses, name, str(tmp_path / "absent"))
    if name == "ROUTES4":
        with pytest.raises(FileNotFoundError):
            OwnAddresses(lambda: 0.0)()
    else:
        assert "127.0.0.1" in {address.text for address in OwnAddresses(lambda: 0.0)()}


@given(st.text(alphabet="0123456789abcdef.|/-+ \n\tLOCAhost32", max_size=300))
def test_text_of_any_other_kind_gives_no_address_and_no_error(text: str) -> None:
    for address, length in parse_fib_trie(text):
        assert (address.version, 0 <= length <= 32) == (4, True)
    for address, length in (*parse_if_inet6(text), *parse_ipv6_route(text)):
        assert (address.version, 0 <= length <= 128) == (6, True)


def test_this_machines_own_addresses_are_found() -> None:
    found = {address.text for address in OwnAddresses(lambda: 0.0)()}
    assert "127.0.0.1" in found
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; only chooses a source
        except OSError:
            return
        assert probe.getsockname()[0] in found


def test_they_are_read_again_after_a_while_and_the_object_changes_only_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack 94: callers keep what they decided as long as they get the same object."""
    now, text = [0.0], [FIB_TRIE]
    monkeypatch.setattr(own_addresses, "_read", lambda path: text[0] if path.endswith("fib_trie") else "")
    own = OwnAddresses(lambda: now[0])
    first = own()
    text[0] = FIB_TRIE.replace("192.0.2.17", "192.0.2.18")
    now[0] = FRESH_SECONDS
    assert own() is first
    now[0] = FRESH_SECONDS + 0.1
    changed = own()
    assert {address.text for address in changed} == {"192.0.2.18", "127.0.0.1"}
    now[0] += FRESH_SECONDS + 0.1
    assert own() is changed


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.attack(195)
def test_without_a_descriptor_what_was_known_stays_closed() -> None:
    """INV-1: a command that takes up every descriptor does not open the host's own addresses by that."""
    now = [0.0]
    own = OwnAddresses(lambda: now[0])
    first = own()
    now[0] = FRESH_SECONDS + 0.1
    with no_descriptor_left():
        assert own() is first
    assert own() == first


@pytest.mark.attack(195)
def test_before_anything_is_known_a_question_that_fails_is_no_answer() -> None:
    own = OwnAddresses(lambda: 0.0)
    with no_descriptor_left(), pytest.raises(OSError, match="Too many open files"):
        own()
    assert "127.0.0.1" in {address.text for address in own()}
