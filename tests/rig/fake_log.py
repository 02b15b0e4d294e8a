"""An audit log that only remembers."""

from __future__ import annotations

from typing import Any


class FakeLog:
    """Takes the audit log's place; `failed` makes every write fail."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.failed: str | None = None

    def write(self, event: str, **fields: Any) -> bool:
        if self.failed is not None:
            return False
        self.records.append({"event": event, **{name: value for name, value in fields.items() if value is not None}})
        return True

    def hold(self) -> None:
        """Nothing is collected: each record is kept at once."""

    def release(self) -> bool:
        return self.failed is None

    def of(self, event: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["event"] == event]
