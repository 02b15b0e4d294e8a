"""The host's resolver configuration is what it was before the command ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netsandbox.session.host_resolver import HostResolver, host_resolver
from netsandbox.settings import RunSettings


def test_servers_named_by_the_user_are_asked_alone() -> None:
    assert host_resolver(RunSettings(upstream_dns=(("192.0.2.53", 53),))) == HostResolver((("192.0.2.53", 53),))


def test_otherwise_the_hosts_own_files_are_read() -> None:
    found = host_resolver(RunSettings())
    assert (found.servers, found.hosts) == ((), Path("/etc/hosts").read_bytes().decode("utf-8", "replace"))


def test_a_file_that_is_not_there_says_nothing(monkeypatch: Any) -> None:
    def absent(*arguments: object) -> object:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", absent)
    assert host_resolver(RunSettings()) == HostResolver(())
