"""What is native, signed by the Mac that runs it: the helper, the preload library and the module for Python.

A wheel has no step of its own when it is installed, and macOS 26 is reported to kill some ad-hoc signatures that were
made elsewhere. Whether `codesign --verify` finds fault with those is not known, so it is not asked: the first launch
after an install copies the three files and signs the copies, always, and later launches use them. They are beside the
state folder, not in it, since the command reads the library and must not read our state; it writes neither (INV-8).

Where the Mac cannot sign, the files are used as they were installed: nothing is less confined by that, and if the
system does not take them, nothing is run.
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
    """Paths. `unsigned` says why they are the installed ones; empty: they are copies that this Mac signed."""

    helper: str = APPLY
    library: str = LIBRARY
    module: str = MODULE
    unsigned: str = ""


INSTALLED = Parts()


def signed_home() -> str:
    """Where the copies are."""
    return f"{state_home()}-signed"


def signed_parts(installed: Parts = INSTALLED, codesign: str = CODESIGN) -> Parts:
    """Copies of *installed*, made if this is the first launch; what was not installed is not there either."""
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
    """Take the module for Python from *path*, unless it was taken before; if it cannot be, an import will say why."""
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
