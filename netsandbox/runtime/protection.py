"""The files of netsandbox that no session may write, or see, in any mode: one rule for all backends (INV-8).

The rule for opening a path is narrow: it must exist, and a link opens nothing. The rule for protecting is generous:

1. Everything counts by every name: a path, the links on the way to it, and where they lead.
2. A folder of ours that is missing is made, since a command could make it. A link of ours that leads to nothing, where
   a command could put something, is an error.
3. Every home that was ever used counts, whatever the variables are now.
4. Of our code, all counts that this process runs, maps and may still load, with whole installation folders: a command
   that overwrites a shared object in place, which the supervisor has mapped, runs its code outside of the sandbox.
"""

from __future__ import annotations

import os
import sys

from netsandbox.errors import HostError, NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import (
    LISTS,
    PACKAGE,
    PROFILES,
    config_home,
    default_homes,
    home,
    is_made,
    memory_home,
    packages,
    state_home,
    user_can_change,
)
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.used_homes import CONFIG, STATE, used_homes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAPS = "/proc/self/maps"


@frozen
class OwnPaths:
    """Names of folders that no session sees, and of files and folders that none may write."""

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


def own_paths(*kept: str | None, logs: str | None = None) -> OwnPaths:
    """*kept* are files of this session that its command must not write: a log, a configuration. *logs* is a folder of
    logs."""
    folders = filter(os.path.exists, (*config_paths(), *bytecode_folders()))
    return OwnPaths(
        tuple(path for path in dict.fromkeys((*hidden_homes(), logs)) if path is not None and os.path.isdir(path)),
        tuple(dict.fromkeys((*code_paths(), *folders, *filter(None, kept)))),
    )


def make_folders() -> None:
    """Make the folders of ours that are missing: otherwise a command could make one, with a file that allows more in
    the next session. Folders that this user cannot make are left out, since the command cannot make them either."""
    own = config_home()
    inner = (f"{folder}/{name}" for folder in (own, *_without_variables(1)) for name in (PROFILES, LISTS))
    for path in (own, *filter(os.path.islink, inner), *bytecode_folders()):
        is_made(path)


# State


def hidden_homes() -> tuple[str, ...]:
    """The memory home and every state home: logs, trust, caches that the next launch believes."""
    return tuple(dict.fromkeys((state_home(), *_without_variables(0), *used_homes(STATE))))


def _without_variables(kind: int) -> tuple[str, ...]:
    """Homes that do not depend on variables, for state (0) or configuration (1); none if no home is known."""
    try:
        return (memory_home(), default_homes()[0]) if kind == 0 else (default_homes()[1],)
    except NetsandboxError:
        return ()


# Configuration


def config_paths() -> tuple[str, ...]:
    """Every configuration home, and each link in it: what a command put where the link leads would count in the next
    session."""
    homes = dict.fromkeys((config_home(), *_without_variables(1), *used_homes(CONFIG)))
    found: dict[str, None] = {}
    for folder in homes:
        found[folder] = None
        for each in (folder, f"{folder}/{PROFILES}", f"{folder}/{LISTS}"):
            found.update(dict.fromkeys(_links_in(each)))
    return tuple(found)


def _links_in(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            links = [entry.path for entry in entries if entry.is_symlink() and entry.name[0] != "."]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise HostError(f"cannot look at {folder}: {error.strerror}; it could not be protected") from None
    for link in links:  # names with a dot are no configuration, such as the lock of an editor
        if os.path.exists(link):
            yield link
        elif _could_be_made(os.path.realpath(link)):
            raise HostError(
                f"{link!a} leads to {os.path.realpath(link)!a}, which does not exist, so a command could make it;"
                " make it, or remove the link"
            )


def _could_be_made(path: str) -> bool:
    if os.path.lexists(path):  # links that lead round
        return False
    while path != "/" and not os.path.lexists(path):
        path = os.path.dirname(path)
    return user_can_change(path)


# Code


def bytecode_folders() -> tuple[str, ...]:
    """Where an interpreter looks for the bytecode of all that we can import, ours too, if that does not lie beside the
    sources: a command that could write there would run in the next launch.

    The program `netsandbox` ignores PYTHONPYCACHEPREFIX, but `python -m netsandbox` and the Python API follow it, so
    the folder that it names is protected too.
    """
    named = (sys.pycache_prefix, os.environ.get("PYTHONPYCACHEPREFIX"))
    prefixes = [os.path.abspath(prefix) for prefix in named if prefix]
    folders = [os.path.abspath(folder) for folder in sys.path if os.path.isdir(folder)] if prefixes else []
    return tuple(dict.fromkeys(prefix + folder for prefix in prefixes for folder in folders))


def code_paths() -> tuple[str, ...]:
    """Real paths, none within another."""
    named = {*map(os.path.realpath, packages()), *_linked_modules(), *_mapped()}
    for prefix in dict.fromkeys(map(os.path.realpath, _prefixes())):
        named.update(_parts(prefix) if _holds_more(prefix) else [prefix])
    found: list[str] = []
    for path in sorted(named, key=lambda path: path.count("/")):  # what lies in a folder that is named is not looked at
        if not any(is_within(path, folder) for folder in found) and _can_change(path):
            found.append(path)
    return tuple(found)


def _linked_modules() -> Iterator[str]:
    """Where the modules of an installation lead whose files are links (uv with `link-mode = symlink`, stow)."""
    for package in packages():
        if os.path.islink(f"{package}/__init__.py"):
            for folder, _, names in os.walk(package):
                yield from {os.path.dirname(os.path.realpath(f"{folder}/{name}")) for name in names}


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
