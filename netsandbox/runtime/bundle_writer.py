"""Writes the file of bytecode that the next start reads (see `imports`).

Our own code is written without what only readers and type checkers need: docstrings, annotations of functions, blocks
of TYPE_CHECKING. A start spends a quarter of its time on reading bytecode and making functions of it.
"""

from __future__ import annotations

import _ast
import marshal
import os
import sys
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader

from netsandbox.paths import packages
from netsandbox.runtime.imports import LENGTH_BYTES, MARK
from netsandbox.runtime.private_file import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from netsandbox.runtime.imports import Bundle, Entry

    File = tuple[str, int, int]  # its path, its time of change, its size
    Compiled = tuple[File, bytes]

FUTURE_ANNOTATIONS = 0x1000000  # the flag of the compiler; `__future__` would be one more module
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
        if not path.endswith(".py"):
            return None
        loader = SourceFileLoader(name, path)
        code = lean(loader.get_data(path), path) if name.startswith("netsandbox") else loader.get_code(name)
        return (file, marshal.dumps(code)) if _file(path) == file else None
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


def lean(source: bytes, path: str) -> CodeType:
    """The code of a module without what nothing of ours reads while it runs."""
    tree = compile(source, path, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, _ast.Module)
    kept = [node for node in tree.body if not _is_future(node)]
    flags = FUTURE_ANNOTATIONS if len(kept) < len(tree.body) else 0
    tree.body = kept
    _make_lean(tree)
    code: CodeType = compile(tree, path, "exec", flags, dont_inherit=True)
    return code


def _is_future(node: _ast.stmt) -> bool:
    return isinstance(node, _ast.ImportFrom) and node.module == "__future__"


def _make_lean(node: _ast.AST) -> None:
    if isinstance(node, (_ast.Module, _ast.ClassDef, _ast.FunctionDef, _ast.AsyncFunctionDef)):
        node.body = _without_docstring(node.body)
    if isinstance(node, (_ast.FunctionDef, _ast.AsyncFunctionDef)):
        node.returns = None
    if isinstance(node, _ast.arg):
        node.annotation = None
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            if any(isinstance(each, _ast.stmt) for each in value):
                value[:] = _at_run_time(value)
            for each in value:
                if isinstance(each, _ast.AST):
                    _make_lean(each)
        elif isinstance(value, _ast.AST):
            _make_lean(value)


def _without_docstring(body: list[_ast.stmt]) -> list[_ast.stmt]:
    first = body[0] if body else None
    if not (isinstance(first, _ast.Expr) and isinstance(first.value, _ast.Constant) and type(first.value.value) is str):
        return body
    return body[1:] or [_nothing(first)]


def _at_run_time(body: list[_ast.stmt]) -> list[_ast.stmt]:
    """*body* with the other branch of each `if TYPE_CHECKING`."""
    found: list[_ast.stmt] = []
    for node in body:
        if isinstance(node, _ast.If) and isinstance(node.test, _ast.Name) and node.test.id == "TYPE_CHECKING":
            found += node.orelse
        else:
            found.append(node)
    return found or [_nothing(body[0])]


def _nothing(at: _ast.stmt) -> _ast.Pass:
    return _ast.Pass(lineno=at.lineno, col_offset=at.col_offset, end_lineno=at.lineno, end_col_offset=at.col_offset)
