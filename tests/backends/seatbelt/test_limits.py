"""Limits on a Mac: those of each process, and an error for the others."""

from __future__ import annotations

import resource

import pytest

from netsandbox.backends.seatbelt.limits import limit_lines, resource_limits
from netsandbox.errors import UsageError


def test_limits_of_each_process_are_resource_limits() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert resource_limits((("files", 50), ("core", 0))) == [(resource.RLIMIT_NOFILE, 50), (resource.RLIMIT_CORE, 0)]
    ((_, value),) = resource_limits((("files", 10**9),))
    assert value == (10**9 if hard == resource.RLIM_INFINITY else min(hard, 10**9))
    assert limit_lines((("files", 50),)) == ["limit files=50: rlimit, each process"]


@pytest.mark.parametrize("name", ["memory", "processes", "cpu", "address-space"])
def test_what_a_mac_does_not_count_is_an_error(name: str) -> None:
    with pytest.raises(UsageError, match=f"--limit {name}: a Mac holds only files, file-size, core; leave it out"):
        resource_limits(((name, 99),))
