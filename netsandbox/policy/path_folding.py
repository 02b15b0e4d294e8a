"""Paths that were written, or wanted to be read, become entries of `allow_write` and `allow_read`. Pure.

A name is made in a folder, so it is the folder that must be writable; what only changed is named itself. Of a cache the
whole folder of its tool is taken; elsewhere four entries side by side become the folder above them. No entry is the
disk, a folder directly below it, the home, anything above the home, or stands in or above a place of secrets, what is
netsandbox's own, or what the host runs: what cannot be had without that is left to the user.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import FOLDER, MAKE, is_within, outermost
from netsandbox.policy.shown_files import SHELL_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MANY = "many"  # done, besides the words of `file_rules`: at more paths below it than are listed
SIBLINGS = 4  # so many entries side by side are folded
CACHES = ".cache"  # each folder in it belongs to a tool
TOOL_CACHES = (
    *(".npm", ".node-gyp", ".bun/install/cache", ".yarn/berry", ".local/share/pnpm/store", ".deno"),
    *(".cargo/registry", ".cargo/git", "go/pkg", ".m2/repository", ".gradle/caches", ".gradle/wrapper"),
    *(".nuget/packages", ".pub-cache", ".ivy2/cache", ".gem/specs", ".bundle/cache"),
)
_SHOWN = 3
# Programs and settings of the home that something outside of any session will start or read.
STARTED = (
    *SHELL_FILES,
    *(".config/autostart", ".config/environment.d", ".config/fish", ".config/nushell", ".config/git"),
    *(".config/systemd", ".gitconfig"),
    *(".cargo/bin", ".local/bin", ".local/share/applications", ".pam_environment", ".vim", ".vimrc", "bin", "go/bin"),
)
ONLY_CHANGED = "one file: it can be changed, not made anew or replaced"


@frozen
class EntryLimits:
    """Where entries may stand: by real paths, the user's home and what is closed. *started*: names in the home that
    something outside of any session runs or obeys; nothing there may be an entry that is written."""

    home: str
    closed: tuple[str, ...] = ()
    started: tuple[str, ...] = STARTED

    def permits(self, path: str) -> bool:
        """Whether *path* may be an entry."""
        if path.count("/") < 2 or is_within(self.home, path) or self.runs(path):
            return False
        return not any(is_within(path, place) or is_within(place, path) for place in self.closed)

    def runs(self, path: str) -> bool:
        """Whether the host runs or obeys something at *path* or in it."""
        places = (f"{self.home}/{name}" for name in self.started)
        return any(is_within(path, place) or is_within(place, path) for place in places)


@frozen
class PathProposal:
    """An entry, as a real path, and what it was folded from, if from more than one. `made`: names in it are made."""

    path: str
    folder: bool
    folded: tuple[str, ...] = ()
    made: bool = False

    def text(self, home: str, base: str) -> str:
        """As it is written in the file of the folder *base*."""
        end = "/" if self.folder else ""
        if is_within(self.path, base):
            rest = self.path[len(base) :].lstrip("/")
            return f"./{rest}{end if rest else ''}" if not rest or rest.startswith("~") else f"{rest}{end}"
        return f"~{self.path[len(home) :]}{end}" if is_within(self.path, home) else f"{self.path}{end}"

    def comment(self) -> str:
        remarks = []
        if self.made and not self.folder:
            remarks.append(ONLY_CHANGED)
        if len(self.folded) > 1:
            names = ", ".join(path[len(self.path) + 1 :] for path in self.folded[:_SHOWN])
            more = f", and {len(self.folded) - _SHOWN} more" if len(self.folded) > _SHOWN else ""
            remarks.append(f"{len(self.folded)} paths in it: {names}{more}")
        return "; ".join(remarks)


@frozen
class Folded:
    """Entries in order, and paths that no entry may cover."""

    entries: tuple[PathProposal, ...] = ()
    left: tuple[str, ...] = ()


def fold_paths(written: Iterable[tuple[str, str]], limits: EntryLimits) -> Folded:
    """*written*: real paths, each with what was done there."""
    places: dict[str, bool] = {}  # each with whether it is a folder
    made: set[str] = set()
    left: set[str] = set()
    for path, done in written:
        above = path.rpartition("/")[0]
        if done == MAKE and limits.permits(above):
            places[above] = True
        elif limits.permits(path):
            places[path] = places.get(path, False) or done in (FOLDER, MANY)
            made |= {path} if done == MAKE else set()
        else:
            left.add(path)
    folders = _grown(places, limits)
    entries = tuple(PathProposal(path, folders[path][0], folders[path][1], path in made) for path in sorted(folders))
    # A folder that an entry lies in is made with it.
    return Folded(entries, tuple(sorted(path for path in left if not any(is_within(each, path) for each in folders))))


def _grown(places: dict[str, bool], limits: EntryLimits) -> dict[str, tuple[bool, tuple[str, ...]]]:
    """The outermost of *places* after folding: whether each is a folder, and what it stands for."""
    kept = {path: places.get(path, True) for path in outermost(_tool(path, limits) for path in places)}
    while True:
        families: dict[str, list[str]] = {}
        for path in kept:
            families.setdefault(path.rpartition("/")[0], []).append(path)
        parents = [above for above, below in families.items() if len(below) >= SIBLINGS and limits.permits(above)]
        if not parents:
            break
        kept = {path: kept.get(path, True) for path in outermost((*kept, *parents))}
    return {path: (folder, _folded(path, places, limits)) for path, folder in kept.items()}


def _folded(path: str, places: dict[str, bool], limits: EntryLimits) -> tuple[str, ...]:
    """Nobody knows the paths inside a cache, so they are not listed."""
    is_cache = _tool(f"{path}/x", limits) == path
    return () if path in places or is_cache else tuple(sorted(place for place in places if is_within(place, path)))


def _tool(path: str, limits: EntryLimits) -> str:
    """The folder of a tool's cache, for what lies deeper in it."""
    for name in TOOL_CACHES:
        if is_within(path, f"{limits.home}/{name}") and limits.permits(f"{limits.home}/{name}"):
            return f"{limits.home}/{name}"
    caches = f"{limits.home}/{CACHES}"
    if not path.startswith(f"{caches}/"):
        return path
    tool = f"{caches}/{path[len(caches) + 1 :].partition('/')[0]}"
    return tool if limits.permits(tool) else path
