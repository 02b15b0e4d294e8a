"""A recorder of exchanges that remembers its calls."""

from __future__ import annotations

from collections.abc import Sequence

from netsandbox_proxy.contract import Grant, Refusal

from netsandbox.policy.inspection import HttpRequest


class ScriptedHar:
    """Implements `netsandbox_proxy.contract.ExchangeRecorder`."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def head(self, connection: int, number: int, version: str, headers: Sequence[tuple[str, str]], side: str) -> None:
        self.calls.append(("head", number, version, dict(headers), side))

    def body(self, connection: int, number: int, data: bytes, side: str) -> None:
        self.calls.append(("body", number, data, side))

    def asked(self, grant: Grant, number: int, request: HttpRequest, refusal: Refusal | None) -> None:
        self.calls.append(("asked", number, request, refusal and refusal.reason))

    def ended(self, grant: Grant, number: int, status: int, sizes: tuple[int, int]) -> None:
        self.calls.append(("ended", number, status, sizes))

    def lost(self, grant: Grant) -> None:
        self.calls.append(("lost",))

    def named(self, name: str) -> list[tuple[object, ...]]:
        return [call for call in self.calls if call[0] == name]
