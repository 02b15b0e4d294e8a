"""Signs the native files on the host that runs them: the helper, the preload library and the module for Python.

A wheel has no install step, and macOS 26 is reported to kill some ad-hoc signatures that were made elsewhere. Whether
`codesign --verify` detects those is unknown, so it is not used: the first launch after an install always copies the
three files and signs the copies, and later launches use them. They are beside the state folder, not in it, since the
command reads the library and must not read our state; it can write neither (INV-8).

If the host cannot sign, the installed files are used: the confinement is the same, and if macOS rejects them, nothing
is run.
"""

from __future__ import annotations

import os
import sys

from netsandbox_interpose.library import LIBRARY

from netsandbox.backends.seatbelt.mac_system import APPLY
from netsandbox.backends.seatbelt.signed_folder import CannotSign, folder_of, holds, make, own_folder
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import state_home

CODESIGN = "/usr/bin/codesign"
MODULE = os.path.join(os.path.dirname(LIBRARY), "_native.abi3.so")
MODULE_NAME = "netsandbox_interpose._native"


@frozen
class Parts:
    """Paths. `unsigned` states why they are the installed ones; empty: they are locally signed copies."""

    helper: str = APPLY
    library: str = LIBRARY
    module: str = MODULE
    unsigned: str = ""


INSTALLED = Parts()


def signed_home() -> str:
    """The folder of the copies."""
    return f"{state_home()}-signed"


def signed_parts(installed: Parts = INSTALLED, codesign: str = CODESIGN) -> Parts:
    """Copies of *installed*, made at the first launch. A file that was not installed has no copy."""
    paths = [installed.helper, installed.library, installed.module]
    there = [path for path in paths if os.path.exists(path)]
    try:
        if not os.path.exists(codesign):
            raise CannotSign(f"there is no {codesign}")
        home = signed_home()
        own_folder(home)
        folder = folder_of(home, there)
        if not holds(folder, there):
            make(folder, there, codesign)
    except (OSError, CannotSign, NetsandboxError) as error:
        return Parts(installed.helper, installed.library, installed.module, str(error))
    helper, library, module = (
        os.path.join(folder, os.path.basename(path)) if path in there else path for path in paths
    )
    return Parts(helper, library, module)


def load_module(path: str) -> None:
    """Load the module for Python from *path*, unless it is loaded. If that fails, a later import reports why."""
    if MODULE_NAME in sys.modules or not os.path.exists(path):
        return
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(MODULE_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return
    sys.modules[MODULE_NAME] = module
