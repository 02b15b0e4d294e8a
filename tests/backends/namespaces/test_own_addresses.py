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

from netsandbox.backends.namespaces import own_addresses
from netsandbox.backends.namespaces.own_addresses import FRESH_SECONDS, OwnAddresses, parse_fib_trie, parse_if_inet6

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
    assert {address.text for address in parse_fib_trie(FIB_TRIE)} == {"192.0.2.17", "127.0.0.1"}


def test_ipv6_addresses_are_read_from_their_hex() -> None:
    assert {address.text for address in parse_if_inet6(IF_INET6)} == {"::1", "2001:db8::17"}


@given(st.text(alphabet="0123456789abcdef.|/-+ \n\tLOCAhost32", max_size=300))
def test_text_of_any_other_kind_gives_no_address_and_no_error(text: str) -> None:
    for address in parse_fib_trie(text):
        assert address.version == 4


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


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert own_addresses._read(str(tmp_path / "absent")) == ""


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
