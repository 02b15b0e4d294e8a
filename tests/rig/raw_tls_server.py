"""A TLS server that does what a test says, and certificates that no server should have."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.rig.certificates import CertificateAuthority, Leaf
from tests.rig.threaded_server import ThreadedServer

DAY = datetime.timedelta(days=1)


class RawTlsServer(ThreadedServer):
    """`heads` are the bytes that arrived first on each connection; *serve* gets the connection after them."""

    def __init__(self, context: ssl.SSLContext, serve: Callable[[ssl.SSLSocket], object]) -> None:
        self._context = context
        self._behave = serve
        self.heads: list[bytes] = []
        super().__init__(self._speak)

    def _speak(self, plain: socket.socket) -> None:
        with contextlib.suppress(ValueError), self._context.wrap_socket(plain, server_side=True) as sock:
            self.heads.append(sock.recv(65536))
            self._behave(sock)


@contextlib.contextmanager
def raw_tls_server(
    leaf: Leaf | ssl.SSLContext, serve: Callable[[ssl.SSLSocket], object], protocol: str = "http/1.1"
) -> Iterator[RawTlsServer]:
    context = leaf.context() if isinstance(leaf, Leaf) else leaf
    context.set_alpn_protocols([protocol])
    server = RawTlsServer(context, serve)
    try:
        yield server
    finally:
        server.close()


def odd_leaf(ca: CertificateAuthority, folder: Path, name: str, *, begins: int, ends: int, signed: bool = True) -> Leaf:
    """A certificate for *name*, valid from and until so many days from now; one that is not *signed* signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    issuer: Any = x509.load_pem_x509_certificate(ca.cert.read_bytes())
    signer: Any = serialization.load_pem_private_key((ca.folder / "ca.key").read_bytes(), None) if signed else key
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if signed else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins * DAY)
        .not_valid_after(now + ends * DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    leaf = Leaf(folder / "odd.pem", folder / "odd.key")
    leaf.cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kept = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    leaf.key.write_bytes(key.private_bytes(*kept))
    return leaf
