"""The engine's filter: an allow list (tests/proxy/inspect/test_sealing.py attacks it in a real process)."""

from __future__ import annotations

import pytest

from netsandbox.backends.linux.engine_filter import CALLS, CHECKED, engine_filter
from netsandbox.errors import HostError

DANGEROUS = {
    "x86_64": {"open": 2, "socket": 41, "connect": 42, "bind": 49, "clone": 56, "execve": 59, "openat": 257},
    "aarch64": {"socket": 198, "connect": 203, "bind": 200, "clone": 220, "execve": 221, "openat": 56},
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_call_that_opens_dials_or_executes_is_listed(machine: str) -> None:
    column = 0 if machine == "x86_64" else 1
    listed = {numbers[column] for numbers in (*CALLS.values(), *CHECKED.values())}
    assert listed.isdisjoint(DANGEROUS[machine].values())
    assert len(engine_filter(machine)) % 8 == 0


def test_an_unknown_machine_has_none() -> None:
    with pytest.raises(HostError, match="x86_64 and aarch64"):
        engine_filter("riscv64")
