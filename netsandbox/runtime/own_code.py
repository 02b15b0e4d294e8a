"""The files that this process runs, maps and may still load: no session may write them, in any mode (INV-8).

A command that overwrites a shared object in place, which the supervisor has mapped, runs its code outside of the
sandbox. A command that puts a file beside the interpreter or the launcher runs it in the next launch. So the rule is
generous: whole installation folders, and every mapped file, wherever this user could change them.
"""

from __future__ import annotations

import os
import sys

from netsandbox.paths import PACKAGE, home, packages, user_can_change
from netsandbox.policy.file_rules import is_within, outermost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAPS = "/proc/self/maps"


def code_paths() -> tuple[str, ...]:
    """Real paths, none within another."""
    found = [*map(os.path.realpath, packages()), *_mapped()]
    for prefix in dict.fromkeys(map(os.path.realpath, _prefixes())):
        found += _parts(prefix) if _holds_more(prefix) else [prefix]
    return outermost(path for path in found if _can_change(path))


def _can_change(path: str) -> bool:
    return os.path.exists(path) and (user_can_change(path) or user_can_change(os.path.dirname(path)))


def _prefixes() -> Iterator[str]:
    """The installations of the interpreter, of a virtual environment, and of the folder that our packages are in."""
    yield sys.prefix
    yield sys.base_prefix
    for executable in (sys.executable, getattr(sys, "_base_executable", None)):
        if executable:
            yield os.path.dirname(os.path.dirname(os.path.abspath(executable)))
    above = os.path.dirname(os.path.dirname(os.path.dirname(PACKAGE)))
    if os.path.basename(above) in ("lib", "lib64"):  # PREFIX/lib/python3.N/site-packages/netsandbox
        yield os.path.dirname(above)


def _holds_more(prefix: str) -> bool:
    """Whether programs of others are installed there too, so that a session may have to write in it."""
    return prefix in ("/", "/usr", "/usr/local", "/opt") or is_within(os.path.realpath(home()), os.path.dirname(prefix))


def _parts(prefix: str) -> list[str]:
    """The parts of a shared PREFIX that Python and the launcher come from."""
    found = [f"{prefix}/bin"] if is_within(prefix, os.path.realpath(home())) else []
    for folder in ("lib", "lib64"):
        try:
            names = os.listdir(f"{prefix}/{folder}")
        except OSError:
            continue
        found += [f"{prefix}/{folder}/{name}" for name in names if name.startswith("python3")]
    return found


def _mapped(path: str = MAPS) -> Iterable[str]:
    """The files that this process has mapped; none on a system without /proc, whose sandbox has its own rule."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return ()
    names = {line.split(maxsplit=5)[5] for line in lines if b" /" in line}
    return [os.fsdecode(name) for name in names if not name.endswith(b" (deleted)")]
