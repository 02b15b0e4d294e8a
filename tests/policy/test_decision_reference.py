"""An independent second opinion: another matcher, written anew, agrees on thousands of hostile hosts."""

from __future__ import annotations

import random

import pytest

from netsandbox.policy.names import BadName, canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import Request

ALLOW = [
    "example.test",
    "*.x.test",
    "**.y.test:8443",
    "api.z.test:*",
    "xn--bcher-kva.example.test",
    "deep.w.test:22",
    "**.w.test",
]
DENY = ["bad.x.test", "*.evil.y.test", "w.test:80", "**.a.w.test"]


def reference_covers(rule: str, labels: list[str], port: int, bare: set[int] | None) -> bool:
    """Written to be read, not to be fast: compare label lists from the right."""
    name, _, port_text = rule.partition(":")
    if port_text == "" and bare is not None and port not in bare:
        return False
    if port_text not in ("", "*") and int(port_text) != port:
        return False
    wanted = name.split(".")
    front = wanted[0] if "*" in wanted[0] else ""
    if front:
        wanted = wanted[1:]
    if labels[-len(wanted) :] != wanted:
        return False
    extra = len(labels) - len(wanted)
    return {"": extra == 0, "*": extra > 0, "**": extra >= 0}[front]


def reference_allows(text: str, port: int) -> bool:
    labels = text.lower().removesuffix(".").split(".")
    if "dns.google" in (".".join(labels[i:]) for i in range(len(labels))):
        return False
    if any(reference_covers(rule, labels, port, None) for rule in DENY):
        return False
    return any(reference_covers(rule, labels, port, {80, 443}) for rule in ALLOW)


def reference_is_name(text: str) -> bool:
    """Labels of 1 to 63 letters, digits, hyphens and underscores; at most 253 in all; no number at the end."""
    bare = text.lower().removesuffix(".")
    labels = bare.split(".")
    if len(bare) > 253 or any(not 1 <= len(label) <= 63 for label in labels):
        return False
    if any(char not in "abcdefghijklmnopqrstuvwxyz0123456789-_" for label in labels for char in label):
        return False
    return not (labels[-1].isdigit() or labels[-1] == "0x7f")


@pytest.mark.attack(4)
@pytest.mark.attack(7)
@pytest.mark.attack(87)
def test_twelve_thousand_hostile_hosts_get_the_verdict_of_a_second_matcher(hostile_hosts):
    policies = [Policy(ALLOW, DENY), Policy(ALLOW[::-1], DENY[::-1])]
    chance = random.Random(7)
    tally = {"error": 0, "allowed": 0, "denied": 0}
    for raw in hostile_hosts:
        port = chance.choice([80, 443, 443, 443, 8443, 22])
        wire = raw.encode("utf-8")
        if not raw.isascii() or not reference_is_name(raw):
            with pytest.raises(BadName):
                canonical(wire)
            tally["error"] += 1
            continue
        try:
            host = canonical(wire)
        except BadName:
            assert "xn--" in raw.lower(), raw  # well-formed but for its punycode
            continue
        assert host == canonical(raw)
        verdicts = [policy.decide(Request(host, port, "tcp")) for policy in policies]
        expected = reference_allows(raw, port)
        assert [verdict.allowed for verdict in verdicts] == [expected, expected], (raw, port, verdicts)
        tally["allowed" if expected else "denied"] += 1
    assert min(tally.values()) > 500, tally
