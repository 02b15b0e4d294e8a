"""Entries have every field that importers read, and no credential."""

from __future__ import annotations

import json
from base64 import b64decode

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.har_entry import HarExchange, HarMessage, entry, iso_time, opening

SECRET = "s3cr3t-value"
NAMES = st.sampled_from(["Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Location", "Accept", "Content-Type"])


def exchange(**fields: object) -> HarExchange:
    made = HarExchange(7)
    made.method, made.target, made.place = "GET", "/a?token=x&b=1", ("example.com", 443)
    made.began, made.received, made.done = 1.0, 1.2, 1.5
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_an_entry() -> None:
    made = entry(exchange(status=200, started=1700000000.25), with_query=False)
    assert made["request"]["url"] == "https://example.com/a"  # type: ignore[index]
    assert made["startedDateTime"] == "2023-11-14T22:13:20.250Z"
    assert (made["time"], made["timings"]) == (500, {"send": 0, "wait": 200, "receive": 300})
    assert "comment" not in made
    assert "postData" not in made["request"]  # type: ignore[operator]
    wanted = entry(exchange(place=("example.com", 8443), request=HarMessage(cut=True)), with_query=True)
    assert wanted["request"]["url"] == "https://example.com:8443/a?token=redacted&b=1"  # type: ignore[index]
    assert wanted["comment"] == "some headers are left out, since there are many"


@given(st.lists(st.tuples(NAMES, st.just(f"/x?token={SECRET}") | st.text(max_size=20))), st.booleans())
def test_no_credential_is_in_an_entry(headers: list[tuple[str, str]], with_query: bool) -> None:
    sent = [(name, value) for name, value in headers if name in ("Location", "Accept", "Content-Type")]
    secret = [(name, SECRET) for name, _ in headers if name not in ("Location", "Accept", "Content-Type")]
    located = [(name, value) for name, value in sent if name == "Location" or SECRET not in value]
    head = HarMessage("HTTP/1.1", [*located, *secret])
    found = exchange(request=head, response=head, target=f"/a?password={SECRET}")
    assert SECRET not in json.dumps(entry(found, with_query=with_query))


def test_bodies_are_text_or_base64() -> None:
    found = exchange(
        request=HarMessage("HTTP/1.1", [("content-type", "application/x-www-form-urlencoded")]),
        response=HarMessage("HTTP/1.1", [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")]),
    )
    found.request.body, found.request.size = b"a=1&password=x", 14
    found.response.body, found.response.size = b"\x1f\x8b\xff", 10
    made = entry(found, with_query=False)
    assert made["request"]["postData"]["text"] == "a=1&password=redacted"  # type: ignore[index]
    content = made["response"]["content"]  # type: ignore[index]
    assert b64decode(content["text"]) == b"\x1f\x8b\xff"
    assert content["comment"] == "as it was sent, with content-encoding gzip; the first 3 bytes"
    found.response = HarMessage("HTTP/1.1", [("Content-Type", "text/plain")])
    found.response.body = "é".encode() + b"\xc3"  # a letter is cut
    assert entry(found, with_query=False)["response"]["content"]["text"] == "é"  # type: ignore[index]
    found.response.body = b"\xff\xff\xff\xff\xff"
    assert entry(found, with_query=False)["response"]["content"]["encoding"] == "base64"  # type: ignore[index]


def test_the_log_has_a_page_and_ends_with_its_entries() -> None:
    made = opening("title", 0.0, "1")
    assert list(made)[-1] == "entries"
    assert made["pages"][0]["id"] == "session"  # type: ignore[index]
    assert iso_time(0.5) == "1970-01-01T00:00:00.500Z"
