"""Entries of a HAR file (version 1.2), as the tools of browsers read them. Pure.

Every text was checked and bounded before. Credentials are left out here, whatever the engine sent.
"""

from __future__ import annotations

from binascii import b2a_base64
from time import gmtime, strftime

from netsandbox.policy.http_rules import base_url
from netsandbox.policy.redaction import parameters, shown_header, shown_query, shown_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Headers = Sequence[tuple[str, str]]

PAGE = "session"
UNKNOWN = -1  # as the format has it
FORM = "application/x-www-form-urlencoded"
_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "image/svg", FORM)


class HarMessage:
    """A request or a response, as far as it is kept."""

    __slots__ = ("body", "cut", "headers", "size", "version")

    def __init__(self, version: str = "", headers: Headers = (), *, cut: bool = False) -> None:
        self.version = version
        self.headers = headers
        self.cut = cut  # there were more headers
        self.body = b""  # its beginning
        self.size = 0  # of the whole body

    def get(self, name: str) -> str:
        """The first value of a header; *name* is in lower case."""
        return next((value for each, value in self.headers if each.lower() == name), "")


class HarExchange:
    """A request and what became of it, while it is open."""

    __slots__ = (
        *("began", "comment", "connection", "done", "held", "method", "place", "received", "request", "response"),
        *("scheme", "started", "status", "target"),
    )

    def __init__(self, connection: int) -> None:
        self.connection = connection
        self.scheme, self.method, self.target = "https", "", ""
        self.place = "", 0  # host and port
        self.started = self.began = 0.0  # by the calendar and by the loop's clock
        self.received: float | None = None  # when the head of the response came
        self.done = 0.0
        self.status = 0
        self.comment = ""
        self.held = 0  # bytes of memory
        self.request, self.response = HarMessage(), HarMessage()


def opening(title: str, started: float, version: str) -> dict[str, object]:
    """The log around the entries, which have to come last. Importers expect a page."""
    page = {
        "startedDateTime": iso_time(started),
        "id": PAGE,
        "title": title,
        "pageTimings": {"onContentLoad": UNKNOWN, "onLoad": UNKNOWN},
    }
    return {"version": "1.2", "creator": {"name": "netsandbox", "version": version}, "pages": [page], "entries": []}


def entry(found: HarExchange, *, with_query: bool) -> dict[str, object]:
    took = _milliseconds(found.began, found.done)
    wait = took if found.received is None else min(took, _milliseconds(found.began, found.received))
    made = {
        "pageref": PAGE,
        "startedDateTime": iso_time(found.started),
        "time": took,
        "request": _request(found, with_query=with_query),
        "response": _response(found, with_query=with_query),
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": took - wait},
        "connection": str(found.connection),
    }
    notes = [found.comment] if found.comment else []
    notes += ["some headers are left out, since there are many"] if found.request.cut or found.response.cut else []
    return {**made, "comment": "; ".join(notes)} if notes else made


def _request(found: HarExchange, *, with_query: bool) -> dict[str, object]:
    query = found.target.partition("?")[2] if with_query else ""
    made: dict[str, object] = {
        "method": found.method,
        "url": f"{base_url(found.scheme, *found.place)}{shown_target(found.target, with_query=with_query)}",
        "httpVersion": found.request.version or "HTTP/1.1",
        "cookies": [],
        "headers": _headers(found.request, with_query=with_query),
        "queryString": [{"name": name, "value": value} for name, value in parameters(query)] if query else [],
        "headersSize": UNKNOWN,
        "bodySize": found.request.size,
    }
    if found.request.body:
        made["postData"] = {"mimeType": found.request.get("content-type"), **_text(found.request)}
    return made


def _response(found: HarExchange, *, with_query: bool) -> dict[str, object]:
    location = found.response.get("location")
    return {
        "status": found.status,
        "statusText": "",
        "httpVersion": found.response.version or found.request.version or "HTTP/1.1",
        "cookies": [],
        "headers": _headers(found.response, with_query=with_query),
        "content": {
            "size": found.response.size,
            "mimeType": found.response.get("content-type") or "x-unknown",
            **_text(found.response),
        },
        "redirectURL": shown_header("location", location, with_query=with_query),
        "headersSize": UNKNOWN,
        "bodySize": found.response.size,
    }


def _headers(of: HarMessage, *, with_query: bool) -> list[dict[str, str]]:
    return [{"name": name, "value": shown_header(name, value, with_query=with_query)} for name, value in of.headers]


def _text(of: HarMessage) -> dict[str, str]:
    """The kept part of a body: as text, or as base64 where it is not text. Fields of a form that are credentials are
    left out."""
    if not of.body:
        return {}
    kind, coding = of.get("content-type").lower(), of.get("content-encoding")
    notes = [f"as it was sent, with content-encoding {coding}"] if coding else []
    notes += [f"the first {len(of.body)} bytes"] if len(of.body) < of.size else []
    text = _decoded(of.body) if kind.startswith(_TEXTS) and not coding else None
    if text is None:
        made = {"text": b2a_base64(of.body, newline=False).decode("ascii"), "encoding": "base64"}
    else:
        made = {"text": shown_query(text) if kind.startswith(FORM) else text}
    return {**made, "comment": "; ".join(notes)} if notes else made


def _decoded(data: bytes) -> str | None:
    """*data* as text, without a letter at its end that was cut."""
    for missing in range(4):
        try:
            return data[: len(data) - missing].decode("utf-8")
        except UnicodeDecodeError:
            continue
    return None


def iso_time(seconds: float) -> str:
    whole = int(seconds)
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(whole))}.{int((seconds - whole) * 1000):03}Z"


def _milliseconds(begin: float, end: float) -> int:
    return max(0, round((end - begin) * 1000))
