"""Settings survive the cache: what is written as plain values is read back as the same settings."""

from __future__ import annotations

import marshal

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.config.file_settings import FileSettings, from_plain, to_plain
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import PathRule
from netsandbox.policy.rules import parse_address, parse_domain
from netsandbox.policy.variables import Layer
from netsandbox.settings import Bounds

FULL = FileSettings(
    kept=("/c",),
    ignored=(("network.mode", "f:1"),),
    mode="online",
    allow_domains=(parse_domain("*.a.test:8443", "f:2"),),
    deny_domains=(parse_domain("b.test", "f:3", deny=True),),
    allow_addresses=(parse_address("192.0.2.0/24:5432", "f:4"),),
    allow_read=(PathRule("/r", "f:5", folder=True),),
    allow_write=(),
    variables=(Layer(("A",), ("B_*",)),),
    bounds=copy_with(Bounds()),
    localhost=LocalhostSettings(strategy="isolate"),
)


def read_back(settings: FileSettings) -> FileSettings:
    return from_plain(marshal.loads(marshal.dumps(to_plain(settings))))


def test_settings_without_any_file_survive_the_cache() -> None:
    assert read_back(FileSettings()) == FileSettings()


def test_rules_paths_and_values_survive_the_cache() -> None:
    found = read_back(FULL)
    assert to_plain(found) == to_plain(FULL)
    assert found.allow_write == (), "an empty list is not the same as no list"
    (rule,) = found.allow_domains
    assert (rule.text, rule.origin, rule.name, rule.ports, rule.apex, rule.below) == (
        *("*.a.test:8443", "f:2", "a.test", (8443,)),
        *(False, True),
    )
    (address,) = found.allow_addresses
    assert (address.network.text, address.length, address.ports) == ("192.0.2.0", 24, (5432,))
