from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netsandbox.config.registries.urls import (
    MAX_HOSTS,
    NoRule,
    NotExpanded,
    cargo_links,
    expand,
    index_links,
    pattern_of,
)
from netsandbox.policy.rules import parse_domain

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("https://registry.example/", "registry.example:443"),
        ("http://registry.example", "registry.example:80"),
        ("HTTPS://Registry.Example:8443/npm/", "registry.example:8443"),
        ("sparse+https://index.example/cargo/", "index.example:443"),
        ("registry+https://index.example", "index.example:443"),
        ("git+https://index.example/a.git", "index.example:443"),
        (f"https://user:{SECRET}@private.example/simple", "private.example:443"),
        (f"https://{SECRET}@private.example:444?a@b#c", "private.example:444"),
        ("https://nexus/repository", "nexus:443"),
        ("https://bücher.example/", "xn--bcher-kva.example:443"),
    ],
)
def test_a_url_becomes_one_name_and_one_port(text: str, pattern: str) -> None:
    assert pattern_of(text) == pattern
    assert parse_domain(pattern, "test").text == pattern


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("*", "not a URL"),
        ("", "not a URL"),
        ("registry.example", "not a URL"),
        ("https://", "not a host name"),
        ("https://*", "not a host name"),
        ("https://*.example/", "not a host name"),
        ("https://a.example:*/", "not a port"),
        ("https://a.example:0/", "not a port"),
        ("https://a.example:99999/", "not a port"),
        ("https://a example/", "characters"),
        ("https://a.example\\@b.example/", "characters"),
        ("https://a.example\x1b[2J/", "characters"),
        ("ssh://git@a.example/", "--allow-domain"),
        ("https://127.1/", "not a host name"),
        ("https://${HOST}/", "not a host name"),
        ("https://localhost:4873/", "--connect-host 4873"),
        ("http://npm.localhost/", "--connect-host 80"),
        ("http://127.0.0.1:4873", "--connect-host 4873"),
        ("http://[::1]:4873", "--connect-host 4873"),
        ("http://10.1.2.3:8081/", "--allow-address 10.1.2.3:8081"),
        ("https://203.0.113.5/", "--allow-address 203.0.113.5:443"),
        ("https://[2001:db8::1]/", "--allow-address [2001:db8::1]:443"),
        ("https://" + "a" * 5000, "5008 characters"),
    ],
)
def test_what_is_not_plainly_a_name_is_a_note_that_says_what_to_do(text: str, advice: str) -> None:
    with pytest.raises(NoRule) as refusal:
        pattern_of(text)
    assert advice in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("text", ["file:///srv/index", "/srv/index", "./wheels", "~/wheels", "file:wheels"])
def test_a_folder_needs_no_network_and_no_note(text: str) -> None:
    with pytest.raises(NoRule) as refusal:
        pattern_of(text)
    assert str(refusal.value) == ""


@pytest.mark.parametrize(
    "text",
    [
        f"https://user:{SECRET}@*/",
        f"https://u:{SECRET}@h:{SECRET}/",
        f"https://u/{SECRET}@x y/",
        f"https://{SECRET}!/x@a.example/",
        f"u:{SECRET}@ftp://x",
    ],
)
def test_no_message_holds_a_password(text: str) -> None:
    with pytest.raises(NoRule) as refusal:
        pattern_of(text)
    assert SECRET not in str(refusal.value)


URLS = st.builds(
    "".join,
    st.lists(st.sampled_from(["https://", "a.example", "b", "@", ":", "/", "*", "443", "?", "#", "\\", "[", "]"])),
)


@given(URLS | st.text(alphabet=st.characters(codec="ascii")))
@example("https://a@b@c.example")
def test_a_host_that_is_not_in_the_text_never_comes_out(text: str) -> None:
    try:
        name, _, port = pattern_of(text).rpartition(":")
    except NoRule:
        return
    assert name in text.lower()
    assert "*" not in name
    assert 1 <= int(port) <= 65535


VALUES = {"HOST": "a.example", "URL": "https://a.example", "SECRET": "hunter2", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("https://${HOST}/x", "https://a.example/x"),
        ("${URL}/${HOST}", "https://a.example/a.example"),
        ("${NONE?}x", "x"),
        ("${NONE-y}x", "yx"),
        ("${NONE:-y}x", "yx"),
        ("${EMPTY:-y}x", "yx"),
        ("${EMPTY-y}x", "x"),
        ("${open", "${open"),
        ("$HOST", "$HOST"),
    ],
)
def test_the_users_own_files_may_use_variables(text: str, expanded: str) -> None:
    assert expand(text, VALUES.get, project=False) == expanded


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(NotExpanded, match="NONE"):
        expand("https://${NONE}/", VALUES.get, project=False)


@pytest.mark.parametrize("text", ["https://${SECRET}.evil.example/", "${SECRET}", "https://x${URL}", "${URL}${SECRET}"])
def test_a_project_cannot_spell_a_secret_into_a_host(text: str) -> None:
    with pytest.raises(NotExpanded) as refusal:
        expand(text, VALUES.get, project=True)
    assert "hunter2" not in str(refusal.value)


def test_a_project_may_let_the_user_name_the_registry() -> None:
    assert expand("${URL}/npm/", VALUES.get, project=True) == "https://a.example/npm/"


def test_values_do_not_grow_without_end() -> None:
    with pytest.raises(NotExpanded, match="too long"):
        expand("${LONG}" * 3, {"LONG": "x" * 3000}.get, project=False)


@given(
    st.lists(st.sampled_from(["${", "}", "URL", "SECRET", "-", ":-", "?", "https://", "x"])).map("".join), st.booleans()
)
def test_nothing_but_its_own_error_comes_out(text: str, project: bool) -> None:
    try:
        expanded = expand(text, VALUES.get, project=project)
    except NotExpanded:
        return
    assert not (project and "hunter2" in expanded)


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


def test_an_index_of_crates_names_their_host() -> None:
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
