"""Requests of inspected connections in the log: their text for people, and each with its end as one record. Pure.

A request has a record before it goes on (`http`) and one at its end (`http.end`); the numbers of its connection and
of the request in it join the two.
"""

from __future__ import annotations

from netsandbox.policy.http_rules import base_url
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    Record = dict[str, Any]
HTTP, HTTP_END = "http", "http.end"
MAX_OPEN = 10_000  # requests whose end has not come; a log of a killed session has no more of them
_ENDS = ("status", "bytes_up", "bytes_down", "ms")


def request_text(fields: Mapping[str, object]) -> str:
    """`POST https://example.com/v1/x`, from values that a command chose."""
    place = base_url(str(fields.get("scheme", "https")), printable(fields.get("host", "?")), fields.get("port"))
    query = f"?{fields['query']}" if fields.get("query") else ""
    return printable(f"{fields.get('method', '?')} {place}{fields.get('path', '')}{query}")


def joined(records: Iterable[Record]) -> Iterator[Record]:
    """Each request once, with what is known of its end, in the order of their ends; other records as they are. Requests
    without an end come last."""
    waiting: dict[tuple[object, ...], Record] = {}
    for record in records:
        if record["event"] == HTTP and record.get("verdict") == "allow":
            waiting[_key(record)] = record
            if len(waiting) > MAX_OPEN:
                yield waiting.pop(next(iter(waiting)))
        elif record["event"] == HTTP_END:
            begun = waiting.pop(_key(record), record)
            yield {**begun, **{name: record[name] for name in _ENDS if name in record}}
        else:
            yield record
    yield from waiting.values()


def _key(record: Record) -> tuple[object, ...]:
    return record["session"], record.get("connection"), record.get("request")
