"""Makes the repositories harmless that a session left in its project, before the user's prompt comes back.

A session can make a repository with any configuration and add it to the project's index. The host's `git status` in the
project enters it and runs what it says. So a new git directory keeps the settings that the host takes over from a
session (`policy.git_merge`), and its hooks are moved aside. What cannot be made harmless is moved aside as a whole, so
that git ignores it: links, files that lead elsewhere, and whatever is an error.

The session has ended. No link is followed, and a file with a second name is an error: a later session could write it by
that name.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.git_copies import SAME_FOLDER, read_file, unlock
from netsandbox.backends.linux.git_files import entry_at
from netsandbox.backends.linux.git_operations import settle as settle_operations
from netsandbox.backends.linux.private_folders import ASIDE, FOLDER, move_aside, open_folder
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.git_index import linked_paths
from netsandbox.policy.git_merge import reduced
from netsandbox.runtime.private_file import write_new
from netsandbox.runtime.project import one_line
from netsandbox.runtime.real_paths import names_in
from netsandbox.text import few, shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox.backends.linux.project_view import ProjectView

MAX_READ = 4 << 20  # bytes of all files together, about a second for each MB; what has more is moved aside
MAX_VISITED = 20_000  # folders of modules and worktrees
MAX_INDEX = 256 << 20  # bytes
MAX_LINES = 16


class NewRepositories:
    """*is_outside* tells whether the session could not write a path."""

    def __init__(self, view: ProjectView, is_outside: Callable[[str], bool]) -> None:
        assert view.project is not None
        self._top = view.project.folder
        self._places = (self._top, view.project.git or self._top)
        self._opened = view.opened
        self._began, self._since = view.since, 0.0  # links from then on are refused
        self._is_outside = is_outside
        self._seen: dict[str, bool] = {}  # git directories, and whether they are harmless
        self._unread, self._unvisited = MAX_READ, MAX_VISITED
        self._lines: list[str] = []
        git = view.git
        entries = git.entries if git is not None else {}
        # What took the place of a repository is as new as another.
        self._old = {path: None for path in view.repositories.found if entry_at(path) == entries.get(path)}
        self._replaced = [path for path in view.repositories.found if path not in self._old]
        self._held = tuple(folder for folder in git.held if git.is_held(folder)) if git is not None else ()
        self._closed = tuple(git.closed) if git is not None else ()
        self._hooks = tuple(git.relative_hooks) if git is not None else ()
        configured = [os.path.dirname(each.path) for each in (git.copied if git is not None else ())]
        self._known = {*self._held, *(each for each in configured if git is not None and each not in git.held)}

    def settle(self, paths: Iterable[str]) -> list[str]:
        """*paths* are of `.git`, of bare repositories, and of folders that we may not look into. Returns lines for the
        user."""
        waiting = [*self._old, *self._replaced, *paths]
        done: set[str] = set()
        for path in waiting:
            if path not in self._old:
                self._attempt(self._entry, path)
            waiting += self._linked(path) if path not in done else ()
            done.add(path)
        for folder in self._held:  # which may have new submodules, and links of the host
            self._unvisited, self._since = MAX_VISITED, self._began
            self._attempt(self._new_modules, f"{folder}/modules")
        if len(self._lines) > MAX_LINES:
            self._lines[MAX_LINES:] = [f"{len(self._lines) - MAX_LINES} more lines about new repositories are left out"]
        return self._lines

    def _attempt(self, look: Callable[[str], None], path: str) -> None:
        if any(is_within(path, each) for each in (*self._opened, *self._closed)) or not os.path.lexists(path):
            return
        try:
            look(path)
        except (OSError, ValueError, RecursionError) as error:
            self._set_aside(path, error)

    def _linked(self, entry: str) -> list[str]:
        """The `.git` of the repositories that an index names: git enters them where no search looked."""
        worktree, name = os.path.split(entry)
        place = os.path.realpath(os.path.join(worktree, one_line(entry, "gitdir:") or name))
        files = [f"{place}/{each}" for each in names_in(place) if each == "index" or each.startswith("sharedindex.")]
        try:
            real = map(os.path.realpath, files if name == ".git" else ())  # git follows a link too
            paths = linked_paths(*(read_file(file, most=MAX_INDEX) for file in real))
        except (OSError, ValueError):
            self._lines.append(f"{self._shown(place)}/index cannot be read: it may name new repositories")
            return []
        linked = [f"{worktree}/{os.fsdecode(path)}" for path in paths]
        return [f"{each}/.git" for each in linked if os.path.lexists(f"{each}/.git") and os.path.realpath(each) == each]

    def _new_modules(self, folder: str) -> None:
        """Of a known repository: each alone, so that those of the host stay."""
        if folder in self._known or not self._is_folder(folder):
            return
        unlock(folder)
        if _is_git_directory(folder):
            self._git_folder(folder)
            return
        for name in os.listdir(folder):
            self._unvisited -= 1
            self._attempt(self._new_modules, f"{folder}/{name}")

    def _entry(self, path: str) -> None:
        kind = os.lstat(path).st_mode
        if stat.S_ISDIR(kind):
            self._git_folder(path)
            return
        if stat.S_ISLNK(kind):
            raise ValueError("it is a link")
        target = self._target(path)
        is_of_known = any(target.startswith((f"{each}/modules/", f"{each}/worktrees/")) for each in self._held)
        if not any(is_within(target, place) for place in self._places) or ASIDE in target:
            raise ValueError("it leads elsewhere")
        if target in self._known and not is_of_known:
            raise ValueError("it leads to another repository")
        if is_of_known:
            self._compare_hooks(os.path.dirname(path))
        if target not in self._known:
            self._git_folder(target)

    def _compare_hooks(self, worktree: str) -> None:
        """The hooks that a relative core.hooksPath means in a new worktree must be those of the project, which no
        session could change."""
        for value in self._hooks:
            folder = os.path.normpath(f"{worktree}/{value}")
            for name in os.listdir(folder) if os.path.lexists(folder) else ():
                if os.path.realpath(folder) != folder or read_file(f"{folder}/{name}") != read_file(
                    f"{self._top}/{value}/{name}"
                ):
                    raise ValueError("core.hooksPath leads to files in it that differ from those of the project")

    def _target(self, path: str) -> str:
        """What a `.git` file leads to, read as strictly as git writes it."""
        here = open_folder(os.path.dirname(path))
        try:
            data = self._read(os.path.basename(path), here) or b""
        finally:
            os.close(here)
        place = data.removeprefix(b"gitdir: ").removesuffix(b"\n")
        if not data.startswith(b"gitdir: ") or not place or any(char < ord(" ") for char in place):
            raise ValueError("it is not a file of git")
        return os.path.realpath(os.path.join(os.path.dirname(path), os.fsdecode(place)))

    def _git_folder(self, folder: str) -> None:
        if folder in self._known or self._seen.get(folder) or any(is_within(folder, each) for each in self._opened):
            return
        if folder in self._seen:
            raise ValueError("it leads to what is not harmless")
        self._seen[folder] = True  # a worktree and its repository lead to each other
        taken: list[str] = []
        try:
            here = open_folder(folder)
            try:
                self._check_commondir(folder, here)
                for name in ("config", "config.worktree"):
                    taken += self._reduce(name, folder, here)
                taken += _take_hooks(here)
            finally:
                os.close(here)
            self._lines += settle_operations(folder, {})
            for own in (*self._modules(f"{folder}/modules"), *self._folders_in(f"{folder}/worktrees")):
                self._git_folder(own)
        except BaseException:
            self._seen[folder] = False
            raise
        finally:
            if taken:
                self._tell_taken(folder, taken)

    def _check_commondir(self, folder: str, here: int) -> None:
        data = self._read("commondir", here)
        if data in (None, SAME_FOLDER):
            return
        if data != b"../..\n" or os.path.basename(os.path.dirname(folder)) != "worktrees":
            raise ValueError("its commondir leads elsewhere")
        self._git_folder(os.path.dirname(os.path.dirname(folder)))

    def _reduce(self, name: str, folder: str, here: int) -> list[str]:
        """Take away the settings that the host does not take over. The file stays as it is if there are none."""
        data = self._read(name, here)
        if data is None:
            return []
        text, gone = reduced(
            data.decode("utf-8", "surrogateescape"), self._is_safe, lambda path: self._is_worktree(path, folder)
        )
        if gone:
            mode = stat.S_IMODE(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode) & 0o777
            write_new(f"{name}.lock", text.encode("utf-8", "surrogateescape"), mode, here)
            move_aside(name, here)
            os.rename(f"{name}.lock", name, src_dir_fd=here, dst_dir_fd=here)
        return list(gone)

    def _is_safe(self, path: str) -> bool:
        """Whether a remote may be there. The repositories of the project are harmless themselves."""
        real = os.path.realpath(path)
        return ASIDE not in real and (is_within(real, self._top) or self._is_outside(path))

    def _is_worktree(self, path: str, folder: str) -> bool:
        """Whether the `.git` in a core.worktree leads back to the git directory *folder*."""
        entry = os.path.join(os.path.realpath(os.path.join(folder, path)), ".git")
        try:
            return entry == folder or self._target(entry) == folder
        except (OSError, ValueError):
            return False

    def _read(self, name: str, here: int) -> bytes | None:
        try:
            data = read_file(name, here)
        except FileNotFoundError:
            return None
        self._unread -= len(data)
        if self._unread < 0:
            raise ValueError("there is too much to read")
        if os.stat(name, dir_fd=here, follow_symlinks=False).st_nlink > 1:
            raise ValueError(f"{name} has a second name")
        return data

    def _modules(self, folder: str) -> list[str]:
        """The git directories of submodules; their names may have slashes."""
        found: list[str] = []
        waiting = self._folders_in(folder)
        for own in waiting:
            if _is_git_directory(own):
                found.append(own)
            else:
                waiting += self._folders_in(own)
        return found

    def _folders_in(self, folder: str) -> list[str]:
        if not self._is_folder(folder):
            return []
        entries = [f"{folder}/{name}" for name in os.listdir(folder)]
        self._unvisited -= len(entries)
        return [entry for entry in entries if self._is_folder(entry)]

    def _is_folder(self, path: str) -> bool:
        if not os.path.lexists(path):
            return False
        if self._unvisited < 0:
            raise ValueError("there are too many folders in it")
        state = os.lstat(path)
        if stat.S_ISLNK(state.st_mode) and state.st_ctime >= self._since:  # no program can set that time
            raise ValueError(f"{os.path.basename(path)} is a link")
        return stat.S_ISDIR(state.st_mode)

    # What the user is told

    def _tell_taken(self, folder: str, taken: list[str]) -> None:
        shown, at = self._shown(folder), shell_quoted(self._shown(folder.removesuffix("/.git")))
        self._lines.append(
            f"{shown} is new and lost what can run programs here: {few(single_line(name, 100) for name in taken)};"
            f" *{ASIDE} in it has that, `git -C {at} config NAME VALUE` sets one again, and --allow-write"
            f" {shell_quoted(shown)} leaves them"
        )

    def _set_aside(self, path: str, error: Exception) -> None:
        """Rename `.git`, so that git ignores it; of a bare repository its HEAD."""
        is_bare = os.path.basename(path) != ".git" and os.path.lexists(f"{path}/HEAD") and not os.path.islink(path)
        entry = f"{path}/HEAD" if is_bare else path
        shown, why = self._shown(entry), single_line(getattr(error, "strerror", None) or str(error))
        try:
            here = open_folder(os.path.dirname(entry))
            try:
                name = move_aside(os.path.basename(entry), here)
            finally:
                os.close(here)
            line = f"so it is {single_line(name)} now and git ignores it; look at it before you rename it back"
        except OSError as failed:
            line = f"nor renamed ({failed.strerror}); remove it before you use git here"
        option = f"--allow-write {shell_quoted(self._shown(path))} leaves it"
        self._lines.insert(0, f"{shown} is new and cannot be made harmless ({why}), {line}; {option}")

    def _shown(self, path: str) -> str:
        return single_line(os.path.relpath(path, self._top), 200)


def _is_git_directory(folder: str) -> bool:
    return os.path.lexists(f"{folder}/HEAD") and all(os.path.isdir(f"{folder}/{name}") for name in ("objects", "refs"))


def _take_hooks(here: int) -> list[str]:
    try:
        is_folder = stat.S_ISDIR(os.stat("hooks", dir_fd=here, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return []
    names = [""]
    if is_folder:
        hooks = os.open("hooks", FOLDER, dir_fd=here)
        try:
            names = [name for name in os.listdir(hooks) if not name.endswith(".sample")]
        finally:
            os.close(hooks)
    if names:
        move_aside("hooks", here)
    return [f"hooks/{name}" for name in sorted(names)]
