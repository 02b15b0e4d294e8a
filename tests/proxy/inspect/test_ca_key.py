"""The key of a session's CA, by both libraries."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_der_public_key
from netsandbox_proxy.inspect import ca_key
from netsandbox_proxy.inspect.ca_key import CaKey, key_by_cryptography, key_by_openssl, make_key


@pytest.mark.parametrize("make", [key_by_openssl, key_by_cryptography])
def test_its_parts_belong_together(make: Callable[[], CaKey]) -> None:
    key = make()
    private, public = load_der_private_key(key.private, None), load_der_public_key(key.public)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert isinstance(private.curve, ec.SECP256R1)
    assert private.public_key() == public
    private.public_key().verify(key.sign(b"signed"), b"signed", ec.ECDSA(SHA256()))
    assert make().private != key.private


@pytest.mark.parametrize("error", [ImportError, OSError, AttributeError])
def test_without_pythons_openssl_cryptography_makes_it(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def refuse() -> CaKey:
        raise error

    monkeypatch.setattr(ca_key, "key_by_openssl", refuse)
    assert load_der_public_key(make_key().public)


@pytest.mark.parametrize("result", [None, 0, -1])
def test_a_refusal_of_openssl_is_an_error(result: int | None) -> None:
    with pytest.raises(OSError, match="refused"):
        ca_key._good(result)
