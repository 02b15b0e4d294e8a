"""The key and the certificate of a session's CA, made before anything else of the engine is imported.

The command waits for this certificate, so it is written here, byte by byte: `cryptography.x509` alone takes 45 ms to
import. `authority` reads both back and signs with the key.
"""

from __future__ import annotations

import _sha1
import binascii
import os
import time

from netsandbox_proxy.inspect.ca_key import make_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.inspect.ca_key import CaKey

DAY = 24 * 60 * 60
DAYS = 365
MAX_COMMON_NAME = 64  # RFC 5280, upper bounds
SERIAL_BYTES = 20  # RFC 5280, 4.1.2.2: at most, and positive
FIRST_GENERALIZED = 2050  # RFC 5280, 4.1.2.5: earlier years are written with two digits
LINE = 64  # RFC 7468
# Tags and object identifiers of X.690 and RFC 5280.
(
    BOOLEAN,
    INTEGER,
    BIT_STRING,
    OCTET_STRING,
    OID,
    UTF8,
    UTC_TIME,
    GENERALIZED_TIME,
    SEQUENCE,
    SET,
    VERSION,
    EXTENSIONS,
) = (*(0x01, 0x02, 0x03, 0x04, 0x06, 0x0C, 0x17, 0x18, 0x30, 0x31, 0xA0, 0xA3),)
COMMON_NAME, KEY_IDENTIFIER, KEY_USAGE, BASIC_CONSTRAINTS = (
    b"\x55\x04\x03",
    b"\x55\x1d\x0e",
    b"\x55\x1d\x0f",
    b"\x55\x1d\x13",
)
ECDSA_WITH_SHA256 = b"\x2a\x86\x48\xce\x3d\x04\x03\x02"
POINT = 65  # bytes of a public key of P-256, at the end of its description; their hash names the key
TRUE = b"\x01\x01\xff"


class SessionCa:
    """`private` is the key and `certificate` the certificate, both in DER."""

    def __init__(self, label: str) -> None:
        key = make_key()
        self.private = key.private
        self.certificate = certificate(key, f"netsandbox {label}"[:MAX_COMMON_NAME], time.time())

    @property
    def pem(self) -> str:
        text = binascii.b2a_base64(self.certificate, newline=False).decode("ascii")
        lines = [text[at : at + LINE] for at in range(0, len(text), LINE)]
        return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""))


def certificate(key: CaKey, name: str, now: float) -> bytes:
    """The CA's own certificate: it signs servers' certificates, and no other CA's."""
    algorithm = der(SEQUENCE, der(OID, ECDSA_WITH_SHA256))
    own_name = der(SEQUENCE, der(SET, der(SEQUENCE, der(OID, COMMON_NAME), der(UTF8, name.encode("utf-8")))))
    serial = bytearray(os.urandom(SERIAL_BYTES))
    serial[0] = serial[0] & 0x3F | 0x40  # positive, and without leading zeros
    signed = der(
        SEQUENCE,
        der(VERSION, der(INTEGER, b"\x02")),  # X.509 v3
        der(INTEGER, bytes(serial)),
        algorithm,
        own_name,
        der(SEQUENCE, _time(now - DAY), _time(now + DAYS * DAY)),
        own_name,
        key.public,
        der(
            EXTENSIONS,
            der(
                SEQUENCE,
                _extension(BASIC_CONSTRAINTS, der(SEQUENCE, TRUE, der(INTEGER, b"\x00")), critical=True),
                _extension(KEY_USAGE, der(BIT_STRING, b"\x01\x06"), critical=True),  # keyCertSign, cRLSign
                _extension(KEY_IDENTIFIER, der(OCTET_STRING, _sha1.sha1(key.public[-POINT:]).digest()), critical=False),
            ),
        ),
    )
    signature = key.sign(signed)
    return der(SEQUENCE, signed, algorithm, der(BIT_STRING, b"\x00", signature))


def der(tag: int, *contents: bytes) -> bytes:
    """One element of DER (X.690): its tag, its length, its content."""
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _extension(identifier: bytes, value: bytes, *, critical: bool) -> bytes:
    return der(SEQUENCE, der(OID, identifier), TRUE if critical else b"", der(OCTET_STRING, value))


def _time(seconds: float) -> bytes:
    when = time.gmtime(seconds)
    is_short = when.tm_year < FIRST_GENERALIZED
    written = time.strftime("%y%m%d%H%M%SZ" if is_short else "%Y%m%d%H%M%SZ", when)
    return der(UTC_TIME if is_short else GENERALIZED_TIME, written.encode("ascii"))
