"""The private key of a session's CA: P-256, made by the OpenSSL that Python itself uses, through ctypes.

That takes 7 ms, and importing `cryptography` for it 30 ms, which the command would wait for. Where Python's OpenSSL
cannot be reached (it is older than 3.0, or hidden in the interpreter), `cryptography` makes the key all the same.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_SIGNATURE = 72  # bytes of an ECDSA signature with P-256, in DER
_Pointer = ctypes.c_void_p


class CaKey:
    """*public* is a SubjectPublicKeyInfo (RFC 5280), *private* the key, both in DER. `sign` is ECDSA with SHA-256."""

    def __init__(self, public: bytes, private: bytes, sign: Callable[[bytes], bytes]) -> None:
        self.public = public
        self.private = private
        self.sign = sign


def make_key() -> CaKey:
    try:
        return key_by_openssl()
    except (ImportError, OSError, AttributeError):
        return key_by_cryptography()


def key_by_openssl() -> CaKey:
    """OSError or AttributeError if this OpenSSL does not do it."""
    import _hashlib

    library = ctypes.CDLL(_hashlib.__file__)  # the names of what it is linked with are found too (dlsym(3))
    library.EVP_PKEY_Q_keygen.restype = _Pointer
    kind, curve = ctypes.c_char_p(b"EC"), ctypes.c_char_p(b"P-256")
    key = _Pointer(_good(library.EVP_PKEY_Q_keygen(_Pointer(), _Pointer(), kind, curve)))
    return CaKey(
        _encoded(library.i2d_PUBKEY, key),
        _encoded(library.i2d_PrivateKey, key),
        lambda data: _signed(library, key, data),
    )


def _encoded(write: Any, key: _Pointer) -> bytes:
    """The DER that one of OpenSSL's i2d functions writes (d2i_X509(3))."""
    made = ctypes.create_string_buffer(_good(write(key, None)))
    place = _Pointer(ctypes.addressof(made))
    _good(write(key, ctypes.byref(place)))
    return made.raw


def _signed(library: ctypes.CDLL, key: _Pointer, data: bytes) -> bytes:
    library.EVP_MD_CTX_new.restype = library.EVP_sha256.restype = _Pointer
    context = _Pointer(_good(library.EVP_MD_CTX_new()))
    _good(library.EVP_DigestSignInit(context, None, _Pointer(library.EVP_sha256()), None, key))
    made, size = ctypes.create_string_buffer(MAX_SIGNATURE), ctypes.c_size_t(MAX_SIGNATURE)
    _good(library.EVP_DigestSign(context, made, ctypes.byref(size), data, ctypes.c_size_t(len(data))))
    return made.raw[: size.value]


def _good(result: int | None) -> int:
    if not result or result < 0:
        raise OSError("OpenSSL refused")
    return result


def key_by_cryptography() -> CaKey:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return CaKey(public, private, lambda data: key.sign(data, ec.ECDSA(SHA256())))
