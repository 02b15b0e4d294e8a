"""The path of the preload library, and the two environment variables that load it into a process.

Rules: pure; the user's own entries stay, behind ours; no other variable is read.
The port map inside a session is mounted over PORT_MAP, an empty file that is part of the package.
"""

from __future__ import annotations

import os

from netsandbox.system import IS_MACOS

_FOLDER = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(_FOLDER, "libnetsandbox_interpose.dylib" if IS_MACOS else "libnetsandbox_interpose.so")
PORT_MAP = os.path.join(_FOLDER, "port-map")
PRELOAD = b"DYLD_INSERT_LIBRARIES" if IS_MACOS else b"LD_PRELOAD"
PORT_MAP_VARIABLE = b"NETSANDBOX_PORT_MAP"


def inject(environment: dict[bytes, bytes], library: str = "") -> dict[bytes, bytes]:
    """The environment with the library in it, or *library*, a copy of it; injecting twice is injecting once."""
    ours = os.fsencode(library or LIBRARY)
    theirs = [entry for entry in environment.get(PRELOAD, b"").replace(b" ", b":").split(b":") if entry]
    entries = [ours, *(entry for entry in theirs if entry != ours)]
    return {**environment, PRELOAD: b":".join(entries), PORT_MAP_VARIABLE: os.fsencode(PORT_MAP)}
