"""The quicker paths give what mitmproxy's own give."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy")

from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.connection import Client
from mitmproxy.http import Headers
from mitmproxy.proxy.context import Context
from netsandbox_proxy.inspect import layers, speed

NAMES = st.sampled_from([b"Host", b"host", b"HOST", b"x", b"X-Y", b"\xff"])
FIELDS = st.lists(st.tuples(NAMES, st.binary(max_size=8)), max_size=6)


@given(FIELDS, st.sampled_from(["host", "Host", b"hOst", "x-y", "x", "\udcff", "other"]))
def test_headers_are_found_as_by_mitmproxy(fields: list[tuple[bytes, bytes]], name: str | bytes) -> None:
    headers = Headers(fields)
    wanted = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    own = [value.decode("utf-8", "surrogateescape") for key, value in fields if key.lower() == wanted.lower()]
    assert speed._get_all(headers, name) == own
    assert speed._get(headers, name, "none") == (", ".join(own) if own else "none")
    assert speed._contains(headers, name) == bool(own)


def test_what_is_no_name_is_in_no_headers() -> None:
    assert not speed._contains(Headers([(b"1", b"x")]), 1)


def test_a_forked_context_has_its_own_layers() -> None:
    client = Client(peername=("client", 0), sockname=("door", 0), timestamp_start=0.0)
    context = Context(client, layers.OPTIONS)
    forked = speed._fork(context)
    assert vars(forked) == vars(context)
    assert forked.layers is not context.layers


def test_without_mallopt_the_memory_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed.ctypes, "CDLL", lambda name: object())
    speed._keep_freed_memory()
