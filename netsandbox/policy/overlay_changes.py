"""What a session changed in an overlay: its upper layer, compared with the folder of the host. Pure.

`Tree` maps paths below the folder, such as `src/main.c`, to what is there; `overlay_files` reads both trees. Of the
host only those paths are needed that the upper layer has, and all below a folder that it removes or replaces.
"""

from __future__ import annotations

from netsandbox.frozen import copy_with, frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Tree = Mapping[str, "Node"]

FILE, FOLDER, LINK, OTHER, WHITEOUT = "file", "folder", "link", "special file", "whiteout"
ADDED, CHANGED, MODE, REMOVED = "added", "changed", "mode", "removed"
ATTRIBUTES = ("user.overlay.", "trusted.overlay.")
MOVED = ("redirect", "metacopy")  # attributes that name content elsewhere; a session cannot set them


@frozen
class Node:
    """One name. `mode` has the permissions alone. Times are in nanoseconds: `changed` is the time that no program can
    set. `copied`: overlayfs copied it from the host. `fault`: why it cannot be read."""

    kind: str
    mode: int = 0
    size: int = 0
    number: int = 0  # of the inode
    changed: int = 0
    modified: int = 0
    target: str = ""
    opaque: bool = False
    copied: bool = False
    fault: str = ""


@frozen
class Change:
    """What happens to one path of the host. `kind` is that of the new node, or of the one that is removed."""

    path: str
    action: str
    kind: str


def with_attributes(node: Node, attributes: Mapping[str, bytes]) -> Node:
    """*node* of an upper layer, as overlayfs marked it."""
    marks = {
        name[len(prefix) :]: value
        for name, value in attributes.items()
        for prefix in ATTRIBUTES
        if name.startswith(prefix)
    }
    if "whiteout" in marks and node.kind == FILE:
        return Node(WHITEOUT)
    if not marks:
        return node
    moved = [name for name in MOVED if name in marks]
    fault = f"it has the attribute {moved[0]} of overlayfs, which no session sets" if moved else node.fault
    return copy_with(node, opaque=marks.get("opaque") == b"y", copied="origin" in marks, fault=fault)


def compare(upper: Tree, host: Tree, same: frozenset[str]) -> list[Change]:
    """The changes that turn the host's folder into what the session saw, parents first. *same*: the paths of files
    that have the same content in both."""
    below = _children(host)
    found: dict[str, Change] = {}
    for path in in_order(upper):
        new, old = upper[path], host.get(path)
        action = _action(new, old, path in same)
        if action is not None:
            found[path] = Change(path, action, old.kind if action == REMOVED and old else new.kind)
        if old is None or old.kind != FOLDER:
            continue
        inner = below.get(path, []) if new.kind != FOLDER or new.opaque else []
        for child in _with_all_below((child for child in inner if child not in upper), below):
            found.setdefault(child, Change(child, REMOVED, host[child].kind))
    return [found[path] for path in in_order(found)]


def _action(new: Node, old: Node | None, is_same: bool) -> str | None:  # noqa: FBT001 (private, one caller)
    if new.kind == WHITEOUT:
        return REMOVED if old is not None else None
    if old is None:
        return ADDED
    if new.kind != old.kind or new.target != old.target or (new.kind == FILE and not is_same):
        return CHANGED
    return MODE if new.kind != LINK and new.mode != old.mode else None


def _children(tree: Tree) -> dict[str, list[str]]:
    below: dict[str, list[str]] = {}
    for path in tree:
        if path:
            below.setdefault(above(path), []).append(path)
    return below


def _with_all_below(paths: Iterable[str], below: dict[str, list[str]]) -> Iterator[str]:
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        yield path
        waiting += below.get(path, ())


def above(path: str) -> str:
    return path.rpartition("/")[0]


def in_order(paths: Mapping[str, object]) -> list[str]:
    """Parents before what they hold."""
    return sorted(paths, key=lambda path: path.split("/"))


def folded(changes: list[Change]) -> list[Change]:
    """Without what lies in a folder that is removed as a whole, for people."""
    kept: list[Change] = []
    for change in changes:
        held = kept[-1] if kept else None
        if held is None or held.action != REMOVED or not change.path.startswith(f"{held.path}/"):
            kept.append(change)
    return kept


def grouped(changes: list[Change], notes: Mapping[str, str]) -> list[tuple[Change, int]]:
    """For people: each change with the number of files that it stands for besides itself. A folder that is added stands
    for all that is added in it, unless that has a note of its own."""
    shown: list[tuple[Change, int]] = []
    folders: list[int] = []  # in *shown*, each within the one before
    for change in folded(changes):
        while folders and not change.path.startswith(f"{shown[folders[-1]][0].path}/"):
            folders.pop()
        if folders and notes.get(change.path, "") in ("", notes.get(shown[folders[-1]][0].path, "")):
            holder, files = shown[folders[-1]]
            shown[folders[-1]] = holder, files + (change.kind != FOLDER)
            continue
        if change.kind == FOLDER and change.action == ADDED:
            folders.append(len(shown))
        shown.append((change, 0))
    return shown
