"""Public resolvers are known by name, by what lies below the name, and by address."""

from __future__ import annotations

import pytest

from netsandbox.policy.doh import NAMES, is_resolver, is_resolver_address
from netsandbox.policy.ip import parse
from netsandbox.policy.names import canonical


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
def test_their_neighbours_are_not(name):
    assert not is_resolver(name)


def test_the_list_is_canonical_so_that_it_can_match():
    assert all(canonical(name).text == name for name in NAMES)


@pytest.mark.parametrize(
    ("text", "known"), [("8.8.8.8", True), ("2606:4700:4700::1111", True), ("192.0.2.8", False), ("::1", False)]
)
def test_their_addresses_are_known(text, known):
    address = parse(text)
    assert address is not None
    assert is_resolver_address(address) is known
