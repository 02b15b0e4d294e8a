"""The CA of one session and the certificates that it signs. Its keys exist only in the engine's memory.

The CA signs names that the supervisor decided on, one name a certificate, so that no client uses a connection for
another name. All certificates share one key, which is not the CA's.
"""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from netsandbox_proxy.inspect.session_ca import MAX_COMMON_NAME, SessionCa

DAY = datetime.timedelta(days=1)
LEAF_DAYS = 30


class Authority:
    """One per session."""

    def __init__(self, ca: SessionCa) -> None:
        key = load_der_private_key(ca.private, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self.leaf_key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = x509.load_der_x509_certificate(ca.certificate)
        self.pem = ca.pem

    def leaf(self, host: str) -> x509.Certificate:
        """A certificate for *host*."""
        now = datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)] if len(host) <= MAX_COMMON_NAME else [])
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = x509.CertificateBuilder(
            issuer_name=self.certificate.subject,
            subject_name=subject,
            public_key=self.leaf_key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - DAY,
            not_valid_after=now + LEAF_DAYS * DAY,
        )
        builder = builder.add_extension(names, critical=not list(subject))
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        builder = builder.add_extension(issuer, critical=False)
        return builder.sign(self._key, SHA256())
