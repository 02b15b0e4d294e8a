"""The recorder writes each request once, and holds a bounded part of those that are open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from netsandbox_proxy.contract import Attempt, Grant, Refusal

from netsandbox.policy.inspection import HttpRequest
from netsandbox.session import har_recorder
from netsandbox.session.har_recorder import HarRecorder

REQUEST = HttpRequest("https", "GET", "/a?b")


@pytest.fixture
def recorder(tmp_path: Path) -> HarRecorder:
    return HarRecorder(str(tmp_path / "x.har"), "one", "1.0", 4)


def grant(connection: int = 1) -> Grant:
    made = Grant(Attempt("connect", b"example.com", 443, ("", 0)), "example.com", (), named=True)
    made.inspection = connection
    return made


def entries(recorder: HarRecorder) -> list[dict[str, Any]]:
    return list(json.loads(Path(recorder.file.path).read_bytes())["log"]["entries"])


def test_a_request_is_written_at_its_end(recorder: HarRecorder) -> None:
    recorder.head(1, 1, "HTTP/1.1", [("Accept", "*/*")], "up")
    recorder.asked(grant(), 1, REQUEST, None)
    recorder.head(1, 1, "HTTP/2.0", [("Content-Type", "text/plain")], "down")
    recorder.body(1, 1, b"abc", "down")
    recorder.body(1, 1, b"def", "down")
    assert entries(recorder) == []
    recorder.ended(grant(), 1, 200, (0, 6))
    recorder.ended(grant(), 1, 200, (0, 6))
    recorder.lost(grant())
    (entry,) = entries(recorder)
    assert entry["request"]["url"] == "https://example.com/a"
    assert entry["response"]["content"]["text"] == "abcd"
    assert (entry["response"]["httpVersion"], entry["connection"]) == ("HTTP/2.0", "1")
    assert recorder.close() == ""


def test_a_refused_request_is_written_at_once(recorder: HarRecorder) -> None:
    recorder.asked(grant(), 1, REQUEST, Refusal("example.com", 443, "request-denied", "A rule denies it."))
    (entry,) = entries(recorder)
    assert entry["response"]["status"] == 403
    assert entry["comment"] == "refused by netsandbox (request-denied): A rule denies it."


def test_a_lost_connection_ends_its_requests_only(recorder: HarRecorder) -> None:
    recorder.asked(grant(1), 1, REQUEST, None)
    recorder.asked(grant(2), 1, REQUEST, None)
    recorder.head(1, 9, "HTTP/1.1", [], "up")  # never asked about
    recorder.lost(grant(1))
    (entry,) = entries(recorder)
    assert (entry["connection"], entry["response"]["status"]) == ("1", 0)
    assert "connection ended" in entry["comment"]


def test_what_is_held_is_bounded(recorder: HarRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(har_recorder, "MAX_HELD", 5000)
    recorder.head(1, 1, "HTTP/1.1", [("A", "x" * 4000)], "up")  # too long
    for number in range(1, 5):
        recorder.asked(grant(), number, REQUEST, None)
    recorder.head(1, 4, "HTTP/1.1", [], "up")
    recorder.body(1, 4, b"x", "up")
    for number in range(1, 5):
        recorder.ended(grant(), number, 200, (0, 0))
    first, _ = entries(recorder)
    assert first["request"]["headers"] == []
    assert "left out" in first["comment"]
    recorder.asked(grant(), 5, REQUEST, None)  # there is room again
    recorder.ended(grant(), 5, 200, (0, 0))
    assert len(entries(recorder)) == 3
    assert recorder.close().startswith("2 requests are not in ")
