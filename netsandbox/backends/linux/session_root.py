"""The root of a session as a list of steps for the helper. Pure; native/root.h carries them out.

A session in the mode `project` has a root of its own, which shows what was added here and nothing else. What the host
makes or replaces later does not appear in it (INV-12). Each path has one entry; a child is mounted after its parent. In
a folder of the host that is shown at its own path, mount points exist already, and nothing is ever made on the host's
disk.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Step = tuple[str, int | None, tuple[str, ...]]

HOST = "/.host"
READ_ONLY, OPTIONAL, MAKE = 2, 4, 8
ATTEMPT = 8  # of a mount: it may fail (native/plan.h)
MAX_OPTIONS = 4000  # the kernel takes a page of mount options
# In the order of their strength: what is protected stays so, whatever a rule opens.
DEFAULT, PROJECT, PROTECTED, NAMED, DENIED, OURS = range(6)


@frozen
class Entry:
    """What is at one path. `source` is a path of the host, or the target of a link, or the options of a mount."""

    kind: str
    source: str = ""
    writable: bool = False
    rank: int = DEFAULT
    upper: str = ""

    @property
    def passes(self) -> bool:
        """Whether folders below it can be made without touching a file of the host."""
        return self.kind != "show" or self.upper == "ours"


class SessionRoot:
    """Collects the entries. Paths are absolute and real, except the paths of links."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.shields: dict[str, str] = {}
        self._pinned: set[str] = set()
        self.overlay: tuple[str, str] | None = None  # the folder of which the session changes a copy, and mount options

    def add(self, path: str, entry: Entry) -> None:
        known = self.entries.get(path)
        if known is None or entry.rank >= known.rank:
            self.entries[path] = entry

    def show(self, path: str, *, writable: bool = False, rank: int = DEFAULT) -> None:
        """Show a path of the host at the same path."""
        self.add(path, Entry("show", path, writable, rank))

    def place(self, source: str, path: str, *, writable: bool = False, rank: int = OURS) -> None:
        """Show a file or folder of ours at *path*."""
        self.add(path, Entry("show", source, writable, rank, "ours"))

    def link(self, target: str, path: str) -> None:
        self.add(path, Entry("link", target))

    def fresh(self, path: str, options: str = "mode=0755", kind: str = "tmpfs", rank: int = DEFAULT) -> None:
        """A file system of the session's own at *path*."""
        self.add(path, Entry(kind, options, writable=True, rank=rank))

    def cover(self, target: str, path: str) -> None:
        """A file or link of the host appears as a link to *target*, which cannot be replaced; read-only where the
        kernel cannot mount links."""
        self.add(path, Entry("cover", target, rank=PROTECTED))

    def pin(self, path: str) -> None:
        """Mount *path* and the folders above it on themselves, up to the one that is shown: a mount point can be
        neither moved nor removed."""
        held = self.holder(path)
        if held is None or held[1].passes:  # nothing of the host is around it
            return
        while path != held[0]:
            self._pinned.add(path)
            if path not in self.entries:
                self.show(path, writable=held[1].writable, rank=DENIED)
            path = path.rpartition("/")[0]
        if not self._is_mounted(*held):
            self.pin(held[0])
        self._pinned.add(held[0])  # also if a rule opens a folder above it later

    def pin_above(self, path: str) -> None:
        self.pin(path.rpartition("/")[0])

    def hold(self, path: str, rank: int = PROTECTED) -> None:
        """Show a path of the host read-only, so that it can be neither moved nor removed."""
        self.pin_above(path)
        self.show(path, rank=rank)

    def close(self, path: str) -> None:
        """Make *path* and everything of the host below it read-only."""
        shown = self.shown_entry(path)
        if shown is not None and shown.writable:
            self.show(path, rank=DENIED)
        for each, entry in tuple(self.entries.items()):
            if entry.writable and entry.kind == "show" and entry.upper != "ours" and is_within(each, path):
                self.show(each, rank=DENIED)

    def remove_below(self, path: str) -> None:
        """Take away everything of the host at *path* and below it; a folder above may still show it."""
        for each, entry in tuple(self.entries.items()):
            if is_within(each, path) and entry.kind not in ("tmpfs", "proc", "devpts") and entry.upper != "ours":
                del self.entries[each]

    def folder(self, path: str, mode: str = "0755") -> None:
        self.add(path, Entry("folder", mode))

    def cache(self, lower: str, upper: str, path: str) -> None:
        """The host's folder *lower*, with changes kept in the folder *upper*/data; *upper* belongs to us."""
        if len(_layers(upper)) > MAX_OPTIONS:
            raise UsageError(f"{path!a} is too long a path for a cache; leave its profile out, or move the cache")
        self.add(path, Entry("cache", lower, writable=True, rank=PROJECT, upper=f"{upper}/data"))

    def shield(self, path: str, empty: str) -> None:
        """Show a folder of the host through an overlay without an upper layer. A cover in it stays when the host
        replaces the file below, since the host does not know the overlay's names. Where the kernel refuses overlays,
        the folder is shown plainly."""
        self.shields[path] = f"lowerdir=.:{_escaped(HOST + empty)}"

    def holder(self, path: str) -> tuple[str, Entry] | None:
        """The mounted entry that *path* lies in, itself left out."""
        while path != "/":
            path = path.rpartition("/")[0] or "/"
            entry = self.entries.get(path)
            if entry is not None and entry.kind not in ("link", "folder", "cover"):
                return path, entry
        return None

    def entry_of(self, path: str) -> Entry | None:
        """The mounted entry at *path*, or else the one that it lies in."""
        own = self.entries.get(path)
        if own is None or own.kind in ("link", "folder"):
            held = self.holder(path)
            return held[1] if held is not None else None
        return own

    def shown_entry(self, path: str) -> Entry | None:
        """The entry that shows this path of the host; None if the session does not see it."""
        own = self.entry_of(path)
        return own if own is not None and own.kind == "show" and own.upper != "ours" else None

    def mounted_on(self) -> Iterator[str]:
        """What is hidden or held by a mount in a folder of the host. A program there that replaces the file takes the
        mount away. Configuration files of git are left out, whose mounts are put back."""
        for path, entry in self.entries.items():
            is_pinned = entry.kind == "show" and entry.writable
            if entry.rank >= PROTECTED and entry.kind != "cover" and not is_pinned:
                held = self.holder(path)
                if held is not None and held[0] not in self.shields and not held[1].passes:
                    yield path

    def steps(self) -> Iterator[Step]:
        for path in sorted(self.entries, key=lambda path: path.split("/")):
            yield from self._step(path, self.entries[path])
            if self.overlay is not None and path == self.overlay[0] and self.entries[path].writable:
                yield "U", 0, (HOST + path, self.overlay[1], path)
            if path in self.shields:
                yield "U", ATTEMPT, (HOST + path, self.shields[path], path)

    def _step(self, path: str, entry: Entry) -> Iterator[Step]:
        held = self.holder(path)
        makes = held is None or held[1].passes
        if entry.kind == "link":
            if makes:
                yield "Y", None, (entry.source, path)
        elif entry.kind == "folder":
            yield "S", int(entry.source, 8), (path,)
        elif entry.kind == "cover":
            yield "A", None, (entry.source, HOST + path, path)
        elif entry.kind == "cache":
            yield "C", None, (HOST + entry.source, _layers(entry.upper[: -len("/data")]), HOST + entry.upper, path)
        elif entry.kind != "show":
            if makes:
                yield "S", 0o755, (path,)
            yield "M", READ_ONLY if entry.kind == "proc" else 0, (entry.kind, path, entry.kind, entry.source)
        elif self._is_mounted(path, entry):
            writes = entry.writable and (self.overlay is None or path != self.overlay[0])
            flags = (0 if writes else READ_ONLY) | (MAKE if makes else 0) | (OPTIONAL if not entry.rank else 0)
            yield "V", flags, (self._source(path, entry), path)

    def _is_mounted(self, path: str, entry: Entry) -> bool:
        """Whether what is shown has a mount of its own; otherwise the folder around it shows the same."""
        held = self.holder(path)
        if held is None or held[1].passes or held[1].writable != entry.writable:
            return True
        return entry.rank >= DENIED or path in self._pinned

    def _source(self, path: str, entry: Entry) -> str:
        """What is writable in the folder of the overlay is the overlay's own, never the host's."""
        above = f"{self.overlay[0]}/" if self.overlay is not None else None
        is_copied = above is not None and entry.writable and entry.upper != "ours" and path.startswith(above)
        return path if is_copied else HOST + entry.source


def _layers(upper: str) -> str:
    """The options of an overlay whose changes lie in our folder *upper*; the helper enters the lower one (root.h)."""
    return f"lowerdir=.,upperdir={_escaped(f'{HOST}{upper}/data')},workdir={_escaped(f'{HOST}{upper}/work')},userxattr"


def _escaped(path: str) -> str:
    """*path* in the options of an overlay, where commas and colons separate."""
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")
