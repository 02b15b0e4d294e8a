"""A refusal says who said no, to what, why, and that asking again is useless; and it is one well-formed response."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.replies import CONNECT_OK, STATUSES, refusal_response, status_for

from netsandbox.policy import reasons


def parse(raw: bytes) -> tuple[h11.Response, bytes]:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("host", "a.test")]))
    client.send(h11.EndOfMessage())
    client.receive_data(raw)
    response, body = client.next_event(), client.next_event()
    assert isinstance(response, h11.Response)
    assert isinstance(body, h11.Data)
    assert isinstance(client.next_event(), h11.EndOfMessage)
    return response, bytes(body.data)


def test_a_policy_refusal_tells_an_agent_what_to_do() -> None:
    response, body = parse(
        refusal_response(403, "not-allowed", "denied.test", 443, "Allow it with --allow-domain denied.test")
    )
    headers = dict(response.headers)
    assert (response.status_code, headers[b"x-netsandbox-reason"], headers[b"connection"]) == (
        403,
        b"not-allowed",
        b"close",
    )
    assert headers[b"content-type"].startswith(b"text/plain")
    text = body.decode()
    for part in ("denied.test:443", "policy", "not-allowed", "retrying will not help", "--allow-domain denied.test"):
        assert part in text
    assert text.count("\n") == 1


def test_silence_of_the_user_is_told_as_such() -> None:
    text = parse(refusal_response(403, "unanswered", "asked.test", 443, ""))[1].decode()
    assert "(unanswered); tell the user before you try again" in text
    assert "retrying will not help" not in text


def test_each_kind_of_refusal_speaks_for_itself() -> None:
    texts = {parse(refusal_response(status, "limit", "::1", 80, ""))[1] for status in (400, 403, 407, 502, 503)}
    assert len(texts) == 5
    assert b"[::1]:80" in parse(refusal_response(403, "limit", "::1", 80, ""))[1]
    assert b"the request" in parse(refusal_response(400, "malformed", "", 0, ""))[1]


@pytest.mark.attack(182)
def test_a_missing_token_is_407_with_a_challenge() -> None:
    """Attack 182."""
    response, _ = parse(refusal_response(407, "not-allowed", "", 0, ""))
    assert dict(response.headers)[b"proxy-authenticate"].startswith(b"Basic ")
    assert b"proxy-authenticate" not in refusal_response(403, "not-allowed", "", 0, "")


@pytest.mark.attack(172)
@given(st.text(max_size=400), st.text(max_size=400), st.text(max_size=40))
def test_hostile_text_stays_on_one_line(host: str, hint: str, reason: str) -> None:
    """Attack 172: no header and no line can be forged by a name."""
    raw = refusal_response(403, "x" + reason, "h" + host + "\r\nset-cookie: a=b\u2028\x85\ud800", 443, hint)
    response, body = parse(raw)
    assert [name for name, _ in response.headers] == [
        *(b"content-type", b"content-length", b"cache-control", b"x-content-type-options", b"x-netsandbox-reason"),
        b"connection",
    ]
    assert body.count(b"\n") == 1
    assert all(32 <= byte < 127 for byte in body[:-1])


def test_every_reason_has_a_status_and_none_is_a_success() -> None:
    assert set(STATUSES) <= reasons.ALL
    assert all(400 <= status_for(reason) < 600 for reason in reasons.ALL)
    assert status_for("not-allowed") == status_for("unheard-of") == status_for("sni-mismatch") == 403
    assert (status_for("lookup-failed"), status_for("unreachable"), status_for("limit"), status_for("deadline")) == (
        502,
        502,
        503,
        408,
    )


def test_connect_ok_is_a_head_without_a_body() -> None:
    assert CONNECT_OK.startswith(b"HTTP/1.1 200 ")
    assert CONNECT_OK.endswith(b"\r\n\r\n")
    assert CONNECT_OK.count(b"\r\n\r\n") == 1
