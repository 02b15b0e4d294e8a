"""The private home of a project's sessions, read from outside: which files sessions left there.

A session leaves behind what it likes, so links are never followed, and every walk is bounded. Empty files are left out:
most are the places where the host's files are shown.
"""

from __future__ import annotations

import os
import stat

MAX_WALKED = 20_000  # names in one walk
MAX_DEPTH = 12
CLOCK_STEP = 0.02  # seconds; times of files come from a clock that is read at each tick
# Below the home: caches, logs and histories, which nobody misses.
UNMISSED = (
    *(".cache", ".npm/_cacache", ".npm/_logs", ".npm/_npx", ".npm/_update-notifier-last-checked", ".local/state"),
    *(".local/share/pnpm/store", ".cargo/registry", ".cargo/git", "go/pkg", ".m2/repository", ".gradle", ".yarn/berry"),
    *(".bun/install/cache", ".node-gyp", ".ccache", ".nv", ".dbus", ".config/configstore", ".config/pulse"),
    *(".bash_history", ".python_history", ".node_repl_history", ".lesshst", ".viminfo", ".zsh_history", ".sh_history"),
    *(".sqlite_history", ".psql_history", ".wget-hsts", ".local/share/fish/fish_history", ".ipython"),
)


class PrivateHome:
    """*folder* is ours; the session saw it as *name*, the user's home."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name

    def written(self, since: float = 0.0) -> tuple[str, ...]:
        """Files that changed after *since*, named as in the session."""
        found: dict[str, None] = {}
        for path, changed in self._files():
            if changed >= since - CLOCK_STEP:
                found[f"{self._name}/{path}"] = None
        return tuple(found)

    def _files(self) -> list[tuple[str, float]]:
        files: list[tuple[str, float]] = []
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
                        elif info.st_size:
                            files.append((path, info.st_ctime))
            except OSError:  # it is gone, or the session took our right to read it
                continue
        return sorted(files)
