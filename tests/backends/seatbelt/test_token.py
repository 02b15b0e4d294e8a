"""A session's token: 128 bits, drawn anew, told to the session alone."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from netsandbox.backends.seatbelt.token import TOKEN_BYTES, new_token, password, proxy_url


@pytest.mark.attack(184)
def test_a_token_has_128_bits_and_is_never_the_same() -> None:
    tokens = {new_token() for _ in range(1000)}
    assert len(tokens) == 1000
    assert TOKEN_BYTES * 8 >= 128
    assert all(bytes.fromhex(password(token).decode()) == token for token in tokens)
    assert {len(token) for token in tokens} == {TOKEN_BYTES}


def test_clients_read_the_url_as_it_is_meant() -> None:
    token = new_token()
    url = urlsplit(proxy_url(50123, token).decode())
    assert (url.scheme, url.hostname, url.port, url.password) == ("http", "localhost", 50123, token.hex())
