"""What opens a session's door on the shared loopback, and how its programs are told (attacks 53, 182, 184).

Any program of the Mac can connect to the door, so it asks for a token: drawn anew for each session, in no log, known to
the supervisor, to the session's environment and to its port map alone. Convenience for those inside, and for others 128
bits to guess.
"""

from __future__ import annotations

import os

TOKEN_BYTES = 16  # 128 bits
USER = b"netsandbox"  # proxies want a name before the password; which one does not matter


def new_token() -> bytes:
    """Raw, as the port map has it."""
    return os.urandom(TOKEN_BYTES)


def password(token: bytes) -> bytes:
    """In hexadecimal digits, which every client carries unchanged in a URL. No door is opened without a token."""
    if len(token) != TOKEN_BYTES:
        raise ValueError("a door on the shared loopback needs a token")
    return token.hex().encode("ascii")


def proxy_url(port: int, token: bytes) -> bytes:
    return b"http://%s:%s@localhost:%d" % (USER, password(token), port)
