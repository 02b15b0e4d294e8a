"""Reading and writing addresses agrees with the C library and with `ipaddress` (INV-2)."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netsandbox.policy.ip import Address, parse, parse4, parse6, unmapped

ALPHABET4 = "0123456789.x"
ALPHABET6 = "0123456789abcdefF:.%[]"


def c_library(family: int, text: str) -> int | None:
    try:
        return int.from_bytes(socket.inet_pton(family, text), "big")
    except (OSError, ValueError):
        return None


@given(st.integers(0, 2**32 - 1))
def test_every_ipv4_is_written_as_ipaddress_writes_it_and_read_back(value):
    text = Address(4, value).text
    assert text == str(ipaddress.IPv4Address(value))
    assert parse(text) == Address(4, value)


@given(st.one_of(st.integers(0, 2**128 - 1), st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF]), min_size=8, max_size=8)))
def test_every_ipv6_is_written_in_rfc_5952_form_and_read_back(source):
    value = source if isinstance(source, int) else int.from_bytes(b"".join(g.to_bytes(2, "big") for g in source), "big")
    address = Address(6, value)
    reference = ipaddress.IPv6Address(value)
    if reference.ipv4_mapped is None:
        assert address.text == ipaddress.IPv6Address(value).compressed
    else:
        assert address.text == f"::ffff:{reference.ipv4_mapped}"
    assert parse(address.text) == address


@pytest.mark.attack(87)
@given(st.text(ALPHABET4, max_size=18))
@example("1.2.3.04")
@example("1.2.3")
@example("1.2.3.4.5")
@example("256.1.1.1")
def test_ipv4_reading_agrees_with_inet_pton(text):
    assert parse4(text) == c_library(socket.AF_INET, text)


@pytest.mark.attack(87)
@given(st.text(ALPHABET6, max_size=46))
@example("::")
@example("1:2:3:4:5:6:7::")
@example("::2:3:4:5:6:7:8")
@example("1:2:3:4::5:6:7:8")
@example("1::2::3")
@example("::ffff:1.2.3.4")
@example("1.2.3.4::")
@example("::1.2.3.4:5")
@example(":::")
@example("1:")
@example(":1")
@example("::00001")
@example("fe80::1%lo")
def test_ipv6_reading_agrees_with_inet_pton(text):
    assert parse6(text) == c_library(socket.AF_INET6, text)


@given(st.lists(st.sampled_from(["", "0", "1", "ffff", "12345", "g", "1.2.3.4", "01.2.3.4"]), max_size=10))
def test_ipv6_reading_agrees_with_inet_pton_on_group_soup(groups):
    text = ":".join(groups)
    assert parse6(text) == c_library(socket.AF_INET6, text)


@pytest.mark.parametrize("text", ["\uff11.1.1.1", "\u0661.1.1.1", "1.1.1.1 ", "", "::\uff11", "²::"])
def test_digits_of_other_scripts_spell_no_address(text):
    assert parse(text) is None


def test_a_mapped_address_is_the_ipv4_address_it_maps():
    mapped = parse("::ffff:192.0.2.1")
    assert mapped is not None
    assert unmapped(mapped).text == "192.0.2.1"
    plain = Address(6, 1)
    assert unmapped(plain) is plain
