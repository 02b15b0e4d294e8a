"""The private home of a project's sessions, read from outside: which files sessions left there.

A session leaves behind what it likes, so links are never followed, and every walk is bounded. Empty files are left out:
most are the places where the host's files are shown.
"""

from __future__ import annotations

import os
import stat
from errno import ENOENT

from netsandbox.backends.linux.private_folders import read_file, remove_tree
from netsandbox.frozen import frozen

MAX_KEPT = 1 << 20  # bytes of a file that is copied out
MAX_WALKED = 20_000  # names in one walk
MAX_DEPTH = 12
CLOCK_STEP = 0.02  # seconds; times of files come from a clock that is read at each tick
# Below the home: caches, logs and histories, which nobody misses.
UNMISSED = (
    *(".cache", ".npm/_cacache", ".npm/_logs", ".npm/_npx", ".npm/_update-notifier-last-checked", ".local/state"),
    *(".local/share/pnpm/store", ".cargo/registry", ".cargo/git", "go/pkg", ".m2/repository", ".gradle", ".yarn/berry"),
    *(".bun/install/cache", ".node-gyp", ".ccache", ".nv", ".dbus", ".config/configstore", ".config/pulse"),
    ".rustup/settings.toml",  # any `rustc --version`, as pip runs it, makes it
    *(".bash_history", ".python_history", ".node_repl_history", ".lesshst", ".viminfo", ".zsh_history", ".sh_history"),
    *(".sqlite_history", ".psql_history", ".wget-hsts", ".local/share/fish/fish_history", ".ipython"),
)


@frozen
class KeptFile:
    """`name` is that in the session."""

    name: str
    size: int
    changed: float


class PrivateHome:
    """*folder* is ours; the session saw it as *name*, the user's home."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        homes = folder.rpartition("/homes/")
        self._ours = f"{homes[0]}{homes[1]}" if homes[1] else None

    def written(self, since: float = 0.0) -> tuple[str, ...]:
        """Files that changed after *since*, named as in the session."""
        return tuple(each.name for each in self.files() if each.changed >= since - CLOCK_STEP)

    def files(self) -> list[KeptFile]:
        """All files that a user may miss, sorted by name."""
        files: list[KeptFile] = []
        waiting = [""]
        walked = 0
        while waiting and walked < MAX_WALKED:
            inner = waiting.pop()
            try:
                with os.scandir(os.path.join(self._folder, inner)) as entries:
                    for entry in entries:
                        walked += 1
                        path = f"{inner}/{entry.name}" if inner else entry.name
                        info = entry.stat(follow_symlinks=False)
                        if path in UNMISSED or walked > MAX_WALKED:
                            continue
                        if stat.S_ISDIR(info.st_mode):
                            if path.count("/") < MAX_DEPTH:
                                waiting.append(path)
                        elif info.st_size and not self._is_shown(entry, path):
                            files.append(KeptFile(f"{self._name}/{path}", info.st_size, info.st_ctime))
            except OSError:  # it is gone, or the session took our right to read it
                continue
        return sorted(files, key=lambda each: each.name)

    def _is_shown(self, entry: os.DirEntry[str], path: str) -> bool:
        """Whether it is a link to the host's file of the same name, or to a cache beside the private homes: the broker
        backend shows files and caches by such links."""
        if not entry.is_symlink():
            return False
        target = os.readlink(entry.path)
        return target == f"{self._name}/{path}" or (self._ours is not None and target.startswith(self._ours))

    def read(self, name: str) -> bytes:
        """The content of the file that the session saw as *name*. OSError: it is none, or a link is on the way."""
        if not name.startswith(f"{self._name}/") or ".." in name.split("/"):
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        return read_file(f"{self._folder}/{name[len(self._name) + 1 :]}", MAX_KEPT)

    def clear(self) -> None:
        remove_tree(self._folder)
