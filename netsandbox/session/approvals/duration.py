"""Parses the duration of an approval: 90s, 30m, 2h, 1d. Pure."""

from __future__ import annotations

from netsandbox.audit.reader import span_seconds
from netsandbox.errors import UsageError
from netsandbox.session.approvals.reply import MAX_SECONDS


def read_duration(text: str, origin: str) -> int:
    """The duration in seconds, at least one."""
    seconds = span_seconds(text)
    if seconds is None or not 1 <= seconds <= MAX_SECONDS:
        raise UsageError(f"{origin} {text[:80]!a} is no time up to a year; write for instance {origin} 30m, 2h or 1d")
    return seconds
