"""Secrets in the heads of requests."""

from __future__ import annotations

import contextlib
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.inspect.request_check import Refused
from netsandbox_proxy.inspect.secret_places import (
    HostSecrets,
    PlacedHead,
    Placeholders,
    Secret,
    escaped,
    masked,
    masked_fields,
    quoted,
    quoted_low,
    unmaskable,
    unquoted,
)

VALUE, INSTEAD = "ghp_Real+Value/1234", "ghp_Plac+Holde/5678"
KEY, KEY_INSTEAD = "key-aaaaaaaa", "key-bbbbbbbb"
NAMES = Placeholders({"TOKEN": INSTEAD, "KEY": KEY_INSTEAD})
TOKEN = Secret("TOKEN", (INSTEAD, VALUE), [["header", "authorization"], ["query", "key"]], passes_in_body=False)
OWN = HostSecrets(NAMES, [TOKEN])
ALIEN = HostSecrets(NAMES, [])


def placed(target: str, *fields: tuple[str, str], secrets: HostSecrets = OWN) -> PlacedHead:
    return secrets.placed(target.encode(), [(name.encode(), value.encode()) for name, value in fields])


def header(value: str, secrets: HostSecrets = OWN) -> str:
    found = placed("/", ("Authorization", value), secrets=secrets)
    return dict(found.fields)[b"Authorization"].decode()


@pytest.mark.parametrize("scheme", ["Bearer ", "token ", "bearer  ", ""])
def test_schemes_of_the_authorization_header(scheme: str) -> None:
    assert header(f"{scheme}{INSTEAD}") == f"{scheme}{VALUE}"


@pytest.mark.parametrize("pair", ["user:{}", "{}:", "{}:x-oauth-basic", "{}"])
def test_user_or_password_of_basic(pair: str) -> None:
    sent = b64encode(pair.format(INSTEAD).encode()).decode()
    found = placed("/", ("Authorization", f"Basic {sent}"))
    new = dict(found.fields)[b"Authorization"].decode().removeprefix("Basic ")
    assert b64decode(new).decode() == pair.format(VALUE)
    assert masked(new.encode(), found.pairs).decode() == sent
    assert masked(new.rstrip("=").encode(), found.pairs).decode() == sent.rstrip("=")
    assert found.names == ["TOKEN"]


@given(st.binary(max_size=8), st.booleans())
def test_of_basic_the_value_is_masked_alone_too(text: bytes, is_user: bool) -> None:
    """Attack: the session chooses the other part, and with it a `/` or `+` that the server writes in another way."""
    text = text.replace(b":", b"")
    pair = (lambda secret: secret.encode() + b":" + text) if is_user else (lambda secret: text + b":" + secret.encode())
    found = placed("/", ("Authorization", f"Basic {b64encode(pair(INSTEAD)).decode()}"))
    new = dict(found.fields)[b"Authorization"].removeprefix(b"Basic ")
    assert b64decode(new) == pair(VALUE)
    shown = masked(new.translate(bytes.maketrans(b"+/", b"-_")), found.pairs)
    decoded = b64decode(shown, altchars=b"-_")
    assert INSTEAD[1:-1].encode() in decoded
    assert len(decoded) == len(pair(VALUE))


def test_both_of_basic() -> None:
    key = Secret("KEY", (KEY_INSTEAD, KEY), [["header", "authorization"]], passes_in_body=False)
    sent = b64encode(f"{INSTEAD}:{KEY_INSTEAD}".encode()).decode()
    found = placed("/", ("Authorization", f"Basic {sent}"), secrets=HostSecrets(NAMES, [TOKEN, key]))
    assert b64decode(dict(found.fields)[b"Authorization"][6:]).decode() == f"{VALUE}:{KEY}"
    assert found.names == ["TOKEN", "KEY"]


def test_the_query() -> None:
    found = placed(f"/a?x=1&key={quoted(INSTEAD.encode()).decode()}&y=%20")
    assert found.target.decode() == f"/a?x=1&key={quoted(VALUE.encode()).decode()}&y=%20"
    assert masked(found.target, found.pairs).decode() == f"/a?x=1&key={quoted(INSTEAD.encode()).decode()}&y=%20"


def test_answers_are_wanted_whole_and_uncompressed() -> None:
    found = placed(
        "/", ("Authorization", INSTEAD), ("Accept-Encoding", "gzip"), ("Range", "bytes=1-"), ("If-Range", "x")
    )
    assert found.fields == [(b"Authorization", VALUE.encode()), (b"accept-encoding", b"identity")]
    without = placed("/", ("Accept-Encoding", "gzip"), ("Range", "bytes=1-"))
    assert without.fields == [(b"Range", b"bytes=1-"), (b"accept-encoding", b"identity")]
    coded = placed("/", ("TE", "gzip, trailers"), ("te", "trailers"))
    assert coded.fields == [(b"te", b"trailers"), (b"accept-encoding", b"identity")]
    messages = placed("/", ("grpc-accept-encoding", "gzip"), ("Connect-Accept-Encoding", "gzip"))
    assert messages.fields == [(b"accept-encoding", b"identity")]
    elsewhere = placed("/", ("Accept-Encoding", "gzip"), secrets=ALIEN)
    assert elsewhere.fields == [(b"Accept-Encoding", b"gzip")]


BASIC = "Basic " + b64encode(f"user:{INSTEAD}".encode()).decode()


@pytest.mark.parametrize(
    ("target", "field"),
    [
        (f"/{INSTEAD}", ("a", "b")),
        (f"/?other={INSTEAD}", ("a", "b")),
        (f"/?key=x{INSTEAD}", ("a", "b")),
        (f"/?key={KEY_INSTEAD}", ("a", "b")),
        ("/%67hp_" + INSTEAD[4:], ("a", "b")),
        ("/", ("X-Api-Key", INSTEAD)),
        ("/", ("Cookie", f"a={INSTEAD}; b=c")),
        ("/", (INSTEAD.replace("/", "").replace("+", ""), "b")),
        ("/", ("Authorization", f"Digest response={INSTEAD}")),
        ("/", ("Authorization", f"Bearer {INSTEAD}x")),
        ("/", ("Authorization", f"Bearer {KEY_INSTEAD}")),
        ("/", ("Authorization", "Basic " + b64encode(f"user:x{INSTEAD}".encode()).decode())),
    ],
)
def test_elsewhere_it_is_refused(target: str, field: tuple[str, str]) -> None:
    if field[0].startswith("ghp_"):
        names = Placeholders({"TOKEN": field[0]})
        with pytest.raises(Refused, match="TOKEN"):
            placed(target, field, secrets=HostSecrets(names, []))
        return
    with pytest.raises(Refused) as caught:
        placed(target, field)
    assert (caught.value.status, caught.value.reason) == (403, "secret-misplaced")
    assert VALUE not in caught.value.detail


@pytest.mark.parametrize("value", [INSTEAD, f"Bearer {INSTEAD}", BASIC])
def test_another_host_gets_none(value: str) -> None:
    with pytest.raises(Refused, match="the placeholder of TOKEN"):
        header(value, ALIEN)
    assert header("Bearer other", ALIEN) == "Bearer other"


def test_a_websocket_gets_none() -> None:
    with pytest.raises(Refused, match="WebSocket"):
        placed("/", ("Authorization", INSTEAD), ("Upgrade", "websocket"))
    assert placed("/", ("Upgrade", "websocket")).names == []


def test_bodies() -> None:
    search = OWN.body_search()
    assert search is not None
    assert search.feed(b"text " + INSTEAD[:6].encode()) is None
    assert search.feed(INSTEAD[6:].encode()) == "a body has the placeholder of TOKEN"
    passing = Secret("TOKEN", (INSTEAD, VALUE), [["header", "authorization"]], passes_in_body=True)
    search = HostSecrets(NAMES, [passing]).body_search()
    assert search is not None
    assert search.feed(INSTEAD.encode()) is None
    assert search.feed(KEY_INSTEAD.encode()) is not None
    assert HostSecrets(Placeholders({"TOKEN": INSTEAD}), [passing]).body_search() is None


def test_answers_that_cannot_be_masked() -> None:
    assert unmaskable(200, [(b"Content-Encoding", b"identity"), (b"a", b"b")]) is None
    assert "compressed" in (unmaskable(200, [(b"Content-Encoding", b"gzip")]) or "")
    assert "compressed" in (unmaskable(200, [(b"Transfer-Encoding", b"gzip, chunked")]) or "")
    assert unmaskable(200, [(b"Transfer-Encoding", b"Chunked")]) is None
    assert "compressed" in (unmaskable(200, [(b"grpc-encoding", b"gzip")]) or "")
    assert unmaskable(200, [(b"grpc-encoding", b"identity")]) is None
    assert "206" in (unmaskable(206, []) or "")
    assert "226" in (unmaskable(226, []) or "")
    assert "101" in (unmaskable(101, []) or "")


def test_fields_are_masked() -> None:
    pairs = placed("/").pairs
    assert masked_fields([(b"location", b"https://x/?k=" + VALUE.encode())], pairs) == [
        (b"location", b"https://x/?k=" + INSTEAD.encode())
    ]


def test_other_spellings_are_masked() -> None:
    pairs = placed("/").pairs
    for spelled in (quoted, quoted_low, escaped):
        assert masked(spelled(VALUE.encode()), pairs) == spelled(INSTEAD.encode())
    assert escaped(b'a/b"\\') == b'a\\/b\\"\\\\'


@given(st.binary(max_size=60))
def test_quoting(data: bytes) -> None:
    assert unquoted(quoted(data)) == unquoted(quoted_low(data)) == data
    unquoted(data)  # any text


@given(
    st.lists(st.sampled_from([INSTEAD, KEY_INSTEAD, "a", "/", "?", "&", "=", "key", "%", "%6b"])).map("".join),
    st.lists(
        st.tuples(
            st.sampled_from(["authorization", "x", "cookie"]),
            st.lists(st.sampled_from([INSTEAD, "Bearer ", "Basic ", BASIC, " ", "x"])).map("".join),
        )
    ),
)
def test_a_placeholder_is_never_passed_on(target: str, fields: list[tuple[str, str]]) -> None:
    with contextlib.suppress(Refused):
        found = placed(target, *fields)
        sent = found.target + b"".join(value for _, value in found.fields)
        assert INSTEAD.encode() not in sent
        assert KEY_INSTEAD.encode() not in sent
        assert (VALUE.encode() in unquoted(sent)) <= bool(found.names)
