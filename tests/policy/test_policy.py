"""What a policy is made of: its rules, where each came from, and the mode that follows from them."""

from __future__ import annotations

import pytest

from netsandbox.errors import UsageError
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_domain


def test_rules_keep_their_origins(decide):
    verdict = decide(Policy([parse_domain("example.test", "netsandbox.toml:12")]), "example.test")
    assert verdict.origin == "netsandbox.toml:12"
    assert decide(Policy(["example.test"]), "example.test").origin == "allow_domains"


def test_the_mode_follows_from_the_rules_unless_given():
    assert Policy().mode == "offline"
    assert Policy(deny_domains=["x.test"]).mode == "offline"
    assert Policy(["x.test"]).mode == "filtered"
    assert Policy(allow_addresses=["192.0.2.1"]).mode == "filtered"
    assert Policy(["x.test"], mode="offline").mode == "offline"
    with pytest.raises(UsageError, match="unknown; use one of offline"):
        Policy(mode="open")
