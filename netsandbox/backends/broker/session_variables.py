"""The variables of a command that has a private home and a private temporary folder at paths of their own.

A mount would put them in the place of the host's. Here the variables lead there instead: HOME, TMPDIR, and every
variable with a path that would be in the private home or in another private folder, such as XDG_CACHE_HOME.
"""

from __future__ import annotations

import os

from netsandbox.paths import home
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.shown_files import HOST_VARIABLES, MOVED_HOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.backends.broker.temporary_folder import TemporaryFolder
    from netsandbox.backends.linux.project_view import ProjectView
    from netsandbox.settings import RunSettings

TEMPORARY = ("TMPDIR", "TMP", "TEMP", "TEMPDIR", "TMUX_TMPDIR")
NEEDED = ("TMPDIR", "TMUX_TMPDIR")  # tmux looks at no other
RUNTIME = "XDG_RUNTIME_DIR"


def session_variables(
    inner: Mapping[bytes, bytes],
    settings: RunSettings,
    program: str,
    view: ProjectView,
    temporary: TemporaryFolder | None,
) -> dict[bytes, bytes]:
    """*temporary* is None if the session uses the host's folders."""
    known = {os.fsdecode(name): os.fsdecode(value) for name, value in inner.items()}
    kept = {name: value for name, value in known.items() if _is_kept(name, value, settings.unix_sockets)}
    if settings.files.caches or program.rpartition("/")[2] in ("pnpm", "pnpx", "uv", "uvx"):
        from netsandbox.backends.linux.tool_variables import tool_variables

        kept.update(tool_variables(settings.files.caches, kept, program))
    places = Places(view)
    kept = {name: places.moved(value) for name, value in kept.items()}
    kept["HOME"] = view.folders.home
    if temporary is not None:
        kept.update((name, temporary.path) for name in TEMPORARY if name in kept or name in NEEDED)
        if RUNTIME in kept:
            kept[RUNTIME] = temporary.runtime
    return {os.fsencode(name): os.fsencode(value) for name, value in kept.items()}


def _is_kept(name: str, value: str, sockets: tuple[str, ...]) -> bool:
    """Variables that name sockets of the host are left out, unless a rule opens the socket."""
    return name not in HOST_VARIABLES or any(path in value for path in sockets)


class Places:
    """Where paths of the host are in the session."""

    def __init__(self, view: ProjectView) -> None:
        self._view = view
        entries = view.root.entries.items()
        places = [
            path for path, entry in entries if entry.kind == "cache" or (entry.upper == "ours" and entry.writable)
        ]
        named = [view.environment.get(name, "").partition(":")[0] for name in MOVED_HOMES]  # perhaps through a link
        self._starts = tuple(dict.fromkeys((home(), *places, *filter(None, named))))

    def moved(self, value: str) -> str:
        """*value* with every path in it that leads to a private folder; several have colons between."""
        if not any(start in value for start in self._starts):
            return value
        return ":".join(map(self.place_of, value.split(":")))

    def place_of(self, path: str) -> str:
        """*path*, or the private folder that it would be in."""
        if not any(is_within(path, start) for start in self._starts):
            return path
        real = self._view.paths.reached(path)
        root = self._view.root
        entry = root.entries.get(real)
        held = (real, entry) if entry is not None and entry.kind not in ("link", "folder") else root.holder(real)
        if held is None or not held[1].writable:
            return path
        at, entry = held
        rest = real[len(at.rstrip("/")) :]  # the home of a container may be /
        if entry.kind == "cache":
            return entry.upper + rest
        return entry.source + rest if entry.upper == "ours" else path
