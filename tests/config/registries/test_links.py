from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.links import MAX_HOSTS, cargo_links, index_links

HERE = "https://index.example/simple/six/"


def test_links_of_a_page_in_html() -> None:
    page = b"""<html><a href="https://files.example/a/six-1.whl#sha256=0" data-x="1">six</a>
    <a rel=x href='../../packages/six-2.whl'>six</a> <a href="//cdn.example:444/x&amp;y">x</a>
    <a href="javascript:alert(1)">x</a><a href="mailto:x@y.example">x</a><a>none</a><a href="https://[broken">x</a></html>"""
    assert index_links("text/html", page, HERE) == [
        "https://files.example",
        "https://index.example",
        "https://cdn.example:444",
    ]


def test_links_of_a_page_in_json() -> None:
    files = [{"url": "https://u:p@files.example/six-1.whl"}, {"url": 3}, "x", {"url": "six-2.whl"}]
    page = json.dumps({"files": files, "other": "https://no.example"}).encode()
    assert index_links("application/vnd.pypi.simple.v1+json", page, HERE) == [
        "https://files.example",
        "https://index.example",
    ]


def test_an_index_of_crates_says_where_they_are() -> None:
    page = b'{"dl": "https://dl.example/{crate}/{version}", "api": "https://api.example", "auth-required": true}'
    assert cargo_links(page) == ["https://dl.example", "https://api.example"]
    assert cargo_links(b'{"dl": 1}') == cargo_links(b"[]") == cargo_links(b"{") == cargo_links(b"[" * 100_000) == []


def test_a_page_names_a_few_hosts_at_most() -> None:
    page = b"".join(b'<a href="https://h%d.example/">x</a>' % number for number in range(1000))
    assert len(index_links("text/html", page, HERE)) == MAX_HOSTS


PIECES = st.sampled_from(['<a href="', "'", '"', ">", "https://", "a.example", "/", "@", "[", "&amp;", "//", ":", "b"])


@given(st.binary() | st.lists(PIECES).map(lambda pieces: "".join(pieces).encode()))
def test_nothing_is_an_error_and_every_host_is_in_the_page(page: bytes) -> None:
    assert index_links("application/json", page, HERE) == []
    for url in index_links("text/html", page, HERE):
        host = url.partition("://")[2]
        assert host == "index.example" or host.encode() in page.replace(b"&amp;", b"&")
