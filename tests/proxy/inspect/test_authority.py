"""The CA of a session."""

from __future__ import annotations

import pytest

pytest.importorskip("cryptography")

from cryptography import x509
from netsandbox_proxy.inspect.authority import Authority
from netsandbox_proxy.inspect.session_ca import SessionCa


def test_a_leaf_is_for_one_name_and_by_another_key_than_the_authority() -> None:
    authority = Authority(SessionCa("session"))
    leaf = authority.leaf("api.example.com")
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["api.example.com"]
    leaf.verify_directly_issued_by(authority.certificate)
    assert leaf.public_key() == authority.leaf_key.public_key() != authority.certificate.public_key()


def test_the_authority_signs_servers_alone() -> None:
    certificate = x509.load_pem_x509_certificate(Authority(SessionCa("session")).pem.encode())
    limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == (True, 0)


def test_each_session_has_its_own() -> None:
    assert Authority(SessionCa("one")).pem != Authority(SessionCa("one")).pem


def test_long_names_are_no_trouble() -> None:
    authority = Authority(SessionCa("s" * 100))
    long = ".".join(["a" * 60] * 4)
    assert authority.leaf(long).extensions.get_extension_for_class(x509.SubjectAlternativeName).critical
