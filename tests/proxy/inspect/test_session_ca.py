"""The certificate of a session's CA, as `cryptography` reads it."""

from __future__ import annotations

import datetime

import pytest

pytest.importorskip("cryptography")

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.inspect.ca_key import key_by_cryptography
from netsandbox_proxy.inspect.session_ca import DAY, DAYS, MAX_COMMON_NAME, SessionCa, certificate, der

KEY = key_by_cryptography()


def test_it_is_what_a_library_would_have_made() -> None:
    made = SessionCa("one")
    read = x509.load_pem_x509_certificate(made.pem.encode("ascii"))
    assert read == x509.load_der_x509_certificate(made.certificate)
    read.verify_directly_issued_by(read)
    assert read.version is x509.Version.v3
    assert read.subject.rfc4514_string() == "CN=netsandbox one"
    public = read.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert isinstance(read.signature_hash_algorithm, SHA256)
    found = {type(each.value): (each.critical, each.value) for each in read.extensions}
    assert found[x509.BasicConstraints] == (True, x509.BasicConstraints(ca=True, path_length=0))
    critical, usage = found[x509.KeyUsage]
    assert critical
    assert isinstance(usage, x509.KeyUsage)
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature, usage.key_agreement) == (
        True,
        True,
        False,
        False,
    )
    assert found[x509.SubjectKeyIdentifier] == (False, x509.SubjectKeyIdentifier.from_public_key(public))
    assert SessionCa("one").certificate != made.certificate


@given(st.text(max_size=MAX_COMMON_NAME), st.integers(0, 3_000_000_000))
def test_names_and_times_are_kept(name: str, now: int) -> None:
    """Years from 2050 on are written in another way."""
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        return
    if not 0 < len(encoded) <= MAX_COMMON_NAME:  # `cryptography` counts bytes
        return
    read = x509.load_der_x509_certificate(certificate(KEY, name, now))
    assert [attribute.value for attribute in read.subject] == [name]
    began = datetime.datetime.fromtimestamp(now - DAY, datetime.UTC)
    if began.year >= 1970:
        assert read.not_valid_before_utc == began
    assert read.not_valid_after_utc - read.not_valid_before_utc == datetime.timedelta(days=DAYS + 1)
    assert 0 < read.serial_number < 1 << 159


@given(st.integers(0, 70_000))
def test_lengths_are_written_as_short_as_they_can_be(size: int) -> None:
    made = der(0x04, bytes(size))
    header = len(made) - size
    assert header == 2 + (0 if size < 0x80 else (size.bit_length() + 7) // 8)
    assert made[header:] == bytes(size)
