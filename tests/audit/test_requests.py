"""Requests in the log: one text, and one record for a request and its end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit import requests
from netsandbox.audit.requests import joined, request_text

BEGUN = {"session": "s", "event": "http", "verdict": "allow", "connection": 1, "request": 1, "method": "GET"}
ENDED = {"session": "s", "event": "http.end", "connection": 1, "request": 1, "status": 200, "ms": 5, "bytes_down": 7}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"scheme": "https", "port": 443}, "GET https://a.test/x"),
        ({"scheme": "http", "port": 80, "query": "a=1"}, "GET http://a.test/x?a=1"),
        ({"scheme": "http", "port": 443}, "GET http://a.test:443/x"),
        ({"path": "/\x1b"}, "GET https://a.test/\\x1b"),
    ],
)
def test_the_text_of_a_request(fields: dict[str, Any], text: str) -> None:
    assert request_text({"host": "a.test", "method": "GET", "path": "/x", **fields}) == text
    assert request_text({}) == "? https://?"


def test_a_request_is_joined_with_its_end() -> None:
    denied = {**BEGUN, "verdict": "deny", "request": 2}
    other = {**BEGUN, "connection": 2}
    assert list(joined([BEGUN, other, denied, ENDED])) == [
        denied,
        {**BEGUN, "status": 200, "ms": 5, "bytes_down": 7},
        other,
    ]
    assert list(joined([ENDED])) == [ENDED]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=12))
def test_no_request_is_lost(steps: list[tuple[bool, int]]) -> None:
    """Numbers are never used twice, as in a log."""
    records: list[dict[str, Any]] = []
    for begins, number in dict.fromkeys(steps):
        records.append({**(BEGUN if begins else ENDED), "request": number})
    assert {each["request"] for each in joined(records)} == {each["request"] for each in records}


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_OPEN", 2)
    begun = [{**BEGUN, "request": number} for number in range(5)]
    assert list(joined(begun)) == begun
