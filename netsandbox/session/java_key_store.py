"""Java's list of CAs: where this machine has one, and the session's list in Java's own format.

Java reads neither the system's list nor a variable. Its format JKS is read by every version: a count, the certificates
with their names, and a SHA-1 digest with the password that everybody knows. The digest protects nothing here; Java
compares it if a program gives the password.
"""

from __future__ import annotations

import binascii
import os

from netsandbox.policy.trust_places import JAVA_STORES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAGIC, VERSION, TRUSTED = 0xFEEDFEED, 2, 2
PASSWORD = b"\0c\0h\0a\0n\0g\0e\0i\0t"
WHITENER = b"Mighty Aphrodite"
BEGIN, END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
BELOW_HOME = ("lib/security/cacerts", "jre/lib/security/cacerts")  # the second up to Java 8


def found_stores(environment: Mapping[bytes, bytes]) -> tuple[str, ...]:
    """Java's lists of CAs on this machine, each where it really is. *environment* is the command's."""
    return tuple(dict.fromkeys(os.path.realpath(path) for path in _candidates(environment) if os.path.isfile(path)))


def _candidates(environment: Mapping[bytes, bytes]) -> Iterator[str]:
    yield from JAVA_STORES
    homes = [os.fsdecode(environment.get(b"JAVA_HOME", b""))]
    for folder in os.fsdecode(environment.get(b"PATH", b"")).split(os.pathsep):
        if os.path.isabs(folder) and os.path.exists(program := os.path.join(folder, "java")):
            homes.append(os.path.dirname(os.path.dirname(os.path.realpath(program))))
    for home in filter(os.path.isabs, homes):
        yield from (os.path.join(home, name) for name in BELOW_HOME)


def key_store(bundle: bytes) -> bytes:
    """The certificates of *bundle*, which is in PEM, as a key store."""
    from hashlib import sha1

    entries = [_entry(number, certificate) for number, certificate in enumerate(_certificates(bundle))]
    data = b"".join((_number(MAGIC), _number(VERSION), _number(len(entries)), *entries))
    return data + sha1(PASSWORD + WHITENER + data, usedforsecurity=False).digest()


def _certificates(bundle: bytes) -> Iterator[bytes]:
    """What is no certificate is left out, since Java refuses the whole list because of it."""
    for part in bundle.split(BEGIN)[1:]:
        body, end, _ = part.partition(END)
        try:
            certificate = binascii.a2b_base64(body)
        except binascii.Error:
            continue
        if end and certificate.startswith(b"\x30"):
            yield certificate


def _entry(number: int, certificate: bytes) -> bytes:
    made = bytes(8)  # its date
    names = _text(f"netsandbox-{number}") + made + _text("X.509")
    return _number(TRUSTED) + names + _number(len(certificate)) + certificate


def _text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode("ascii")


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big")
