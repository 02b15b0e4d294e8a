"""Which records a reader asked for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from netsandbox.audit.entry import DENY
from netsandbox.audit.reader import Record
from netsandbox.errors import UsageError

_SPAN = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Filter:
    """A record passes when it satisfies every condition that is set."""

    denied: bool = False
    host: str | None = None
    since: str | None = None  # a stamp as records carry it, so that text order is time order
    event: str | None = None

    def __call__(self, record: Record) -> bool:
        if self.denied and record.get("verdict") != DENY:
            return False
        if self.since is not None and record["ts"] < self.since:
            return False
        if self.event is not None and record["event"] != self.event:
            return False
        return self.host is None or host_matches(self.host, record.get("host"))


def host_matches(pattern: str, host: object) -> bool:
    """`example.com` that host, `*.example.com` below it, `**.example.com` both; as rules are written."""
    if not isinstance(host, str):
        return False
    wanted, found = pattern.lower().rstrip("."), host.lower().rstrip(".")
    if wanted.startswith("**."):
        return found == wanted[3:] or found.endswith(wanted[2:])
    if wanted.startswith("*."):
        return found.endswith(wanted[1:]) and len(found) > len(wanted) - 1
    return found == wanted


def parse_since(text: str, now: datetime) -> str:
    """`10m`, `2h`, `3d`, `45s` before *now*, or an ISO 8601 moment (UTC unless it says otherwise), as a stamp."""
    span = _SPAN.fullmatch(text)
    try:
        moment = now - timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    except (ValueError, OverflowError):
        raise UsageError(f"--since {text!a} is not a time; write 45s, 10m, 2h, 3d or 2025-01-31T12:00:00Z") from None
