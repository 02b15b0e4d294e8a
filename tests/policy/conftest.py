"""Fixtures that the policy tests share: a short way to decide, and hostile hosts made the same way every time."""

from __future__ import annotations

import random

import pytest

from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import Request


@pytest.fixture
def decide():
    """decide(policy, host, port, kind) -> Verdict"""

    def put(policy: Policy, host: str | bytes, port: int = 443, kind: str = "tcp"):
        return policy.decide(Request(canonical(host), port, kind))

    return put


@pytest.fixture(scope="session")
def hostile_hosts() -> list[str]:
    """Twelve thousand spellings near the names in the reference policy, most of them meant to slip past it."""
    chance = random.Random(20240229)
    stems = [
        "example.test",
        "bad.x.test",
        "x.test",
        "y.test",
        "api.z.test",
        "z.test",
        "dns.google",
        "deep.w.test",
        "w.test",
    ]
    pieces = [
        "evil",
        "a",
        "www",
        "bad",
        "xn--bcher-kva",
        "xn--a",
        "-",
        "_dmarc",
        "1",
        "0x7f",
        "127",
        "0",
        "",
        "A" * 63,
        "b" * 64,
    ]
    glue = [
        ".",
        ".",
        ".",
        ".",
        "-",
        "",
        "..",
        "\0.",
        "%2e",
        "@",
        "/",
        "\\",
        "\n",
        " ",
        "\u3002",
        "\u00ad",
        "\u200d",
        "\uff0e",
        ":",
    ]
    hosts = []
    for _ in range(12_000):
        host = chance.choice(stems)
        for _ in range(chance.randrange(4)):
            piece, joint = chance.choice(pieces), chance.choice(glue)
            host = host + joint + piece if chance.random() < 0.25 else piece + joint + host
        host = "".join(char.upper() if chance.random() < 0.2 else char for char in host)
        hosts.append(host + chance.choice(["", "", "", ".", "..", " ", "\t", "\u212a"]))
    return hosts
