"""Lets the engine import only what is as it was before the command started.

The engine imports while the command runs. No session can write our packages (INV-8), but some installers make their
files hard links into a store, and in the mode `open` a command can write that. The kernel sets the time of change of a
file, and no program can set it back.
"""

from __future__ import annotations

import os
import time
from _frozen_importlib_external import ExtensionFileLoader, FileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

TICK = 20_000_000  # nanoseconds; the clock of files may be behind by a tick of the kernel


def import_unchanged() -> None:
    """From now on, refuse to import a file that was changed since now. The command has not started."""
    began = time.time_ns() - TICK
    make = ExtensionFileLoader.create_module

    def get_data(self: FileLoader, path: str) -> bytes:
        with open(path, "rb") as file:
            data = file.read()
            _check(os.fstat(file.fileno()), began, path)  # after reading: a change meanwhile counts
        return data

    def create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
        _check(os.stat(self.path), began, self.path)
        return make(self, spec)

    FileLoader.get_data = get_data  # type: ignore[method-assign]
    ExtensionFileLoader.create_module = create_module  # type: ignore[method-assign]


def _check(found: os.stat_result, began: int, path: str) -> None:
    if found.st_ctime_ns >= began:
        # Of bytecode that another process has written just now, this makes the importer read the source instead.
        raise PermissionError(f"{path} was changed after the session began")
