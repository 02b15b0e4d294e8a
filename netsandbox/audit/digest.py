"""SHA-256 for the chain. `hashlib` costs milliseconds (it loads OpenSSL), the interpreter's own module does not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # Python 3.12 and later
    except ImportError:
        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:
            from hashlib import sha256  # an interpreter built without its own

# What the first line of a log names as its predecessor.
GENESIS = "0" * 64


def digest(line: bytes) -> str:
    """The hash by which the next line names *line* (without its newline)."""
    return sha256(line).hexdigest()
