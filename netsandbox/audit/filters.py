"""Which records a reader asked for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from netsandbox.audit.reader import Record
from netsandbox.audit.record_line import DENY
from netsandbox.errors import UsageError

_SPAN = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


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


def span_seconds(text: str) -> int | None:
    """`45s`, `10m`, `2h`, `3d` as seconds; None: it is no such span."""
    span = _SPAN.fullmatch(text)
    return int(span[1]) * _UNITS[span[2]] if span else None


def parse_since(text: str, now: datetime) -> str:
    """`10m`, `2h`, `3d`, `45s` before *now*, or an ISO 8601 moment (UTC unless it says otherwise), as a stamp."""
    span = span_seconds(text)
    try:
        moment = datetime.fromisoformat(text) if span is None else now - timedelta(seconds=span)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    except (ValueError, OverflowError):
        raise UsageError(f"--since {text!a} is not a time; write 45s, 10m, 2h, 3d or 2025-01-31T12:00:00Z") from None
