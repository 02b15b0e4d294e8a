"""Reads the two layers of an overlay: the upper one, which a session filled as it liked, and the folder of the host.

No link is followed anywhere: every folder is opened by its name in the one above. Every walk is bounded.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.private_folders import FOLDER as OPEN_FOLDER
from netsandbox.backends.linux.private_folders import READ, open_folder, read_file
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import copy_with, frozen
from netsandbox.policy.overlay_changes import (
    ATTRIBUTES,
    FILE,
    FOLDER,
    LINK,
    OTHER,
    WHITEOUT,
    Node,
    compare,
    with_attributes,
)
from netsandbox.policy.overlay_plan import GUARDED, Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.linux.kept_overlays import Overlay
    from netsandbox.policy.overlay_changes import Change

MAX_NODES = 1_000_000
MAX_COUNTED = 2000  # names that are compared when a session ends
MAX_DEPTH = 200  # each level has two descriptors open
PART = 1 << 16
_KINDS = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK}


@frozen
class Scan:
    """Both layers, and the changes that follow from them."""

    trees: Trees
    changes: list[Change]


def scan(overlay: Overlay) -> Scan:
    """Raises an error if the folder of the host is gone, or one of the layers cannot be read."""
    walk = _Walk()
    try:
        upper, host = open_folder(overlay.data), open_folder(overlay.folder)
    except OSError as error:
        raise NetsandboxError(
            f"cannot open {overlay.folder!a}, of which {overlay.name} keeps changes: {error.strerror}; put it back,"
            f" or `netsandbox discard {overlay.name}`"
        ) from None
    try:
        walk.host[""] = node_of(os.fstat(host))
        walk.both(upper, host, "", 0)
    except OSError as error:
        raise NetsandboxError(f"cannot read {error.filename!a} ({error.strerror}); make it readable") from None
    finally:
        os.close(upper)
        os.close(host)
    trees = Trees(walk.upper, walk.host, overlay.since, overlay.protected)
    return Scan(trees, compare(walk.upper, walk.host, frozenset(walk.same)))


class _Walk:
    def __init__(self) -> None:
        self.upper: dict[str, Node] = {}
        self.host: dict[str, Node] = {}
        self.same: set[str] = set()

    def both(self, upper: int, host: int | None, prefix: str, depth: int) -> None:
        """Read a folder of the upper layer, and what the host has by the same names."""
        with os.scandir(upper) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            path = f"{prefix}{name}"
            new = self.upper[path] = _upper_node(upper, name)
            self._check_size(depth)
            old = self._host_node(host, name, path)
            for mark in ("HEAD",) if name in GUARDED else GUARDED if name == "HEAD" else ():  # a bare repository?
                self._host_node(host, mark, f"{prefix}{mark}")
            if new.kind == FOLDER and not new.fault:
                self._inner(upper, host if old is not None and old.kind == FOLDER else None, path, depth)
            if old is None or host is None:
                continue
            if old.kind == FOLDER and (new.kind != FOLDER or new.opaque):
                self._all_below(host, name, path, depth)
            elif new.kind == old.kind == FILE and new.size == old.size and not new.fault and _equal(upper, host, name):
                self.same.add(path)

    def _inner(self, upper: int, host: int | None, path: str, depth: int) -> None:
        name = path.rpartition("/")[2]
        try:
            here = os.open(name, OPEN_FOLDER, dir_fd=upper)
        except OSError as error:
            self.upper[path] = copy_with(self.upper[path], fault=f"it cannot be read ({error.strerror})")
            return
        there = None
        try:
            there = os.open(name, OPEN_FOLDER, dir_fd=host) if host is not None else None
            self.both(here, there, f"{path}/", depth + 1)
        finally:
            os.close(here)
            if there is not None:
                os.close(there)

    def _host_node(self, host: int | None, name: str, path: str) -> Node | None:
        if host is None:
            return None
        try:
            found = os.stat(name, dir_fd=host, follow_symlinks=False)
            target = os.readlink(name, dir_fd=host) if stat.S_ISLNK(found.st_mode) else ""
        except FileNotFoundError:
            return None
        node = self.host[path] = node_of(found, target)
        return node

    def _all_below(self, host: int, name: str, path: str, depth: int) -> None:
        self._check_size(depth)
        here = os.open(name, OPEN_FOLDER, dir_fd=host)
        try:
            with os.scandir(here) as entries:
                names = [entry.name for entry in entries]
            for inner in names:
                node = self._host_node(here, inner, f"{path}/{inner}")
                if node is not None and node.kind == FOLDER:
                    self._all_below(here, inner, f"{path}/{inner}", depth + 1)
        finally:
            os.close(here)

    def _check_size(self, depth: int) -> None:
        if depth > MAX_DEPTH or len(self.upper) + len(self.host) > MAX_NODES:
            raise NetsandboxError(
                f"the changes have more than {MAX_NODES} names, or folders deeper than {MAX_DEPTH}; discard them"
            )


def node_of(found: os.stat_result, target: str = "") -> Node:
    return Node(
        _KINDS.get(stat.S_IFMT(found.st_mode), OTHER),
        found.st_mode & 0o777,
        found.st_size,
        found.st_ino,
        found.st_ctime_ns,
        found.st_mtime_ns,
        target,
    )


def _upper_node(folder: int, name: str) -> Node:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return Node(WHITEOUT)
    node = node_of(found, os.readlink(name, dir_fd=folder) if stat.S_ISLNK(found.st_mode) else "")
    if node.kind not in (FILE, FOLDER):
        return node
    path = f"/proc/self/fd/{folder}/{name}"
    marks = [each for each in os.listxattr(path, follow_symlinks=False) if each.startswith(ATTRIBUTES)]
    if not marks:
        return node
    return with_attributes(node, {each: os.getxattr(path, each, follow_symlinks=False) for each in marks})


def _equal(upper: int, host: int, name: str) -> bool:
    """Whether two files of one size have the same content. One that cannot be read is a changed one."""
    try:
        with (
            open(os.open(name, READ, dir_fd=upper), "rb", 0) as new,
            open(os.open(name, READ, dir_fd=host), "rb", 0) as old,
        ):
            while (part := new.read(PART)) == old.read(PART):
                if not part:
                    return True
    except OSError:
        pass
    return False


def content(root: str, path: str, limit: int) -> bytes | None:
    """The content of a plain file below the folder *root*; None if it is none, or larger."""
    try:
        return read_file(f"{root}/{path}", limit)
    except OSError:
        return None


def count_if_many(folder: str) -> int:
    """0 if an upper layer has few names; otherwise the number of files at which the count stopped."""
    files = names = 0
    waiting = [folder]
    while waiting and names <= MAX_COUNTED:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    names += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        files += 1
        except OSError:  # the session made it unreadable
            continue
    return files if names > MAX_COUNTED else 0
