"""What a session in the mode `project` may read and write where nothing can be mounted.

The paths are those of `ProjectView`. What it covers or holds by a mount in a folder of the host is treated here in one
of four ways:

| what | here |
|---|---|
| hidden in a folder that is only read | left out by carving (`carving`) |
| a user's deny, or a secret, in a folder that is written | an error: Landlock cannot keep it |
| a file of netsandbox in a folder that is written | an error (INV-8) |
| a file of the project that the host runs or obeys | compared at the end (`protected_files`) |
"""

from __future__ import annotations

import os

from netsandbox.backends.broker.carving import DEVICE, WRITE
from netsandbox.backends.linux.file_view import everywhere
from netsandbox.backends.linux.named_paths import NamedPaths
from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.errors import HostError, UsageError
from netsandbox.paths import short
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.links import links_of_loop
from netsandbox.runtime.real_paths import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from netsandbox.backends.linux.git_files import GitFiles
    from netsandbox.backends.linux.session_root import SessionRoot
    from netsandbox.policy.file_rules import FileRules, PathRule
    from netsandbox.runtime.protection import OwnPaths

FRESH = ("tmpfs", "cache", "proc", "devpts")
OTHER_BACKEND = "use --backend namespaces, which can, where user namespaces work"


class LinkedFolders(PrivateFolders):
    def clear_way(self, home: str, root: SessionRoot) -> None:
        """Nothing is mounted in the home; `home_links` makes links there."""


class LandlockView(ProjectView):
    """`watched` are paths of the project that are compared at the end."""

    private_folders = LinkedFolders

    def __init__(self, rules: FileRules, environment: Mapping[bytes, bytes], working: str | None, state: str) -> None:
        super().__init__(rules, environment, working, state)
        self.watched: list[str] = []
        self.ours: tuple[str, ...] = ()  # places of netsandbox (`own_places`)

    def writable_parts(self) -> Iterator[tuple[int, str]]:
        """The paths that are written, with their rights."""
        for entry in self.root.entries.values():
            if entry.kind == "cache":
                yield WRITE, entry.upper
            elif entry.kind == "show" and entry.writable:
                yield DEVICE if is_within(entry.source, "/dev") else WRITE, entry.source

    def readable_parts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each path that is only read, and what is left out of it: what is hidden, and every path in it that has
        something private in its place, such as the home in `/home`."""
        replaced = [
            path
            for path, entry in self.root.entries.items()
            if entry.kind in FRESH or (entry.upper == "ours" and entry.writable)
        ]
        for path, entry in self.root.entries.items():
            if entry.kind == "show" and entry.upper != "ours" and not entry.writable:
                inside = [each for each in replaced if each != path and is_within(each, path)]
                yield path, (*self.hidden, *inside)
        for path in self.originals:  # by their own paths: a tool finds an empty folder in its home
            if self.root.entry_of(path) is not None and not any(is_within(path, each) for each in self.hidden):
                yield path, tuple(self.hidden)
        for copy in self.settings.values():
            yield copy, ()

    def cover(self, path: str) -> None:
        self.hidden.append(self.paths.reached(path))

    def check_secrets(self) -> None:
        """An error for a hidden path that lies in a folder which the session writes. All entries are known now, and
        `hidden` gets their other names."""
        self.hidden = list(everywhere(tuple(dict.fromkeys(self.hidden))))
        for path in self.hidden:
            if (folder := self.writable_folder(path)) is not None:
                raise HostError(
                    f"{short(path)} is a secret in {short(folder)}, which the session writes, and cannot be hidden"
                    f" there; open the folders beside it, show it with --allow-read, or {OTHER_BACKEND}"
                )

    def writable_folder(self, path: str) -> str | None:
        """The outermost folder of the host that holds *path* and that the session writes."""
        folders = [each for each, entry in self.root.entries.items() if entry.writable and entry.kind == "show"]
        return min((each for each in folders if is_within(path, each) and self._is_hosts(each)), key=len, default=None)

    def _is_hosts(self, path: str) -> bool:
        return self.root.entries[path].upper != "ours"

    # The project

    def _protect(self, path: str) -> None:
        if not is_within(self.working or path, path):
            self.watched.append(path)

    def _git_type(self) -> type[GitFiles]:
        from netsandbox.backends.broker.watched_git import WatchedGit

        return WatchedGit

    def all_watched(self) -> list[str]:
        """Without what the user opened for writing."""
        found = [*self.watched, *getattr(self.git, "watched", ())]
        return [path for path in found if not any(is_within(path, opened) for opened in self.opened)]

    def _named_paths(self) -> NamedPaths:
        return LandlockPaths(self)

    # netsandbox itself

    def _own(self, own: OwnPaths) -> None:
        for path in self.ours:
            if (folder := self.writable_folder(path)) is not None:
                raise own_file_error(path, folder)
        super()._own(own)
        self.hidden += map(self.paths.reached, own.hidden)

    def _hold_links(self, path: str) -> None:
        """A link in a folder that the session writes was refused (`_own`), or is compared at the end."""


class LandlockPaths(NamedPaths):
    def __init__(self, view: LandlockView) -> None:
        super().__init__(view)
        self._landlock_view = view

    def apply(self) -> None:
        super().apply()
        for rule in self.rules.deny_read:
            self._check_denied(rule, "hidden")
        for rule in dict.fromkeys((*self.rules.deny_write, *self._followed(self.rules.deny_write))):
            self._check_denied(rule, "kept")

    def _check_denied(self, rule: PathRule, done: str) -> None:
        folder = self._landlock_view.writable_folder(self.paths.reached(rule.path))
        if folder is not None and not self._is_missing(rule):
            raise UsageError(
                f"{rule.origin}: {short(rule.path)} cannot be {done} in {short(folder)}, which the session writes;"
                f" leave it out, work in a folder beside it, or {OTHER_BACKEND}"
            )

    def _copy(self, rule: PathRule) -> None:
        """In the home the session gets a copy, as elsewhere. A copy cannot take the place of a file in a folder of the
        host, so that file is compared at the end."""
        real = self.paths.reached(rule.path)
        if os.path.dirname(real) == self.view.home:
            super()._copy(rule)
        else:
            self._landlock_view.watched.append(real)

    def _fill_cache(self, real: str, copy: str) -> None:
        """Nothing can be mounted there: links lead to what a rule shows."""
        for name in names_in(real):
            if not os.path.lexists(f"{copy}/{name}"):
                os.symlink(f"{real}/{name}", f"{copy}/{name}")

    def _fill(self, real: str, copy: str) -> None:
        """Nothing can be mounted there: the files are copied, and links lead to what the session writes."""
        from netsandbox.backends.linux.agent_files import fill

        fill(real, copy, self._written_in(real))
        self._expect_new(real, copy)


def own_places(paths: Iterable[str]) -> tuple[str, ...]:
    """Where files of netsandbox are: real paths, those by other mounts, and the links that lead to them."""
    found = {path: os.path.realpath(path) for path in map(os.path.abspath, paths)}
    real = dict.fromkeys(found.values())
    links = [link for path, target in found.items() if target != path for link in links_of_loop(path)]
    return tuple(dict.fromkeys((*everywhere(tuple(real)), *real, *links)))


def own_file_error(path: str, folder: str) -> HostError:
    """Of a file in a folder that is written (INV-8)."""
    return HostError(
        f"{short(path)} belongs to netsandbox, and the command could change it, since the session writes"
        f" {short(folder)}; install netsandbox elsewhere, as pipx does, or move that file, or work in another"
        f" folder, or {OTHER_BACKEND}"
    )


def entries(folder: str) -> list[str]:
    """The names in *folder* without those of links; none if it is not a folder, or this user may not list it."""
    try:
        with os.scandir(folder) as found:
            return [entry.name for entry in found if not entry.is_symlink()]
    except OSError:
        return []
