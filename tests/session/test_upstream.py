"""A parent proxy is found once, by its URL."""

from __future__ import annotations

import base64
import socket

import pytest

from netsandbox.errors import UsageError
from netsandbox.session.upstream import resolve_parent


def test_an_address_and_a_port() -> None:
    parent = resolve_parent("http://127.0.0.1:3128")
    assert (list(parent.addresses), parent.port, parent.authorization) == ([(2, "127.0.0.1")], 3128, None)


def test_ipv6_stands_in_brackets() -> None:
    parent = resolve_parent("http://[::1]:8080/")
    assert (list(parent.addresses), parent.port) == ([(10, "::1")], 8080)


def test_a_name_is_resolved() -> None:
    assert "127.0.0.1" in [address for _, address in resolve_parent("http://localhost:3128").addresses]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("user:pass", b"user:pass"),
        ("user", b"user:"),
        ("u%40x:p%3Ass", b"u@x:p:ss"),
        ("u:a:b", b"u:a:b"),
        ("%C3%A9:", b"\xc3\xa9:"),
    ],
)
def test_credentials_are_decoded_and_sent_as_basic(written: str, meant: bytes) -> None:
    parent = resolve_parent(f"http://{written}@127.0.0.1:3128")
    assert parent.authorization == b"Basic " + base64.b64encode(meant)


def test_a_name_that_does_not_resolve_is_an_error_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **named: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(UsageError, match="--upstream-proxy") as caught:
        resolve_parent("http://user:secret@proxy.invalid:3128")
    assert "secret" not in str(caught.value)
