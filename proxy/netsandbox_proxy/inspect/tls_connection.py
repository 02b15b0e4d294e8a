"""One side's TLS as two functions over bytes: `decrypt` and `encrypt`. The handshake is pyOpenSSL's.

pyOpenSSL allocates a buffer for every read and raises an exception whenever there is nothing more to read. Here all
connections share one buffer, and bytes go through OpenSSL a few records at a time, so that its own buffers, which never
shrink, stay small in an idle connection.
"""

from __future__ import annotations

from OpenSSL import SSL

_lib, _ffi = SSL._lib, SSL._ffi
PIECE = 32 * 1024
_BUFFER = _ffi.new("char[]", PIECE)
_POINTER = _ffi.new("char **")


class TlsConnection(SSL.Connection):
    """Without a socket."""

    def decrypt(self, data: bytes) -> tuple[bytes, bool]:
        """The text in *data*, and whether the peer said that no more follows. A broken record ends the text; the peer
        is told by an alert."""
        parts: list[bytes] = []
        ssl, read, buffer = self._ssl, _lib.SSL_read, _ffi.buffer
        for piece in _pieces(data):
            if piece:
                self.bio_write(piece)
            while (size := read(ssl, _BUFFER, PIECE)) > 0:
                parts.append(buffer(_BUFFER, size)[:])
            error = _lib.SSL_get_error(ssl, size)
            if error != _lib.SSL_ERROR_WANT_READ:
                _lib.ERR_clear_error()
                return b"".join(parts), error == _lib.SSL_ERROR_ZERO_RETURN
        return parts[0] if len(parts) == 1 else b"".join(parts), False

    def encrypt(self, data: bytes) -> bytes:
        """The records for *data*, behind whatever else waits to be sent."""
        parts: list[bytes] = []
        try:
            for piece in _pieces(data):
                self.sendall(piece)
                parts.append(self.unsent())
        except (SSL.ZeroReturnError, SSL.SysCallError):
            pass  # the peer has closed the connection, and takes no more
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def unsent(self) -> bytes:
        """What must be sent to the peer."""
        bio = self._from_ssl
        size = _lib.BIO_get_mem_data(bio, _POINTER)
        if not size:
            return b""
        parts = []
        while size > 0 and (taken := _lib.BIO_read(bio, _BUFFER, PIECE)) > 0:
            parts.append(_ffi.buffer(_BUFFER, taken)[:])
            size -= taken
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _pieces(data: bytes) -> list[bytes]:
    if len(data) <= PIECE:
        return [data]
    return [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
