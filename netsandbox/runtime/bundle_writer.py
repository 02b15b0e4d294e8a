"""Writes the file of bytecode that the next start reads (see `imports`)."""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader

from netsandbox.paths import packages
from netsandbox.runtime.imports import LENGTH_BYTES, MARK
from netsandbox.runtime.private_file import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.imports import Bundle, Entry

    File = tuple[str, int, int]  # its path, its time of change, its size
    Compiled = tuple[File, bytes]

FOR_ALL = 0o644  # as the interpreter's own bytecode: every user who may run us may read it


def complete(bundle: Bundle) -> None:
    """Write *bundle* again with the modules that it missed."""
    found = {name: _compiled(name) for name in bundle.missed}
    known = {name: entry and (entry[:3], bundle.code(entry)) for name, entry in bundle.entries.items()}
    try:
        replace(bundle.place, packed({**known, **found}, bundle.late), FOR_ALL)
    except OSError:  # then modules are read one by one
        pass


def packed(modules: dict[str, Compiled | None], late: tuple[str, ...] = ()) -> bytes:
    """The length of the list of entries, the list, and the code of all modules in its order, the *late* ones first."""
    modules = {**{name: modules.get(name) for name in late}, **modules}
    start = LENGTH_BYTES + len(_listed(modules, late, 0))  # a number takes the same room whatever its value
    listed = _listed(modules, late, start)
    codes = (compiled[1] for compiled in modules.values() if compiled is not None)
    return b"".join(((start - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "little"), listed, *codes))


def _listed(modules: dict[str, Compiled | None], late: tuple[str, ...], start: int) -> bytes:
    """The list of entries when the first code begins at *start*."""
    entries: dict[str, Entry | None] = {}
    end = start
    for name, compiled in modules.items():
        if compiled is None:
            entries[name] = None
        else:
            file, code = compiled
            begin, end = end, end + len(code)
            entries[name] = (*file, begin, end)
    # Version 2 writes no references, so two lists have the same length.
    return marshal.dumps((MARK, end, late, entries), 2)


def _compiled(name: str) -> Compiled | None:
    """None for a module that is missing, is not a trusted file, or changes meanwhile."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None or spec.origin is None or not _is_trusted(spec.origin):
        return None
    path = spec.origin
    try:
        file = _file(path)
        if isinstance(spec.loader, ExtensionFileLoader):
            return file, b""
        code = marshal.dumps(SourceFileLoader(name, path).get_code(name)) if path.endswith(".py") else None
        return (file, code) if code is not None and _file(path) == file else None
    except (OSError, ImportError, SyntaxError):
        return None


def _is_trusted(path: str) -> bool:
    """Below our packages, or in the standard library, not among the packages that are installed there."""
    if any(path.startswith(f"{folder}/") for folder in packages()):
        return True
    library: str = sys._stdlib_dir  # type: ignore[attr-defined]
    return path.startswith(f"{library}/") and "-packages/" not in path[len(library) :]


def _file(path: str) -> File:
    state = os.stat(path)
    return path, state.st_mtime_ns, state.st_size
