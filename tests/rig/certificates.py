"""A certificate authority for one test run, made with the openssl command, so no Python package is needed."""

from __future__ import annotations

import ipaddress
import os
import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


class _LeftOpen(ssl.SSLSocket):
    """`wrap_socket` of older Pythons leaves a socket open that its peer resets just then, where nobody can close it."""

    def __del__(self) -> None:
        descriptor = self.detach()
        if descriptor >= 0:
            os.close(descriptor)


ssl.SSLContext.sslsocket_class = _LeftOpen  # of every test: which one meets that moment is chance


@dataclass(frozen=True)
class Leaf:
    """A server certificate with its key."""

    cert: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context


class CertificateAuthority:
    """Issues certificates; `cert` is what a client must trust (curl --cacert, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cert = folder / "ca.pem"
        self._key = folder / "ca.key"
        self._issued: dict[tuple[str, ...], Leaf] = {}
        extensions = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n"
        request = self._request("ca", "netsandbox test authority")
        self._sign(request, self.cert, extensions, "-signkey", str(self._key))

    def issue(self, *names: str) -> Leaf:
        """A certificate for NAMES: host names, wildcards or addresses."""
        if names not in self._issued:
            stem = f"leaf{len(self._issued)}"
            leaf = Leaf(self.folder / f"{stem}.pem", self.folder / f"{stem}.key")
            alternatives = ",".join(_alternative(name) for name in names)
            extensions = f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\n"
            request = self._request(stem, "netsandbox test server")
            signer = ("-CA", str(self.cert), "-CAkey", str(self._key), "-set_serial", str(len(self._issued) + 2))
            self._sign(request, leaf.cert, extensions, *signer)
            self._issued[names] = leaf
        return self._issued[names]

    def _request(self, stem: str, common_name: str) -> Path:
        request = self.folder / f"{stem}.csr"
        key = self.folder / f"{stem}.key"
        kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(key))
        _openssl("req", "-new", *kind, "-subj", f"/CN={common_name}", "-out", str(request))
        return request

    def _sign(self, request: Path, cert: Path, extensions: str, *signer: str) -> None:
        file = request.with_suffix(".ext")
        file.write_text(extensions)
        files = ("-in", str(request), "-extfile", str(file), "-out", str(cert))
        _openssl("x509", "-req", "-days", "2", "-sha256", *files, *signer)


def _alternative(name: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="session")
def ca(workshop: Path) -> CertificateAuthority:
    """The run's certificate authority."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing (package openssl)")
    folder = workshop / "ca"
    folder.mkdir(mode=0o755)
    return CertificateAuthority(folder)
