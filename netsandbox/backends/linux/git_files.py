"""Protects the repositories of a project: what the host's git would run or obey stays as it is.

The session writes objects, references and the index as on the host. Of each git directory that exists at its start:

| name | in the session | why |
|---|---|---|
| the folder, and those above it | mounted on itself | it cannot be moved away and made anew |
| `config`, `config.worktree` | a link to a copy in a private folder | git follows the link and writes the copy |
| `hooks`, and what core.hooksPath and include.path name in the project | read-only | the host runs or obeys it |
| `commondir` | a read-only file with `.` | it could name another folder with configuration and hooks |
| `worktrees/*` | `gitdir` and `commondir` are read-only | the same, for the host's other worktrees |
| `.git` files | read-only | they name the git directory |

A name that is missing cannot be covered, so it is made on the host's disk, with a content that means nothing, and is
removed by the last session. Of worktrees that the session does not see, it sees the `.git` file: without that `git
worktree prune` would take them for gone. `project_results` has what happens after the session.

Repositories, worktrees and modules beyond a bound, and folders that we may not look into, are read-only as a whole: a
command could make them so many, or take the rights away, that others stay unprotected.

A repository that a session makes cannot be prevented; it is reported at the end. A cover comes off when a program of
the host replaces the file below it. PID 1 puts covers of configuration files back within a fraction of a millisecond.
If the session was faster, its change is taken back at the end: nothing is done to the host's file before that.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.git_copies import SAME_FOLDER, Copied, make, read_file
from netsandbox.backends.linux.private_folders import open_folder
from netsandbox.errors import HostError
from netsandbox.paths import home, unusable
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.private_file import NEW, write_new
from netsandbox.runtime.project import GIT_DATA, one_line
from netsandbox.runtime.real_paths import RealPaths, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.linux.private_folders import PrivateFolders
    from netsandbox.backends.linux.session_root import SessionRoot
    from netsandbox.policy.git_config import Line

COPIES = "/run/netsandbox/git"  # in the session
MAX_GIT_FOLDERS = 64
MAX_CLOSED = 512
MAX_WORKTREES = 512
MAX_INCLUDES = 32
GLOBAL = ("/etc/gitconfig", "~/.gitconfig", "~/.config/git/config")
OPERATIONS = ("rebase-merge", "rebase-apply", "sequencer")
FOLLOWED = (b"hookspath", b"include", b"bare", b"worktree")  # what is looked for in a configuration file


class GitFiles:
    """Adds the entries to *root*, in which the project is shown already. *named* are real paths that the user opened
    for writing: these and what is below them are not protected. Of *denied* ones the session gets no copy."""

    def __init__(
        self, root: SessionRoot, folders: PrivateFolders, named: Iterable[str], denied: Iterable[str] = ()
    ) -> None:
        self.root = root
        self.folders = folders
        self.named = tuple(named)
        self.denied = tuple(denied)
        self.copied: list[Copied] = []
        self.held: dict[str, int] = {}  # the git directories, with a lock
        self.made: list[str] = []  # on the host's disk
        self.relative_hooks: list[str] = []  # values of core.hooksPath, which mean another folder in each worktree
        self.absent: list[str] = []  # what the configuration names and does not exist
        self.closed: list[str] = []  # read-only as a whole, since there are too many
        self.unprotected: list[str] = []
        self.worktrees: list[tuple[str, list[str]]] = []  # folders of them, and the names in each
        self.operations: dict[str, bytes] = {}  # of git that are not finished: files by which git may run a program
        self.entries: dict[str, object] = {}  # what was at the paths of the repositories
        self._paths = RealPaths()
        self.waits, self._copies = 0, ""  # waits for locks of git at the end
        self._included: set[tuple[str, tuple[str, ...]]] = set()
        self._worktree_folders: list[str] = []

    def protect(self, repositories: Iterable[str]) -> None:
        """*repositories* are paths of `.git` (a folder, a file or a link) and of bare repositories."""
        for path in repositories:
            self.entries[path] = entry_at(path)
            if self._is_locked(path):
                self._close(path)
            elif os.path.islink(path):
                self._hold_links(path)
                self._git_folder(os.path.realpath(path), os.path.dirname(path))
            elif os.path.isdir(path):
                self._git_folder(path, os.path.dirname(path))
            else:
                self._git_file(path)
        self._included.clear()  # what a repository includes does not use up the user's own files
        for path in GLOBAL:
            self._obeyed(path.replace("~", home()), tuple(dict.fromkeys(self._worktree_folders)))

    def is_held(self, folder: str) -> bool:
        """Whether the git directory is the one that it was at the start."""
        try:
            return folder in self.held and os.path.samestat(os.lstat(folder), os.fstat(self.held[folder]))
        except OSError:
            return False

    def is_copied(self, path: str) -> bool:
        """Whether the session changes a copy of *path*, in an overlay."""
        return self.root.overlay is not None and is_within(path, self.root.overlay[0])

    def _git_file(self, path: str) -> None:
        named = one_line(path, "gitdir:")
        if named is None:
            return
        self._read_only(path)
        self._git_folder(os.path.realpath(os.path.join(os.path.dirname(path), named)), os.path.dirname(path))

    def _is_writable(self, path: str) -> bool:
        shown = self.root.shown_entry(path)
        return shown is not None and shown.writable and not any(is_within(path, named) for named in self.named)

    def _git_folder(self, folder: str, worktree: str) -> None:
        """Protect a git directory and those in it."""
        self._worktree_folders.append(worktree)
        if folder in self.held or not self._is_writable(folder) or not os.path.isdir(folder):
            return
        if len(self.held) >= MAX_GIT_FOLDERS or self._is_locked(folder):
            self._close(folder)
            return
        here = self.held[folder] = self.folders.git_lock(folder)
        self.root.pin(folder)
        named = one_line(f"{folder}/commondir", "")
        common = os.path.realpath(os.path.join(folder, named)) if named is not None else folder
        self._private(f"{folder}/config.worktree", here)
        self._remember_operations(folder)
        if common != folder:  # a worktree's
            self._read_only(f"{folder}/commondir")
            self._git_folder(common, worktree)
            return
        self._hold(f"{folder}/hooks", None, here)
        config = self._private(f"{folder}/config", here)
        if not any(_is(line, "core", "bare") and line.is_true for line in config):
            self._hold(f"{folder}/commondir", SAME_FOLDER, here)
        self._follow(config, f"{folder}/config", worktree)
        self._worktrees(f"{folder}/worktrees")
        self._modules(f"{folder}/modules", worktree)

    def _remember_operations(self, folder: str) -> None:
        if any(os.path.lexists(f"{folder}/{name}") for name in OPERATIONS):
            from netsandbox.backends.linux.git_operations import contents  # few repositories are in the middle of one

            self.operations.update(contents(folder))

    def _is_locked(self, path: str) -> bool:
        """Whether we cannot look into a folder: a command may have taken the rights away, and can give them back."""
        return _is_folder(path) and self._is_writable(path) and not os.access(path, os.R_OK | os.X_OK)

    def _close(self, folder: str) -> None:
        """A command can make repositories until others are too many to protect, so these become read-only."""
        if len(self.closed) >= MAX_CLOSED:
            self.unprotected.append(folder)
        else:
            self.closed.append(folder)
            self.root.pin_above(folder)
            self.root.close(folder)

    def _private(self, path: str, folder: int) -> list[Line]:
        """The session gets a copy of a configuration file. Returns its settings. Nothing is read through a link: an
        earlier session may have made it, and the copy would show any file of the host."""
        name = os.path.basename(path)
        if path in self.root.entries or not self._is_writable(path):  # another configuration includes it, or its folder
            return config_at(path) if path in self.root.entries else []
        self._make(path, b"", folder)
        try:
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            content = read_file(name, folder) if state.st_size else b""
        except FileNotFoundError:  # it cannot be made
            return []
        except OSError:  # git cannot use it either
            state = None
        if state is None or not stat.S_ISREG(state.st_mode):
            self._read_only(path)
            return config_at(os.path.realpath(path))
        if any(is_within(path, each) for each in self.denied):
            self._read_only(path)
            return _settings(content)
        if not self._copies:
            self._copies = self.folders.git_copies()
            self.root.place(self._copies, COPIES, writable=True)
        name = f"config-{len(self.copied)}"
        copied = Copied(path, f"{self._copies}/{name}", content, state)
        if content:  # otherwise git makes it
            try:
                write_new(copied.copy, content, copied.mode | 0o600)
            except OSError as error:
                raise unusable(f"cannot write {copied.copy!a}", error) from None
        self.copied.append(copied)
        self.root.cover(f"{COPIES}/{name}", path)
        return _settings(content)

    def _hold(self, path: str, content: bytes | None, folder: int) -> None:
        """Make *path* if it is missing (a folder for None), and keep it as it is."""
        self._make(path, content, folder)
        self._paths.forget_missing()  # another repository's configuration may have named it before it was made
        self._read_only(path)

    def _make(self, path: str, content: bytes | None, folder: int) -> None:
        if os.path.lexists(path) or not self._is_writable(path):
            return
        name = os.path.basename(path)
        try:
            if content is None:
                os.mkdir(name, 0o755, dir_fd=folder)
            elif not content:
                os.close(os.open(name, NEW, 0o644, dir_fd=folder))
            else:
                make(folder, name, content)
            self.made.append(path)
        except (PermissionError, FileExistsError):  # then the session cannot make it either; another session made it
            return
        except OSError as error:
            raise HostError(f"cannot make {path!a}, to protect it: {error.strerror}; make it yourself") from None

    def _read_only(self, path: str) -> None:
        """Keep *path* and what it leads to as they are, where the session could change them."""
        real = self._paths.real(path)
        if real != path and os.path.lexists(path):
            self._hold_links(path)
        if real is not None and self._is_writable(real):
            self.root.hold(real)

    def _hold_links(self, path: str) -> None:
        from netsandbox.backends.linux.held_links import hold_links  # few sessions need it

        hold_links(self.root, path, self._is_writable)
        real = os.path.realpath(path)
        if real != path and self._is_writable(real) and not os.path.isdir(real):
            self.root.hold(real)

    # What the configuration names

    def _follow(self, lines: list[Line], path: str, *worktrees: str) -> None:
        for line in lines:
            value = line.value
            if not value or "\0" in value:
                continue
            value = home() + value[1:] if value.startswith("~/") else value
            if _is(line, "core", "hookspath"):
                self.relative_hooks += [value] if value[0] != "/" else []
                for worktree in worktrees:
                    self._named(os.path.join(worktree, value))
            elif line.key == "path" and line.prefix.partition(".")[0] in ("include", "includeif"):
                target = os.path.normpath(os.path.join(os.path.dirname(path), value))
                self._named(target)
                self._obeyed(target, worktrees)

    def _obeyed(self, path: str, worktrees: tuple[str, ...]) -> None:
        """Read a configuration file that git reads besides that of the repository."""
        if len(self._included) > MAX_INCLUDES:
            self.unprotected.append(path)
        elif (path, worktrees) not in self._included:  # a relative path in it means another one in each worktree
            self._included.add((path, worktrees))
            real = self._paths.real(path)
            self._follow(config_at(real) if real is not None else [], path, *worktrees)

    def _named(self, path: str) -> None:
        self._read_only(path)
        if not os.path.exists(path) and self._is_writable(os.path.normpath(path)):
            self.absent.append(os.path.normpath(path))

    # Worktrees and submodules

    def _worktrees(self, folder: str) -> None:
        if os.path.islink(folder):  # it may lead out of the project
            self._hold_links(folder)
            return
        names = names_in(folder)
        self.worktrees.append((folder, names))
        if len(names) > MAX_WORKTREES or self._is_locked(folder):
            self._close(folder)
            return
        for own in [f"{folder}/{name}" for name in names]:
            if self._is_locked(own):
                self._close(own)
                continue
            try:
                here = open_folder(own)
            except OSError:  # no folder
                continue
            self.root.pin(own)
            try:
                self._private(f"{own}/config.worktree", here)
            finally:
                os.close(here)
            self._remember_operations(own)
            self._read_only(f"{own}/commondir")
            self._read_only(f"{own}/gitdir")
            place = one_line(f"{own}/gitdir", "")
            if place is not None:
                self._worktree(os.path.join(own, place))

    def _worktree(self, path: str) -> None:
        """*path* is the `.git` file of a worktree, of this project or another."""
        real = f"{self._paths.reached(os.path.dirname(path))}/{os.path.basename(path)}"
        if os.path.basename(real) != ".git" or not _is_file(real):
            return  # it is gone, for the host's git too
        if self.root.shown_entry(real) is not None:
            self._read_only(real)
        elif self.root.entries.get(real) is None:
            self.root.show(real)

    def _modules(self, folder: str, worktree: str) -> None:
        """The git directories of submodules; their names may have slashes."""
        if os.path.islink(folder):
            self._hold_links(folder)
            return
        if self._is_locked(folder):
            self._close(folder)
        waiting = [f"{folder}/{name}" for name in names_in(folder)]
        for own in waiting:
            if len(waiting) > MAX_GIT_FOLDERS * 4:
                self._close(folder)
                return
            if self._is_locked(own):
                self._close(own)
                continue
            if not _is_folder(own):
                continue
            # A command can add or remove a HEAD, but not the configuration that is held.
            is_git = _is_file(f"{own}/HEAD") or _is_file(f"{own}/config")
            inner = [f"{own}/{name}" for name in names_in(own) if not is_git or name not in GIT_DATA]
            waiting += filter(_is_folder, inner)
            if not is_git:
                continue
            place = next((line.value for line in config_at(f"{own}/config") if _is(line, "core", "worktree")), None)
            inside = os.path.normpath(os.path.join(own, place)) if place and "\0" not in place else worktree
            self._git_folder(own, inside)
            if _is_file(f"{inside}/.git"):
                self._git_file(f"{inside}/.git")


def entry_at(path: str) -> object:
    """What is at the path of a repository, to be compared: a folder, the target of a link, or the content of a file."""
    try:
        state = os.lstat(path)
        if stat.S_ISDIR(state.st_mode):
            return state.st_dev, state.st_ino
        return os.readlink(path) if stat.S_ISLNK(state.st_mode) else read_file(path)
    except OSError:
        return None


def _is(line: Line, prefix: str, key: str) -> bool:
    return line.prefix == prefix and line.key == key


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _settings(content: bytes) -> list[Line]:
    """None if nothing that is looked for is among them, as in most files."""
    text = content.lower().replace(b"bare = false", b"")
    if not any(name in text for name in FOLLOWED):
        return []
    from netsandbox.policy.git_config import parse

    try:
        return parse(content.decode("utf-8", "surrogateescape"))
    except ValueError:  # git does not read it either
        return []


def config_at(path: str) -> list[Line]:
    try:
        return _settings(read_file(path))
    except OSError:  # git does without it too
        return []
