"""The decision: which host, at which port, under which rules, and why."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy import reasons
from netsandbox.policy.decision import bad_name, is_loopback_name
from netsandbox.policy.ip import Address, parse
from netsandbox.policy.names import canonical, host_of
from netsandbox.policy.policy import MODES, Policy
from netsandbox.policy.verdict import Request

KINDS = ("tcp", "udp", "dns")


def address(text: str) -> Address:
    found = parse(text)
    assert found is not None
    return found


@pytest.mark.attack(1)
@pytest.mark.parametrize("policy", [Policy(), Policy(allow_domains=[]), Policy(allow_domains=None)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", ["example.test", "192.0.2.1", "[2001:db8::1]", "10.0.0.1"])
def test_an_empty_allow_list_denies_everything_and_dns_too(decide, policy, kind, host):
    """INV-6."""
    verdict = decide(policy, host, 443, kind)
    assert not verdict.allowed
    assert verdict.reason in (reasons.OFFLINE, reasons.ADDRESS_LITERAL)


@pytest.mark.attack(1)
@pytest.mark.parametrize(
    ("host", "kind", "reason"),
    [
        *(("example.test", kind, reasons.NOT_ALLOWED) for kind in KINDS),
        *((host, kind, reasons.ADDRESS_LITERAL) for host in ("192.0.2.1", "[2001:db8::1]") for kind in KINDS),
        ("10.0.0.1", "dns", reasons.ADDRESS_LITERAL),
        ("10.0.0.1", "tcp", reasons.ADDRESS_GUARD),
        ("10.0.0.1", "udp", reasons.ADDRESS_GUARD),
    ],
)
def test_a_filter_without_a_rule_denies_everything_for_want_of_one(decide, host, kind, reason):
    """INV-6."""
    verdict = decide(Policy([], mode="filtered"), host, 443, kind)
    assert (verdict.allowed, verdict.reason) == (False, reason)


@pytest.mark.attack(4)
@pytest.mark.parametrize(
    "host",
    [
        "evilexample.test",
        "evil-example.test",
        "example.test.evil.test",
        "example.testx",
        "a.example.test",
        "test",
        "xample.test",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_matches_whole_labels_only(decide, host, kind):
    assert decide(Policy(["example.test"]), host, 443, kind).reason == reasons.NOT_ALLOWED


@pytest.mark.attack(5)
@pytest.mark.parametrize(
    ("rule", "host", "allowed"),
    [
        ("*.example.test", "example.test", False),
        ("*.example.test", "a.example.test", True),
        ("*.example.test", "a.b.example.test", True),
        ("*.example.test", "evilexample.test", False),
        ("**.example.test", "example.test", True),
        ("**.example.test", "a.b.example.test", True),
        ("**.example.test", "evilexample.test", False),
    ],
)
def test_wildcards_cover_any_depth_and_the_apex_only_when_doubled(decide, rule, host, allowed):
    verdict = decide(Policy([rule]), host)
    assert verdict.allowed is allowed
    assert verdict.wildcard == ("example.test" if allowed and host != "example.test" else None)


def test_an_exact_rule_beside_a_wildcard_is_no_wildcard_match(decide):
    assert decide(Policy(["*.x.test", "api.x.test"]), "api.x.test").wildcard is None


@pytest.mark.attack(7)
@pytest.mark.attack(8)
@pytest.mark.parametrize("host", ["denied.x.test.", "DeNiEd.X.TeSt", "DENIED.X.TEST."])
def test_a_trailing_dot_or_capitals_change_nothing(decide, host):
    policy = Policy(["*.x.test"], ["denied.x.test"])
    assert decide(policy, host) == decide(policy, "denied.x.test")
    assert decide(policy, host.replace("denied", "ok").replace("DeNiEd", "ok").replace("DENIED", "ok")).allowed


@pytest.mark.attack(9)
def test_an_international_rule_and_its_a_label_are_one_name(decide):
    assert decide(Policy(["b\u00fccher.test"]), b"xn--bcher-kva.test").allowed
    assert decide(Policy(["xn--bcher-kva.test"]), "b\u00fccher.test").allowed
    assert not decide(Policy(["allowed.test"]), "\u0430llowed.test").allowed


@pytest.mark.attack(14)
@pytest.mark.parametrize("port", [9999, 22, 25, 80])
def test_a_rule_for_one_port_opens_no_other(decide, port):
    policy = Policy(["allowed.test:443"])
    assert decide(policy, "allowed.test", 443).allowed
    verdict = decide(policy, "allowed.test", port)
    assert (verdict.reason, verdict.rule) == (reasons.PORT_NOT_ALLOWED, "allowed.test:443")


@pytest.mark.attack(14)
@pytest.mark.parametrize("port", [0, -1, 65536, 10**9, True, None, "443", 443.0])
@pytest.mark.parametrize("mode", MODES)
def test_an_invalid_port_is_denied_in_every_mode(decide, port, mode):
    verdict = decide(Policy(["allowed.test:*"], mode=mode), "allowed.test", port)
    assert (verdict.allowed, verdict.reason) == (False, reasons.BAD_PORT)


def test_without_a_port_a_rule_means_the_default_ports(decide):
    assert [decide(Policy(["a.test"]), "a.test", port).allowed for port in (80, 443, 8080)] == [True, True, False]
    policy = Policy(["a.test"], default_ports=[8080])
    assert [decide(policy, "a.test", port).allowed for port in (80, 443, 8080)] == [False, False, True]


@pytest.mark.attack(15)
@pytest.mark.parametrize("allow", list(itertools.permutations(["*.x.test", "bad.x.test", "**.x.test:*"])))
@pytest.mark.parametrize("host", ["bad.x.test", "bad.x.test.", "BAD.x.test"])
def test_deny_wins_in_any_order(decide, allow, host):
    """INV-6."""
    for deny in (["bad.x.test", "*.y.test"], ["*.y.test", "bad.x.test"]):
        for kind in ("tcp", "udp", "dns"):
            assert decide(Policy(allow, deny), host, 443, kind).reason == reasons.DENY_RULE
    assert decide(Policy(allow, ["bad.x.test"]), "good.x.test").allowed


def test_a_deny_rule_without_a_port_means_every_port(decide):
    assert decide(Policy(["x.test:*"], ["x.test"]), "x.test", 9999).reason == reasons.DENY_RULE


def test_a_deny_rule_with_a_port_denies_that_port_and_leaves_the_name(decide):
    policy = Policy(["x.test:*"], ["x.test:25"])
    assert decide(policy, "x.test", 25).reason == reasons.DENY_RULE
    assert decide(policy, "x.test", 443).allowed
    assert decide(policy, "x.test", 0, "dns").allowed


@pytest.mark.parametrize("mode", MODES)
def test_deny_rules_hold_in_every_mode(decide, mode):
    assert decide(Policy(["x.test"], ["x.test"], mode=mode), "x.test").reason == reasons.DENY_RULE


@pytest.mark.attack(69)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_public_resolvers_are_denied_in_every_mode_and_by_no_rule_allowed(decide, mode, kind):
    policy = Policy(["dns.google", "*.nextdns.io", "**.cloudflare-dns.com:*"], mode=mode)
    for host in ("dns.google", "dns.nextdns.io", "x.dns.nextdns.io", "mozilla.cloudflare-dns.com", "DNS.google."):
        assert decide(policy, host, 443, kind).reason == reasons.DOH_ENDPOINT


@pytest.mark.attack(69)
def test_online_does_not_open_resolvers_by_address_or_dns_over_tls(decide):
    policy = Policy(mode="online", allow_addresses=["9.9.9.9:443"], allow_domains=["resolver.test:853"])
    assert decide(policy, "8.8.8.8").reason == reasons.DOH_ENDPOINT
    assert decide(policy, "192.0.2.1", 853).reason == reasons.DOH_ENDPOINT
    assert decide(policy, "example.test", 853).reason == reasons.DOH_ENDPOINT
    assert decide(policy, "9.9.9.9").allowed
    assert decide(policy, "resolver.test", 853).allowed


@pytest.mark.attack(69)
@pytest.mark.parametrize("mode", ["filtered", "online"])
@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_an_allowed_name_that_resolves_to_a_public_resolver_is_denied(mode, address):
    """Its owner would carry DNS over HTTPS through the name; an address rule opens it."""
    host, found = canonical("allowed.test"), parse(address)
    policy = Policy(["allowed.test"], mode=mode)
    assert policy.check_address(host, found, 443).reason == reasons.DOH_ENDPOINT
    assert policy.check_address(host, parse("203.0.113.1"), 443).allowed
    opened = Policy(["allowed.test"], allow_addresses=["8.8.8.8:443"], mode=mode)
    if address == "8.8.8.8":
        assert opened.check_address(host, found, 443).allowed


@pytest.mark.attack(77)
@pytest.mark.parametrize(
    "name",
    ["localhost", "localhost.", "x.localhost", "LOCALHOST", "ip6-localhost", "ip6-loopback", "localhost.localdomain"],
)
@pytest.mark.parametrize("mode", MODES)
def test_loopback_names_resolve_and_do_not_reach_the_host(decide, name, mode):
    policy = Policy(["localhost", "x.localhost"], mode=mode)
    assert decide(policy, name, 0, "dns").reason == reasons.LOOPBACK
    verdict = decide(policy, name, 443)
    assert (verdict.allowed, verdict.reason) == (False, reasons.ADDRESS_GUARD)


@pytest.mark.attack(77)
@pytest.mark.parametrize("rule", ["127.0.0.1:5432", "[::1]:5432", "127.0.0.0/8:*"])
def test_an_address_rule_opens_the_hosts_loopback_at_its_port(decide, rule):
    policy = Policy(allow_addresses=[rule])
    verdict = decide(policy, "localhost", 5432)
    assert (verdict.allowed, verdict.rule) == (True, rule)
    assert not decide(Policy(allow_addresses=[rule], mode="offline"), "localhost", 5432).allowed


def test_names_that_only_look_like_loopback_are_ordinary():
    assert not is_loopback_name("mylocalhost")
    assert not is_loopback_name("localhost.example.test")
    assert not is_loopback_name("host.docker.internal")


@pytest.mark.attack(86)
@pytest.mark.attack(95)
def test_a_literal_needs_an_address_rule_and_its_port(decide):
    policy = Policy(["example.test"], allow_addresses=["192.0.2.0/24:22", "10.0.0.5:5432"])
    assert decide(policy, "192.0.2.9", 22).allowed
    assert decide(policy, "10.0.0.5", 5432).allowed
    assert decide(policy, "192.0.2.9", 23).reason == reasons.ADDRESS_LITERAL
    assert decide(policy, "203.0.113.1").reason == reasons.ADDRESS_LITERAL
    assert decide(policy, "10.0.0.5", 80).reason == reasons.ADDRESS_GUARD
    assert decide(policy, "[2001:db8::1]").reason == reasons.ADDRESS_LITERAL


@pytest.mark.attack(89)
@pytest.mark.attack(90)
@pytest.mark.attack(92)
@pytest.mark.attack(95)
@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "[::]",
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "192.168.0.1",
        "198.18.0.1",
        "255.255.255.255",
    ],
)
@pytest.mark.parametrize("mode", ["filtered", "online"])
def test_guarded_literals_are_denied_even_online(decide, host, mode):
    assert decide(Policy(["example.test"], mode=mode), host).reason == reasons.ADDRESS_GUARD


@pytest.mark.attack(92)
def test_metadata_is_opened_only_by_its_very_address(decide):
    for rule in ("169.254.0.0/16:*", "169.254.169.254/31:*", "169.254.169.0/24:80"):
        assert decide(Policy(allow_addresses=[rule]), "169.254.169.254", 80).reason == reasons.ADDRESS_GUARD
    assert decide(Policy(allow_addresses=["169.254.169.254:80"]), "169.254.169.254", 80).allowed
    assert decide(Policy(allow_addresses=["169.254.169.254/32:80"]), "169.254.169.254", 80).allowed


def test_a_mapped_literal_is_the_ipv4_address(decide):
    assert decide(Policy(allow_addresses=["10.0.0.5:5432"]), "[::ffff:10.0.0.5]", 5432).allowed


@pytest.mark.attack(19)
@pytest.mark.parametrize("kind", KINDS)
def test_offline_ignores_allow_rules_and_localhost_has_none(decide, kind):
    offline = Policy(["example.test"], allow_addresses=["192.0.2.1"], mode="offline")
    for policy in (offline, Policy(mode="localhost"), Policy()):
        assert not decide(policy, "example.test", 443, kind).allowed
        assert not decide(policy, "192.0.2.1", 443, kind).allowed
        assert not policy.check_address(canonical("example.test"), address("203.0.113.1"), 443).allowed


def test_localhost_with_rules_is_both(decide):
    policy = Policy(["example.test"], mode="localhost")
    assert policy.mode == "filtered"
    assert decide(policy, "example.test", 443).allowed
    assert decide(policy, "localhost", 0, "dns").reason == reasons.LOOPBACK
    assert not decide(policy, "other.test", 443).allowed
    assert Policy(allow_addresses=["192.0.2.1"], mode="localhost").mode == "filtered"
    assert Policy(mode="localhost").mode == "localhost"


def test_online_opens_names_at_every_port_and_public_addresses(decide):
    policy = Policy(mode="online")
    assert decide(policy, "example.test", 9999).reason == reasons.ONLINE
    assert decide(policy, "example.test", 0, "dns").reason == reasons.ONLINE
    assert decide(policy, "203.0.113.1", 22).reason == reasons.ONLINE


def test_a_name_resolves_when_any_of_its_ports_is_allowed(decide):
    verdict = decide(Policy(["x.test:8443"]), "x.test", 0, "dns")
    assert (verdict.allowed, verdict.rule, verdict.port) == (True, "x.test:8443", 0)
    assert decide(Policy(["*.x.test:8443"]), "a.x.test", 53, "dns").wildcard == "x.test"


@pytest.mark.parametrize("mode", MODES)
def test_nobody_resolves_an_address(decide, mode):
    assert not decide(Policy(allow_addresses=["192.0.2.1"], mode=mode), "192.0.2.1", 0, "dns").allowed


def test_udp_is_denied_where_tcp_is_allowed_since_no_door_carries_it(decide):
    assert decide(Policy(["x.test"]), "x.test", 443, "udp").reason == reasons.UDP
    assert decide(Policy(["x.test"]), "y.test", 443, "udp").reason == reasons.NOT_ALLOWED


def test_an_unknown_kind_is_denied(decide):
    """INV-1, INV-11."""
    assert decide(Policy(["x.test"]), "x.test", 443, "icmp").reason == reasons.INTERNAL


@pytest.mark.attack(76)
def test_every_link_of_a_chain_is_asked_of_the_deny_list():
    policy = Policy(["*.x.test"], ["*.tracker.test", "mail.test:25"])
    denied = policy.denies_name(canonical("a.tracker.test"))
    assert denied is not None
    assert (denied.reason, denied.rule) == (reasons.DENY_RULE, "*.tracker.test")
    assert policy.denies_name(canonical("cdn.test")) is None
    assert policy.denies_name(canonical("mail.test")) is None
    assert policy.denies_name(canonical("mail.test"), 25) is not None
    resolver = policy.denies_name(canonical("dns.google"))
    assert resolver is not None
    assert resolver.reason == reasons.DOH_ENDPOINT


@pytest.mark.attack(92)
@pytest.mark.attack(94)
@pytest.mark.attack(95)
def test_an_allowed_name_that_leads_inside_is_denied_after_the_lookup():
    policy = Policy(["example.test"], allow_addresses=["10.1.0.0/16:443", "169.254.0.0/16"])
    host = canonical("example.test")
    own = frozenset({address("203.0.113.9")})
    for text in ("127.0.0.1", "10.2.0.1", "169.254.169.254", "::ffff:127.0.0.1", "::1", "203.0.113.9", "fd00::1"):
        verdict = policy.check_address(host, address(text), 443, own)
        assert (verdict.allowed, verdict.reason) == (False, reasons.ADDRESS_GUARD)
        assert verdict.address is not None
        assert verdict.guard is not None
    assert policy.check_address(host, address("203.0.113.1"), 443, own).allowed
    lifted = policy.check_address(host, address("::ffff:10.1.0.1"), 443, own)
    assert (lifted.allowed, lifted.rule) == (True, "10.1.0.0/16:443")
    assert not policy.check_address(host, address("10.1.0.1"), 22, own).allowed


@pytest.mark.attack(94)
def test_online_still_guards_the_addresses_of_a_name():
    policy = Policy(mode="online")
    host = canonical("example.test")
    assert policy.check_address(host, address("203.0.113.1"), 443, ()).reason == reasons.ONLINE
    assert not policy.check_address(host, address("203.0.113.1"), 443, [address("203.0.113.1")]).allowed
    assert not policy.check_address(host, address("192.168.0.1"), 443, ()).allowed


@pytest.mark.attack(2)
def test_bytes_that_are_no_host_get_a_printable_verdict():
    verdict = bad_name(b"evil.test\0.allowed.test\n", 443)
    assert (verdict.allowed, verdict.reason) == (False, reasons.BAD_NAME)
    assert verdict.host.isprintable()


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**32 - 1), st.sampled_from(MODES), st.sampled_from(KINDS))
def test_every_verdict_has_a_reason_of_the_closed_list_and_reason_and_answer_agree(v6, v4, mode, kind):
    """INV-11."""
    policy = Policy(["*.x.test", "y.test:22"], ["bad.x.test"], ["10.0.0.0/8:*", "2001:db8::/32"], mode)
    hosts = [
        host_of(Address(6, v6)),
        host_of(Address(4, v4)),
        canonical("a.x.test"),
        canonical("y.test"),
        canonical("z.test"),
    ]
    for host in hosts:
        verdict = policy.decide(Request(host, 443, kind))
        assert verdict.reason in reasons.ALL
        assert verdict.allowed == (verdict.reason in reasons.ALLOWING)
