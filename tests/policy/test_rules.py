"""What `Policy` accepts: exactly lists of rules, and nothing that only looks like one."""

from __future__ import annotations

import pytest

from netsandbox.errors import UsageError
from netsandbox.policy.policy import Policy


@pytest.mark.attack(16)
@pytest.mark.parametrize(
    "wrong",
    [
        {"allow_domains": "example.test"},
        {"allow_domains": b"example.test"},
        {"allow_domains": {"example.test": True}},
        {"allow_domains": 1},
        {"allow_domains": [1]},
        {"allow_domains": [None]},
        {"allow_domains": [["example.test"]]},
        {"deny_domains": "example.test"},
        {"allow_addresses": "192.0.2.1"},
        {"allow_addresses": [7]},
        {"default_ports": []},
        {"default_ports": None},
        {"default_ports": [0]},
        {"default_ports": [True]},
        {"default_ports": ["443"]},
        {"default_ports": 443},
        {"allow_unix_sockets": ["relative.sock"]},
        {"allow_unix_sockets": ["/run/../etc"]},
        {"allow_unix_sockets": ["/run/x\0y"]},
        {"allow_unix_sockets": [7]},
        {"allow_unix_sockets": "/run/x.sock"},
        {"allow_query_types": ["TXTX"]},
        {"allow_query_types": ["TYPE65536"]},
        {"allow_query_types": ["TYPE"]},
        {"allow_query_types": [16]},
        {"allow_query_types": ["AAAA"]},
        {"allow_query_types": ["TYPE65"]},
        {"allow_query_types": "TXT"},
        {"mode": 1},
    ],
)
def test_a_slip_is_an_error_and_never_an_open_or_empty_list(wrong):
    with pytest.raises(UsageError, match="; "):
        Policy(**wrong)


def test_lists_of_every_kind_are_taken():
    policy = Policy(
        iter(["example.test"]),
        ("*.ru",),
        {"192.0.2.1:22"},
        default_ports=[443],
        allow_unix_sockets=["/run/x.sock"],
        allow_query_types=["txt", "TYPE16", "type65280"],
    )
    assert [rule.text for rule in policy.allow_domains] == ["example.test"]
    assert [rule.text for rule in policy.deny_domains] == ["*.ru"]
    assert [rule.text for rule in policy.allow_addresses] == ["192.0.2.1:22"]
    assert (policy.default_ports, policy.allow_unix_sockets) == ((443,), ("/run/x.sock",))
    assert policy.allow_query_types == ("TXT", "TXT", "TYPE65280")
