"""SHA-256 for the chain of the log and for fingerprints. `hashlib` would load OpenSSL, which costs milliseconds."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        from hashlib import sha256  # an interpreter built without its own

__all__ = ["GENESIS", "digest", "sha256"]

# The predecessor that the first line of a log names.
GENESIS = "0" * 64


def digest(line: bytes) -> str:
    """The hash by which the next line names *line* (without its newline)."""
    return sha256(line).hexdigest()
