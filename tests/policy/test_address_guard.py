"""The address guard names every range that no public name should lead to, and no other (INV-4)."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.address_guard import guarded
from netsandbox.policy.ip import Address, parse

CARRIERS = {
    "compatible": lambda v4: v4,
    "mapped": lambda v4: 0xFFFF << 32 | v4,
    "translated": lambda v4: 0xFFFF << 48 | v4,
    "nat64": lambda v4: 0x64FF9B << 96 | v4,
    "6to4": lambda v4: 0x2002 << 112 | v4 << 80,
    "teredo client": lambda v4: 0x20010000 << 96 | 0xC0000201 << 64 | v4 ^ 0xFFFFFFFF,
    "teredo server": lambda v4: 0x20010000 << 96 | v4 << 64 | 0xC0000201 ^ 0xFFFFFFFF,
    "isatap": lambda v4: 0x20010DB8 << 96 | 0x5EFE << 32 | v4,
    "isatap global": lambda v4: 0x20010DB8 << 96 | 0x02005EFE << 32 | v4,
}


def name_of(text: str, *own: str) -> str | None:
    return guarded(address(text), frozenset(map(address, own)))


def address(text: str) -> Address:
    found = parse(text)
    assert found is not None
    return found


@pytest.mark.attack(89)
@pytest.mark.attack(95)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.0.0.1", "unspecified"),
        ("0.255.255.255", "unspecified"),
        ("::", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "cgnat"),
        ("100.127.255.255", "cgnat"),
        ("169.254.1.1", "link-local"),
        ("198.18.0.1", "benchmark"),
        ("198.19.255.255", "benchmark"),
        ("224.0.0.251", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("192.0.0.1", "protocol-assignments"),
        ("fc00::1", "ula"),
        ("fdff::1", "ula"),
        ("fe80::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::fb", "multicast"),
        ("64:ff9b:1::1", "private"),
    ],
)
def test_guarded_ranges_are_named(text, name):
    assert name_of(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "2001:db8::1",
        "1.0.0.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2600::1",
        "64:ff9b::c000:201",
        "2002:c000:201::1",
    ],
)
def test_documentation_ranges_and_neighbours_pass(text):
    assert name_of(text) is None


@pytest.mark.attack(92)
@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_metadata_services_are_named_as_such(text):
    assert name_of(text) == "metadata"


@pytest.mark.attack(90)
@pytest.mark.parametrize(
    "text",
    ["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:0:127.0.0.1"],
)
def test_loopback_inside_ipv6_is_loopback(text):
    assert name_of(text) == "loopback"


@pytest.mark.attack(90)
@pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS.keys())
@given(st.integers(2, 2**32 - 1))
def test_a_carried_ipv4_is_judged_as_that_ipv4(carry, v4):
    assert guarded(Address(6, carry(v4))) == guarded(Address(4, v4))


@pytest.mark.attack(94)
def test_the_hosts_own_addresses_are_guarded_however_they_are_carried():
    for text in ("203.0.113.9", "::ffff:203.0.113.9", "64:ff9b::cb00:7109"):
        assert name_of(text, "203.0.113.9") == "own-address"
    assert name_of("2001:db8::9", "2001:db8::9") == "own-address"
    assert name_of("203.0.113.10", "203.0.113.9") is None


@pytest.mark.attack(95)
@given(st.integers(0, 2**32 - 1))
def test_no_ipv4_that_the_library_calls_special_passes(value):
    reference = ipaddress.IPv4Address(value)
    special = reference.is_loopback or reference.is_link_local or reference.is_multicast or reference.is_reserved
    if special or reference in ipaddress.IPv4Network("10.0.0.0/8"):
        assert guarded(Address(4, value)) is not None
