"""Overlays of sessions: what a session with `--overlay` changed, kept until the user applies or discards it.

    <state>/overlays/<name>/data       the upper layer: changed files, and marks for removed ones
    <state>/overlays/<name>/work       for overlayfs
    <state>/overlays/<name>/about      when the overlay began, its folder, and what was protected in it
    <state>/overlays/<name>/lock       locked while a session runs, or while a command reads or removes it

The name is that of the session. A session that is given the name of a kept overlay continues with it.
"""

from __future__ import annotations

import fcntl
import os
import time

from netsandbox.backends.linux.private_folders import LOCK, open_folder, remove_tree
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.frozen import copy_with, frozen
from netsandbox.paths import short, unusable
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.private_file import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TRIES, PAUSE = 20, 0.01  # seconds
MAX_OPTIONS = 4000  # the kernel takes a page of mount options


@frozen
class Overlay:
    """`place` is ours, `folder` that of the host, `since` in nanoseconds. `protected`: paths that the session could not
    change, or that did not exist and would have been protected."""

    name: str
    place: str
    folder: str
    since: int
    protected: tuple[str, ...] = ()

    @property
    def data(self) -> str:
        return f"{self.place}/data"

    def options(self, root: str = "") -> str:
        """For the mount, which is made while the working folder is the host's. *root* leads to the host's root."""
        options = (
            f"lowerdir=.,upperdir={_escaped(root + self.data)},workdir={_escaped(f'{root}{self.place}/work')},userxattr"
        )
        if len(options) > MAX_OPTIONS:
            raise UsageError(
                f"{self.place!a} is too long a path for an overlay; leave out --overlay, or set XDG_STATE_HOME"
            )
        return options


class HeldOverlay:
    """An overlay that this process alone uses, until it is closed."""

    def __init__(self, overlay: Overlay, lock: int) -> None:
        self.overlay = overlay
        self._lock = lock

    def protect(self, paths: Iterable[str]) -> None:
        """Note real paths in the folder that need to be named for `apply`."""
        folder = self.overlay.folder
        inner = (path[len(folder) + 1 :] for path in paths if is_within(path, folder) and path != folder)
        known = copy_with(self.overlay, protected=tuple(dict.fromkeys((*self.overlay.protected, *inner))))
        self.overlay = known
        fields = (str(known.since), known.folder, *known.protected)
        try:
            replace(f"{known.place}/about", "\0".join(fields).encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise _unmade(known.place, error) from None

    def remove(self) -> None:
        """Throw the changes away."""
        try:
            remove_tree(self.overlay.place)
        except (OSError, RecursionError) as error:
            raise NetsandboxError(
                f"not all of {self.overlay.place} could be removed ({error}); remove it by hand"
            ) from None

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class KeptOverlays:
    """Those in the state home *state*."""

    def __init__(self, state: str) -> None:
        self._base = os.path.join(os.path.realpath(state), "overlays")

    def names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._base) if self.has(name))
        except OSError:
            return []

    def has(self, name: str) -> bool:
        return "/" not in name and os.path.exists(f"{self._base}/{name}/about")

    def load(self, name: str) -> Overlay:
        place = f"{self._base}/{name}"
        try:
            if not self.has(name):
                raise FileNotFoundError
            with open(f"{place}/about", "rb") as file:
                since, folder, *protected = file.read().decode("utf-8", "surrogateescape").split("\0")
            return Overlay(name, place, folder, int(since), tuple(protected))
        except (OSError, ValueError):
            names = self.names()
            known = f"choose one of {', '.join(names[:20])}" if names else "`netsandbox run --overlay` makes one"
            raise UsageError(f"no session {name[:80]!a} keeps changes; {known}") from None

    def is_running(self, name: str) -> bool:
        """Whether a session uses it, or a command."""
        try:
            self.hold(name).close()
        except HostError:
            return True
        return False

    def hold(self, name: str) -> HeldOverlay:
        """A kept overlay; an error while a session uses it."""
        overlay = self.load(name)
        held = HeldOverlay(overlay, self._locked(name))
        if not self.has(name):  # another command was faster
            held.remove()
            held.close()
            return self.hold(name)
        return held

    def begin(self, name: str, folder: str) -> HeldOverlay:
        """An overlay of the real path *folder* for a session: a new one, or the one of this name."""
        lock = self._locked(name)
        try:
            if self.has(name):
                overlay = self.load(name)
                if overlay.folder != folder:
                    raise UsageError(
                        f"{name} keeps changes of {short(overlay.folder)!a}; apply or discard them, or take another"
                        " --name"
                    )
                return HeldOverlay(overlay, lock)
            overlay = Overlay(name, f"{self._base}/{name}", folder, time.clock_gettime_ns(FILE_CLOCK))
            for inner in ("data", "work"):
                os.makedirs(f"{overlay.place}/{inner}", 0o700, exist_ok=True)
            here = open_folder(folder)
            try:
                os.chmod(overlay.data, os.fstat(here).st_mode & 0o777)
            finally:
                os.close(here)
        except OSError as error:
            os.close(lock)
            raise _unmade(f"{self._base}/{name}", error) from None
        except BaseException:
            os.close(lock)
            raise
        held = HeldOverlay(overlay, lock)
        held.protect(())
        return held

    def _locked(self, name: str) -> int:
        path = f"{self._base}/{name}/lock"
        for _ in range(MAX_TRIES):
            try:
                os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
                lock = os.open(path, LOCK, 0o600)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unmade(path, error) from None
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), os.stat(path)):
                    return lock
            except OSError:  # a session has it; or a command, for a moment
                time.sleep(PAUSE)
            os.close(lock)
        raise HostError(f"{name} is running; `netsandbox stop {name}` ends it, or wait until it has ended")


FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE: file systems on Linux read it


def _unmade(path: str, error: OSError) -> HostError:
    return unusable(f"cannot use {path}", error)


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")
