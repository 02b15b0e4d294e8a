"""What is proposed, once allowed, lets through what was used; and nothing is proposed twice."""

from __future__ import annotations

from netsandbox.learn.proposed import MAX_RULES, Proposed, proposed, rule_lists
from netsandbox.learn.usage import Usage
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP, Request


def filtered(*allow: str, deny: tuple[str, ...] = (), addresses: tuple[str, ...] = ()) -> Policy:
    return Policy(allow, deny, addresses, mode="filtered")


def test_what_is_allowed_already_is_not_proposed() -> None:
    used = Usage(names=(("a.test", 443), ("b.test", 443), ("c.test", 8443)))
    found = proposed(used, filtered("a.test", "c.test"))
    assert [each.rule for each in found.domains] == ["b.test", "c.test:8443"]
    assert proposed(used, filtered("a.test", "b.test", "c.test:8443")).empty


def test_addresses_are_proposed_where_a_name_does_not_do() -> None:
    used = Usage(
        names=(("a.test", 443), ("db.test", 5432)),
        literals=(("192.0.2.7", 22),),
        addresses=(("203.0.113.7", 443), ("10.0.0.5", 5432), ("192.0.2.7", 22), ("fd00::1", 443)),
    )
    found = proposed(used, filtered())
    assert found.addresses == ("192.0.2.7:22", "10.0.0.5:5432", "[fd00::1]:443")
    policy = filtered(*(each.rule for each in found.domains), addresses=found.addresses)
    assert policy.decide(Request(canonical("192.0.2.7"), 22, TCP)).allowed
    assert proposed(used, policy).empty


def test_behind_a_proxy_the_address_is_not_the_names() -> None:
    used = Usage(names=(("a.test", 443),), addresses=(("10.0.0.5", 443),))
    assert proposed(used, filtered(), dialled=False).addresses == ()


def test_a_name_that_the_user_denies_is_never_proposed() -> None:
    used = Usage(names=(("bad.test", 443),))
    assert proposed(used, filtered(deny=("bad.test",))).empty
    folded = Usage(names=tuple((f"n{number}.example.com", 443) for number in range(5)))
    assert all(not each.folded for each in proposed(folded, filtered(deny=("*.example.com:25",))).domains)
    assert proposed(folded, filtered()).domains[0].folded


def test_what_is_left_to_the_user_is_said() -> None:
    used = Usage(
        looked_up=("c.test",),
        unreached=("d.test:443 (lookup-failed)",),
        denied_names=("bad.test",),
        host_ports=(5432,),
        unix_sockets=("/run/\x1b[2Jd.sock",),
        refused=("10.0.0.1:443 (address-guard)",),
    )
    assert proposed(used, filtered()).remarks == (
        "only looked up, never connected to, so not proposed:",
        "  c.test",
        "let through, but not reached, so not proposed:",
        "  d.test:443 (lookup-failed)",
        "refused by your own deny rules:",
        "  bad.test",
        "refused: ports of this machine's localhost; if it needs one, add to [localhost]:",
        "  connect_host = [5432]",
        "refused: sockets of this machine; if it needs one, add to allow_unix_sockets:",
        "  /run/\\x1b[2Jd.sock",
        "refused while learning, as it always is without a rule:",
        "  10.0.0.1:443 (address-guard)",
    )


def test_long_lists_are_cut_and_said_to_be() -> None:
    used = Usage(names=tuple((f"n.d{number}.test", 443) for number in range(MAX_RULES + 1)))
    found = proposed(used, filtered())
    assert len(found.domains) == MAX_RULES
    assert "more hosts than are listed" in found.remarks[0]
    looked = proposed(Usage(looked_up=tuple(f"n{number}.test" for number in range(25))), filtered())
    assert looked.remarks[-1] == "  and 5 more"


def test_only_lists_with_something_in_them_are_written() -> None:
    assert rule_lists(Proposed()) == []
    assert rule_lists(Proposed(addresses=("192.0.2.7:22",))) == [("network", "allow_addresses", [("192.0.2.7:22", "")])]
    assert rule_lists(Proposed(writable=())) == [("filesystem", "allow_write", [])]
