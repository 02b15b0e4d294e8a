"""The end of a grant is recorded exactly once."""

from __future__ import annotations

from typing import Any

from netsandbox_proxy.active_grant import ActiveGrant
from netsandbox_proxy.contract import Attempt, Grant


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time


class FoldedQueries:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def ended(self, *call: Any) -> None:
        self.calls.append(call)


def test_the_first_end_counts_and_carries_bytes_and_milliseconds() -> None:
    clock, ledger = Clock(), FoldedQueries()
    grant = Grant(Attempt("connect", b"a.test", 443, ("127.0.0.1", 1)), "a.test", 443, [], named=True)
    passage = ActiveGrant(clock, ledger, grant)  # type: ignore[arg-type]
    passage.address = "192.0.2.1"
    clock.time += 1.5
    passage.end(1, 2, "tls")
    passage.end(3, 4, "reset")
    assert ledger.calls == [(grant, "192.0.2.1", 1, 2, 1500, "tls")]
