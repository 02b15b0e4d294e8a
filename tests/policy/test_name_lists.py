"""Shared suffixes, and public resolvers by name, by what lies below the name, and by address."""

from __future__ import annotations

import pytest

from netsandbox.policy.ip import parse
from netsandbox.policy.name_lists import RESOLVERS, SHARED_SUFFIXES, is_resolver, is_resolver_address, is_shared_suffix
from netsandbox.policy.names import canonical


@pytest.mark.attack(6)
@pytest.mark.parametrize("name", ["com", "test", "co.uk", "com.au", "co.jp", "github.io", "s3.amazonaws.com"])
def test_shared_suffixes_are_shared(name):
    assert is_shared_suffix(name)


@pytest.mark.parametrize("name", ["example.com", "example.co.uk", "user.github.io"])
def test_a_name_with_one_owner_is_not_shared(name):
    assert not is_shared_suffix(name)


def test_shared_suffixes_are_canonical_so_that_they_can_match():
    assert all(canonical(name).text == name for name in SHARED_SUFFIXES)


@pytest.mark.attack(69)
@pytest.mark.parametrize(
    "name",
    [
        "dns.google",
        "cloudflare-dns.com",
        "mozilla.cloudflare-dns.com",
        "one.one.one.one",
        "dns.quad9.net",
        "doh.opendns.com",
        "dns.adguard.com",
        "doh.cleanbrowsing.org",
        "dns.nextdns.io",
        "abc123.dns.nextdns.io",
    ],
)
def test_known_resolvers_are_known(name):
    assert is_resolver(name)


@pytest.mark.parametrize(
    "name",
    ["google", "google.com", "quad9.net", "one.one", "xdns.google", "dns.google.example.com", "example.com", "com"],
)
def test_neighbours_of_resolvers_are_not_known(name):
    assert not is_resolver(name)


def test_resolvers_are_canonical_so_that_they_can_match():
    assert all(canonical(name).text == name for name in RESOLVERS)


@pytest.mark.attack(231)
@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("8.8.8.8", True),
        ("2606:4700:4700::1111", True),
        ("64:ff9b::808:808", True),  # NAT64
        ("2002:808:808::1", True),  # 6to4
        ("2001:0:101:101::", True),  # Teredo
        ("192.0.2.8", False),
        ("64:ff9b::c000:208", False),
        ("::1", False),
    ],
)
def test_addresses_of_resolvers_are_known(text, known):
    address = parse(text)
    assert address is not None
    assert is_resolver_address(address) is known
