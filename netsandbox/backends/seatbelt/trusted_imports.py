"""What may be imported once the command runs, on a Mac: nothing.

The command can write what the user can, and a module planted there and imported by the supervisor would run outside of
the sandbox (see `import_sealing`). A Mac has no descriptors of folders by which ours could be found again, so all
that the supervisor needs is loaded first; where this process is ours alone, nothing more can be imported at all.
"""

from __future__ import annotations

import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter

from netsandbox.runtime.import_sealing import DOORS, LAST_WORDS, load_needed

LINUX = (
    "netsandbox.backends.namespaces.",
    "netsandbox.session.supervisor",
    "netsandbox.session.doors",
    "netsandbox_portmap.localhost_service",
)
NEEDED = (
    *(name for name in DOORS if not name.startswith(LINUX)),
    "netsandbox.backends.seatbelt.supervisor",
    "netsandbox.backends.seatbelt.helper_process",
    "netsandbox.runtime.signals",
    "netsandbox.audit.log",
    *LAST_WORDS,
    "binascii",  # by which the doors read the token; a file in many installations
)


def load_all() -> None:
    load_needed()
    for name in NEEDED:
        __import__(name)


def trust_imports(*, sealed: bool) -> None:
    """Before the command can write a file. *sealed*: this process exists for this one run."""
    load_all()
    if sealed:
        sys.meta_path[:] = [BuiltinImporter, FrozenImporter]
