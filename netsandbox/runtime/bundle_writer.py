"""Writes the file of bytecode that the next launch reads (see `bundle`)."""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib_external import SourceFileLoader

from netsandbox.paths import packages
from netsandbox.runtime.bytecode_bundle import LENGTH, MARK
from netsandbox.runtime.private_file import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.bytecode_bundle import Bundle, Entry

    Source = tuple[str, int, int]  # its path, when it was changed, its size
    Compiled = tuple[Source, bytes | memoryview]

FOR_ALL = 0o644  # as the interpreter's own: whoever may run us may read it


def complete(bundle: Bundle) -> None:
    """Write *bundle* again with what it missed."""
    found = {name: compiled for name in bundle.missed if (compiled := _compiled(name)) is not None}
    if not found:
        return
    known: dict[str, Compiled] = {name: (each[:3], bundle.code(each)) for name, each in bundle.entries.items()}
    try:
        replace(bundle.place, packed({**known, **found}), FOR_ALL)
    except OSError:  # then modules are read one by one
        pass


def packed(modules: dict[str, Compiled]) -> bytes:
    """How long the list of modules is, the list, and the code of one behind that of another."""
    entries: dict[str, Entry] = {}
    end = 0
    for name, (source, code) in modules.items():
        begin, end = end, end + len(code)
        entries[name] = (*source, begin, end)
    listed = marshal.dumps((MARK, end, entries))
    return b"".join((len(listed).to_bytes(LENGTH, "little"), listed, *(code for _, code in modules.values())))


def _compiled(name: str) -> Compiled | None:
    """None for a module that is not there, is none of Python, lies where a session may write, or changes meanwhile."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    path = spec.origin if spec is not None else None
    if path is None or not path.endswith(".py") or not any(path.startswith(f"{folder}/") for folder in packages()):
        return None
    try:
        source = _source(path)
        code = SourceFileLoader(name, path).get_code(name)
        return (source, marshal.dumps(code)) if _source(path) == source else None
    except (OSError, ImportError, SyntaxError):
        return None


def _source(path: str) -> Source:
    state = os.stat(path)
    return path, state.st_mtime_ns, state.st_size
