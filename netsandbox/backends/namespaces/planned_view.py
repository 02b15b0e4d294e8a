"""The root that a session in the mode `project` would have, for `--dry-run` and `explain`: looked up as for a session,
and nothing is made, locked or copied."""

from __future__ import annotations

import os

from netsandbox.backends.linux.named_paths import NamedPaths
from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.backends.linux.session_root import DEFAULT, PROTECTED, SessionRoot
from netsandbox.paths import state_home, working_folder
from netsandbox.runtime.project import MAX_FOLDERS, find_repositories
from netsandbox.runtime.protection import own_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from netsandbox.policy.file_rules import FileRules, PathRule


class PlannedFolders(PrivateFolders):
    """The folders as they would be called."""

    @property
    def links_to_break(self) -> str | None:
        return None

    def _made_file(self, name: str, mode: int) -> str:
        return os.path.join(self.state, "homes", name)

    def _slot(self, base: str, what: str) -> str:
        return os.path.join(base, "0")

    def _made(self, folder: str) -> str:
        return folder

    def _emptied(self) -> str:
        return os.path.join(self._shared, "fresh", "0", "data")

    def remember_written(self, path: str) -> None:
        pass

    def clear_way(self, home: str, root: SessionRoot) -> None:
        pass

    def clean_later(self, paths: Mapping[str, str]) -> None:
        pass

    def note_unsettled(self, *groups: Iterable[str]) -> None:
        pass

    def close(self) -> None:
        pass


class PlannedView(ProjectView):
    private_folders = PlannedFolders

    def __init__(self, rules: FileRules, environment: Mapping[bytes, bytes], working: str | None) -> None:
        super().__init__(rules, environment, working, state_home())

    def _repositories(self) -> None:
        """A session also copies git's configuration, which makes files."""
        found = find_repositories(self.project.folder, MAX_FOLDERS).found if self.project is not None else ()
        for repository in found:
            for name in ("config", "hooks"):
                if os.path.lexists(f"{repository}/{name}"):
                    self.root.show(f"{repository}/{name}", rank=PROTECTED)

    def _show_settings(self, path: str) -> None:
        if self.root.shown_entry(self.paths.reached(path)) is None:
            self.root.place(f"{self.folders.settings}/0", path, rank=DEFAULT)

    def _named_paths(self) -> NamedPaths:
        return PlannedPaths(self)


class PlannedPaths(NamedPaths):
    def _make(self, rule: PathRule) -> None:
        if not os.path.lexists(rule.path):
            self.root.show(os.path.realpath(rule.path), writable=True)

    def _make_copy(self, real: str, copy: str) -> None:
        pass

    def _fill(self, real: str, copy: str) -> None:
        pass


def planned_root(
    rules: FileRules, environment: Mapping[bytes, bytes], program: str, kept: tuple[str, ...]
) -> SessionRoot:
    """*kept*: files of ours that the command may not write."""
    view = PlannedView(rules, environment, working_folder())
    return view.build(program, own_paths(*(path for path in kept if os.path.exists(path))), None)
