from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netsandbox.config.registries.destination import Skipped, pattern_of
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
        ("*", "no URL"),
        ("", "no URL"),
        ("registry.example", "no URL"),
        ("https://", "no host name"),
        ("https://*", "no host name"),
        ("https://*.example/", "no host name"),
        ("https://a.example:*/", "no port"),
        ("https://a.example:0/", "no port"),
        ("https://a.example:99999/", "no port"),
        ("https://a example/", "characters"),
        ("https://a.example\\@b.example/", "characters"),
        ("https://a.example\x1b[2J/", "characters"),
        ("ssh://git@a.example/", "--allow-domain"),
        ("https://127.1/", "no host name"),
        ("https://${HOST}/", "no host name"),
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
    with pytest.raises(Skipped) as refusal:
        pattern_of(text)
    assert advice in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("text", ["file:///srv/index", "/srv/index", "./wheels", "~/wheels", "file:wheels"])
def test_a_folder_needs_no_network_and_no_words(text: str) -> None:
    with pytest.raises(Skipped) as refusal:
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
    with pytest.raises(Skipped) as refusal:
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
    except Skipped:
        return
    assert name in text.lower()
    assert "*" not in name
    assert 1 <= int(port) <= 65535
