"""Plans what `netsandbox apply` does to the host's folder, or says why it does nothing. Pure.

Rules kept here:
1. A path that changed on the host since the overlay began is a conflict, and nothing is applied at all. What counts is
   the time of change that no program can set.
2. What programs of the host run or obey is applied only if it is named itself; to name a folder above it is not enough.
3. What cannot be read for certain refuses everything. Sockets, pipes and devices are left out.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.overlay_changes import ADDED, FILE, FOLDER, LINK, MODE, OTHER, REMOVED, above
from netsandbox.policy.shown_files import PROTECTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from netsandbox.policy.overlay_changes import Change, Tree

GIT = ".git"
OPERATIONS = ("rebase-merge", "rebase-apply", "sequencer")  # not finished; the host goes on with them
GUARDED = ("hooks", "config", "config.worktree", "commondir", "gitdir", *OPERATIONS)  # of git directories
DATA = ("refs", "logs", "objects", "lfs")  # names in them are those of branches
REMOVE, WRITE = "remove", "write"


@frozen
class Step:
    """REMOVE what the host has at `path`, or WRITE what the upper layer has there."""

    path: str
    action: str


@frozen
class Plan:
    """Nothing is done if there are `conflicts` or `faults`, each a path and a reason. `protected`: what must be named,
    with the changes that it holds back. `special`: what is never made."""

    steps: tuple[Step, ...]
    conflicts: tuple[tuple[str, str], ...] = ()
    faults: tuple[tuple[str, str], ...] = ()
    protected: tuple[str, ...] = ()
    special: tuple[str, ...] = ()


@frozen
class Trees:
    """The two layers. `since`: nanoseconds, when the overlay began. `kept`: paths that the session could not change."""

    upper: Tree
    host: Tree
    since: int
    kept: tuple[str, ...] = ()


def plan(changes: list[Change], trees: Trees, named: tuple[str, ...] = (), *, force: bool = False) -> Plan:
    """*named* selects paths with all below them; empty means everything."""
    protected: dict[str, None] = {}
    chosen: list[Change] = []
    for change, root in with_roots(changes, trees):
        if not is_selected(change.path, named):
            continue
        if root is None or any(is_within(name, root) and is_within(change.path, name) for name in named):
            chosen.append(change)
        else:
            protected[root] = None
    whole = _with_folders(chosen, changes)
    chosen = [change for change in changes if change in whole]
    special = {change.path: None for change in chosen if change.kind == OTHER and change.action != REMOVED}
    chosen = [change for change in chosen if change.path not in special]
    conflicts = () if force else tuple(_conflicts(chosen, trees))
    return Plan(tuple(_steps(chosen, trees)), conflicts, tuple(_faults(trees, named)), tuple(protected), tuple(special))


def with_roots(changes: list[Change], trees: Trees) -> Iterator[tuple[Change, str | None]]:
    """Each change with what must be named for it. What goes with its folder goes as the folder does: half a repository
    is none, and a removed one runs nothing."""
    gone: dict[str, str | None] = {}
    for change in changes:
        folder = above(change.path)
        root = gone[folder] if folder in gone else protected_root(change, trees)
        if folder in gone or change.action == REMOVED or change.kind != FOLDER:
            gone[change.path] = root
        yield change, root


def is_selected(path: str, named: tuple[str, ...]) -> bool:
    return not named or any(not name or is_within(path, name) for name in named)


def _with_folders(chosen: list[Change], changes: list[Change]) -> set[Change]:
    """*chosen* and the new folders that hold it."""
    made = {change.path: change for change in changes if change.kind == FOLDER and change.action not in (MODE, REMOVED)}
    whole = set(chosen)
    for change in chosen:
        path = above(change.path)
        while path:
            if path in made:
                whole.add(made[path])
            path = above(path)
    return whole


def _steps(chosen: list[Change], trees: Trees) -> Iterator[Step]:
    """First what goes, from the deepest on; then what comes, parents first."""
    for change in reversed(chosen):
        old = trees.host.get(change.path)
        is_replaced = old is not None and change.kind != old.kind and FOLDER in (change.kind, old.kind)
        if change.action == REMOVED or is_replaced:
            yield Step(change.path, REMOVE)
    for change in chosen:
        if change.action != REMOVED:
            yield Step(change.path, WRITE)


# Changes of the host


def _conflicts(chosen: list[Change], trees: Trees) -> Iterator[tuple[str, str]]:
    moved: dict[str, None] = {}
    for change in chosen:
        why = conflict(change, trees)
        if why is not None:
            yield change.path, why
        folder = above(change.path)
        while folder:
            old = trees.host.get(folder)
            # To add or remove a name sets both times; to move a folder, or replace it, sets one.
            if old is not None and old.changed >= trees.since and old.changed != old.modified:
                moved[folder] = None
            folder = above(folder)
    for folder in moved:
        yield folder, "was moved or changed on the host"


def conflict(change: Change, trees: Trees) -> str | None:
    """Why the host's change of the same path would be lost."""
    old, new = trees.host.get(change.path), trees.upper.get(change.path)
    if old is not None:
        is_older = old.changed < trees.since
        if old.kind == FOLDER and change.action in (MODE, REMOVED):  # what the host put into it has its own time
            is_older |= old.changed == old.modified
        return None if is_older else "changed on the host"
    if change.action != ADDED or new is None or not new.copied:
        return None
    folder = above(change.path)
    while folder and folder not in trees.host:
        folder = above(folder)
    holder = trees.host.get(folder)
    return "was removed on the host" if holder is not None and holder.changed >= trees.since else None


def _faults(trees: Trees, named: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for path, node in trees.upper.items():
        if node.fault and (is_selected(path, named) or any(is_within(name, path) for name in named)):
            yield path, node.fault


# What programs of the host obey


def protected_root(change: Change, trees: Trees) -> str | None:
    """The path that must be named before *change* is applied; None if it is not protected."""
    for kept in trees.kept:
        if is_within(change.path, kept):
            return kept
    whole = f"/{plainly(change.path)}/"
    for name in PROTECTED:
        at = whole.find(f"/{name}/")
        if at >= 0:
            return change.path[: at + len(name)]
    if change.kind == LINK and change.action != REMOVED and _leads_to_protected(change.path, whole, trees.kept):
        return change.path
    return _git_root(change, trees)


def _leads_to_protected(path: str, whole: str, kept: tuple[str, ...]) -> bool:
    """Whether a link at *path* stands above a protected name: what it leads to would be obeyed."""
    return (
        any(is_within(name, path) for name in kept)
        or whole.endswith(_ABOVE)
        or (f"/{GIT}/modules/" in whole or f"/{GIT}/worktrees/" in whole)
    )


_ABOVE = tuple(f"/{above(name)}/" for name in PROTECTED if above(name))


def plainly(path: str) -> str:
    """Some disks ignore case. Only letters of one byte are changed, so that all stay at their place."""
    return "".join(char.lower() if char.isascii() else char for char in path)


def _git_root(change: Change, trees: Trees) -> str | None:
    names = change.path.split("/")
    plain = plainly(change.path).split("/")
    if GIT in plain:
        at = plain.index(GIT)
        repository, rest = "/".join(names[: at + 1]), names[at + 1 :]
        old = trees.host.get(repository)
        if not rest or old is None or old.kind != FOLDER:
            return repository
        if plain[at + 1] == "worktrees" and change.action == REMOVED:  # those of others, which the session did not see
            return "/".join(names[: at + 3])
        if plain[at + 1] in DATA:
            return None
        guarded = next((here for here in range(at + 1, len(names)) if plain[here] in GUARDED), None)
        if guarded is None:
            return None
        if plain[guarded] in OPERATIONS and change.action == REMOVED and guarded == len(names) - 1:  # it is over
            return None
        return "/".join(names[: guarded + 1])
    for at, name in enumerate(plain):
        if name in GUARDED and _is_bare("/".join(names[:at]), trees):
            return "/".join(names[: at + 1])
    if plain[-1] == "head" and change.action == ADDED:  # it makes a repository of what was applied before
        folder = above(change.path)
        if any((f"{folder}/{name}" if folder else name) in trees.host for name in GUARDED):
            return change.path
    return None


def _is_bare(folder: str, trees: Trees) -> bool:
    """Whether a git directory of another name is there, whose objects may be elsewhere."""
    path = f"{folder}/HEAD" if folder else "HEAD"
    return path in trees.upper or path in trees.host


def mergeable(paths: Iterable[str], trees: Trees) -> list[str]:
    """Those of the protected *paths* that are configuration files of git in both layers: they are merged by key."""
    kinds = (FILE, FILE)
    return [
        path
        for path in paths
        if path.rpartition("/")[2] in ("config", "config.worktree")
        and tuple(tree[path].kind for tree in (trees.upper, trees.host) if path in tree) == kinds
    ]
