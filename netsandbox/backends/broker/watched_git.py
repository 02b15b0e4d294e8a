"""What the host's git runs or obeys in a project, where nothing can be mounted over it: found, to be compared later.

`GitFiles` finds it and covers it. Here nothing is covered and nothing is made on the host's disk. A configuration file
is kept as it was at the start, so that `git_results` takes back what could run a program; all else is `watched`.
"""

from __future__ import annotations

import os

from netsandbox.backends.linux.git_copies import Copied, read_file
from netsandbox.backends.linux.git_files import GitFiles, config_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.linux.private_folders import PrivateFolders
    from netsandbox.backends.linux.session_root import SessionRoot
    from netsandbox.policy.git_config import Line


class WatchedGit(GitFiles):
    def __init__(
        self, root: SessionRoot, folders: PrivateFolders, named: Iterable[str], denied: Iterable[str] = ()
    ) -> None:
        super().__init__(root, folders, named, denied)
        self.watched: dict[str, None] = {}

    def _private(self, path: str, folder: int) -> list[Line]:
        state: os.stat_result | None
        if path in self.watched or not self._is_writable(path):
            return config_at(path) if path in self.watched else []
        self.watched[path] = None
        name = os.path.basename(path)
        try:
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            content = read_file(name, folder)
        except FileNotFoundError:  # the session may make it
            state, content = None, b""
        except OSError:  # a link, whose target is obeyed too, or nothing that git can use
            self._read_only(path)
            return config_at(os.path.realpath(path))
        if not self._copies:
            self._copies = self.folders.git_copies()  # stays empty, and marks this session
        self.copied.append(Copied(path, f"{self._copies}/{len(self.copied)}", content, state))
        return config_at(path)

    def _make(self, path: str, content: bytes | None, folder: int) -> None:
        """Nothing is made: it could not be held."""

    def _hold(self, path: str, content: bytes | None, folder: int) -> None:
        self._read_only(path)

    def _read_only(self, path: str) -> None:
        for each in (path, self._paths.reached(path)):
            if self._is_writable(each):
                self.watched[each] = None

    def _hold_links(self, path: str) -> None:
        self._read_only(path)

    def _close(self, folder: str) -> None:
        self.unprotected.append(folder)
