"""The path of the preload library, and the two environment variables that load it into a process.

Rules: `inject` is pure; the user's own entries stay, behind ours; no other variable is read.
The port map inside a session is mounted over PORT_MAP, an empty file that is part of the package.
"""

from __future__ import annotations

import os

from netsandbox.errors import HostError
from netsandbox.system import IS_MACOS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def load_native() -> Any:
    """The compiled side of the port map. The library must exist too, or nothing would be rewritten."""
    try:
        import netsandbox_interpose._native as native
    except ImportError as error:
        raise _not_built(str(error)) from None
    if not os.path.exists(LIBRARY):
        raise _not_built(f"there is no {LIBRARY}")
    return native


def _not_built(why: str) -> HostError:
    advice = "reinstall netsandbox with a C compiler at hand, or use --rewrite-engine kernel"
    return HostError(f"the preload library cannot be used ({why}); {advice}")
