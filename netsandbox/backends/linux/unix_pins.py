"""Decides which socket file a path of `--allow-unix-socket` means.

A path is only a name, and a command that may write the folder can put another socket there: by a rename, a hard link, a
symbolic link, or a rename of the folder (attacks 146, 147 and 149), for itself or for the next session. The name under
which a server was bound cannot be changed (`bound_names`). So the file at the path at the start is the right socket
only if its server was bound there, or if no command of this user can put anything there. If the server makes the file
again, the new file is accepted if it was bound under exactly that name. An unidentified server is refused.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.unix_names import bound_names, server_at
from netsandbox.errors import UsageError
from netsandbox.paths import user_can_change
from netsandbox.policy.file_rules import normal
from netsandbox.runtime.links import followed, links_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.linux.unix_names import Server


class PinnedSocket:
    """One allowed path. Make it before the command runs; the descriptor keeps the inode's number from being reused."""

    __slots__ = ("_fd", "_firm", "_identity", "_names", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._identity: tuple[int, int] | None = None
        try:
            self._fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # its server has not started yet
            self._fd = -1
        try:
            self._take()
        except BaseException:
            self.close()
            raise

    def _take(self) -> None:
        real = os.path.realpath(self.path) if self._fd < 0 else os.readlink(f"/proc/self/fd/{self._fd}")
        links = links_to(self.path, real)
        self._firm = not any(user_can_change(os.path.dirname(link)) for link in links)
        self._names = {normal(self.path), real} if self._firm else {normal(self.path)}
        if self._fd < 0:
            return
        info = os.fstat(self._fd)
        if stat.S_ISSOCK(info.st_mode) and (_is_out_of_reach(real, links) or self._is_served()):
            self._identity = _identity(info)

    def _is_served(self) -> bool:
        """Whether the server was bound here; an error if it was bound elsewhere."""
        server = server_at(self._fd)
        if server is None:
            return False
        if any(self._made(name, server) for name in server.names):
            return True
        name = min(server.names)
        raise UsageError(
            f"--allow-unix-socket {self.path!a}: the server there was started at {name!a}, so a command may have put it"
            f" there; write {name!a} if you mean that one, or start yours again"
        )

    def _made(self, name: str, server: Server) -> bool:
        if _plain(name) in self._names:
            return True
        if not self._firm:
            return False
        if server.foreign:  # its folders may have other names here
            return any(os.path.basename(name) == os.path.basename(meant) for meant in self._names)
        return any(is_name_of(name, meant) or _firmly(name) == meant for meant in self._names)

    def admits(self, identity: tuple[int, int]) -> bool:
        """Whether device and inode are those of the socket that the user meant."""
        if identity == self._identity:
            return True
        if _identity(os.stat(self.path)) != identity:
            return False
        return any(_plain(name) in self._names for name in bound_names(*identity))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_name_of(bound: str, meant: str) -> bool:
    """Whether a server that was bound as *bound* made the file *meant*: under that name, under a name that is relative
    to the server's folder, or under a longer one (`NAME.1234`) that it then renamed.
    """
    if bound.startswith("/"):
        plain = normal(bound)
        return plain == meant or (plain.startswith(f"{meant}.") and "/" not in plain[len(meant) :])
    parts = [part for part in bound.split("/") if part not in ("", ".", "..")]
    return bool(parts) and meant.endswith("/" + "/".join(parts))


def _plain(name: str) -> str:
    """The path without redundant parts."""
    return normal(name) if name.startswith("/") else name


def _firmly(name: str) -> str | None:
    """Where *name* leads; None if a link on the way could have been made by a command."""
    if not name.startswith("/"):
        return None
    links, real = followed(name)
    return None if any(user_can_change(os.path.dirname(link)) for link in links) else real


def _is_out_of_reach(real: str, links: tuple[str, ...]) -> bool:
    """Whether no command of this user can replace the file, a folder above it, or a link on the way to it."""
    folders: set[str] = set()
    for path in (real, *links):
        folder = os.path.dirname(path)
        while folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    return not any(map(user_can_change, folders))


def _identity(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino
