"""After a session in the mode `project`: what of its changes the host takes over, and what its user must know.

The session has ended, so nothing of it can move a file meanwhile. Other programs can: folders are opened name by name
without following links, and a configuration file is written as git does, by a lock that replaces it.
"""

from __future__ import annotations

import fcntl
import os
import time
from errno import ENOSPC

from netsandbox.backends.namespaces.git_files import SAME_FOLDER, Copied, GitFiles, identity, read_file
from netsandbox.backends.namespaces.private_folders import open_folder, remove_tree
from netsandbox.paths import short
from netsandbox.policy.git_merge import changed, is_harmless, merge
from netsandbox.runtime.project import new_repositories
from netsandbox.runtime.real_paths import names_in
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.namespaces.git_files import Identity
    from netsandbox.backends.namespaces.project_view import ProjectView
    from netsandbox.policy.git_merge import Merged

MAX_WAITS, PAUSE = 20, 0.05  # seconds; the host's git pauses for less between two changes
SETTLING = 6  # pauses; more than another session takes for its copy
MAX_PACKAGES = 16  # installed ones that are looked at
INSTALLED = {".venv": "__init__.py", "node_modules": "package.json"}  # folders of packages, and a file of each
MAX_SEARCHED = 128  # folders of the project in which new repositories are looked for
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def finish(view: ProjectView) -> list[str]:
    """Merge, clean up, and return the lines for the user."""
    lines = repair(view, trust_own=False)
    if view.git is not None:
        for copied in view.git.copied:
            lines += _merge_back(copied, view)
        _clean_up(view.git)
    made = [short(path) for path in view.forbidden if os.path.lexists(path)]
    if made:
        lines.append(f"new despite deny_write: {_few(made)}; programs of the host obey or run these, so look first")
    if view.agents:
        from netsandbox.backends.namespaces.agent_files import take_over  # loaded before the command ran

        for file in view.agents:
            lines += take_over(file, view.project.folder if view.project else view.home)
    return [*lines, *_new_lines(view), *_shared_lines(view)]


def repair(view: ProjectView, *, trust_own: bool = True) -> list[str]:
    """Look at the configuration files after a cover was off. The session is stopped until this returns.

    The session may have opened, mapped or linked the file that the host put there, so a copy takes its place, which
    takes the covers away once more. It may also have put a file of its own there, and nobody can tell whose change it
    is. So a setting that could run a program gets its old value again, and the user sets it after the session."""
    lines: list[str] = []
    if view.git is None:
        return lines
    for copied in view.git.copied:
        try:
            if not (trust_own and view.git.is_own(copied.path)):
                lines += _examine(copied, view)
        except OSError:  # the host removed it, and is about to write it anew, or removes the repository
            continue
    return lines


def _examine(copied: Copied, view: ProjectView) -> list[str]:
    git = view.git
    assert git is not None
    known = git.known.get(copied.path, copied.base)
    folder = open_folder(os.path.dirname(copied.path))
    try:
        found = _dangerous(known, read_file(copied.path), view)
        if not found:
            found = [] if git.is_own(copied.path) else _copy(folder, copied, git, view)
        if not found:
            return []
        _take_back(folder, copied, git, known)
    finally:
        os.close(folder)
    return [
        f"{single_line(short(copied.path))} was changed while the session could write it: {_few(found)};"
        " that is taken back, set it again after the session if it was you"
    ]


def _dangerous(before: bytes, after: bytes, view: ProjectView) -> list[str]:
    """The settings with new values that could run a program."""
    old, new = _text(before), _text(after)
    try:
        refused = merge(old, new, old, lambda path: _is_outside(path, view)).refused
        settings = changed(old, new)
    except ValueError:
        return ["it has errors"]
    return [name for name in refused if settings[name] and not is_harmless(name)]


def _is_outside(path: str, view: ProjectView) -> bool:
    shown = view.root.is_shown(os.path.realpath(path))
    return shown is None or not shown.writable


def _take_back(folder: int, copied: Copied, git: GitFiles, known: bytes) -> None:
    """Of the changes since *known*, keep those that run nothing. git's lock is not asked: the session may hold it."""
    name, before = os.path.basename(copied.path), _text(known)
    try:
        after = merge(before, _text(read_file(name, folder)), before, lambda path: False).text or before
    except ValueError:
        after = before
    git.own(copied.path, _put(folder, name, after, copied.mode))


def _copy(folder: int, copied: Copied, git: GitFiles, view: ProjectView) -> list[str]:
    """Put a copy in the file's place when the host's git, which often changes several settings, is done. Returns the
    dangerous settings that came meanwhile, and puts no copy then."""
    name = os.path.basename(copied.path)
    before, first = None, os.lstat(copied.path).st_ino
    for _ in range(MAX_WAITS):
        state = os.lstat(copied.path)
        is_locked = os.access(f"{name}.lock", os.F_OK, dir_fd=folder)
        if before == state.st_ino and not is_locked:
            break
        before = state.st_ino
        time.sleep(PAUSE)
    theirs = read_file(name, folder)
    if found := _dangerous(git.known.get(copied.path, copied.base), theirs, view):
        return found
    git.known[copied.path] = theirs
    if os.lstat(copied.path).st_ino != first and git.adopts(copied.path):
        return []
    git.own(copied.path, _put(folder, name, _text(theirs), copied.mode))
    for _ in range(SETTLING):  # other sessions replace this copy by theirs, and this one must be stopped then
        time.sleep(PAUSE)
        if not git.is_own(copied.path) and git.adopts(copied.path):
            return _dangerous(theirs, read_file(name, folder), view)
    return []


def _merge_back(copied: Copied, view: ProjectView) -> list[str]:
    name = single_line(short(copied.path))
    try:
        mine = read_file(copied.copy)
        folder = open_folder(os.path.dirname(copied.path))
    except OSError:  # the session removed its copy, or the host the repository
        return []
    try:
        theirs = read_file(os.path.basename(copied.path), folder)
        lines = _outside_lines(name, copied.base, theirs, view)
        if mine != copied.base:
            lines += _result_lines(name, _write(folder, copied, mine, view))
        return lines
    except ValueError:
        return [f"{name} or the session's copy of it has errors, so it stays as it is"]
    except FileExistsError:
        return [f"{name}.lock exists, so the session's changes of {name} are lost; remove it if no git runs there"]
    except OSError as error:
        return [f"{name} could not be written ({error.strerror}), so the session's changes of it are lost"]
    finally:
        os.close(folder)


def _write(folder: int, copied: Copied, mine: bytes, view: ProjectView) -> Merged:
    """Merge while git's own lock is held, so that no change of the host is lost."""
    name = os.path.basename(copied.path)
    lock = f"{name}.lock"
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777
    os.close(os.open(lock, NEW, mode, dir_fd=folder))
    try:
        theirs = read_file(name, folder)
        merged = merge(_text(copied.base), _text(mine), _text(theirs), lambda path: _is_outside(path, view))
        if merged.text is not None:
            _put(folder, name, merged.text, mode)
        return merged
    finally:
        os.unlink(lock, dir_fd=folder)


def _put(folder: int, name: str, text: str, mode: int) -> Identity:
    """Put *text* at *name* in one step. Returns the identity of the new file."""
    draft = f"{name}.{os.urandom(8).hex()}"
    descriptor = os.open(draft, NEW, mode, dir_fd=folder)
    try:
        os.fchmod(descriptor, mode)
        data = text.encode("utf-8", "surrogateescape")
        if os.write(descriptor, data) != len(data):
            raise OSError(ENOSPC, "no room")
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        return identity(os.fstat(descriptor))
    except OSError:
        os.unlink(draft, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


def _result_lines(name: str, merged: Merged) -> list[str]:
    lines = []
    if merged.refused:
        lines.append(
            f"{name} does not get these settings of the session: {_few(merged.refused)};"
            " set those you want with `git config` here"
        )
    if merged.moved:
        lines.append(f"{name} has new URLs now: {_few(merged.moved)}; check them before you push")
    return lines


def _outside_lines(name: str, base: bytes, theirs: bytes, view: ProjectView) -> list[str]:
    """A program of the host that replaces the file takes the session's cover away, so its changes are looked at."""
    names = _dangerous(base, theirs, view) if base != theirs else ()
    return [f"{name} was changed while the session ran: {_few(names)}; check that you did that"] if names else []


def _clean_up(git: GitFiles) -> None:
    """Remove what only stood for something missing, unless another session needs it."""
    for folder, lock in git.locks.items():
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        own = [each.path for each in git.copied if each.path.startswith(f"{folder}/") and not each.base]
        for path in (*own, f"{folder}/commondir", f"{folder}/hooks"):
            if path in git.made or path.endswith(("/commondir", "/config.worktree")):
                _remove_placeholder(path)
    if git.copied:
        try:
            remove_tree(os.path.dirname(git.copied[0].copy))
        except (OSError, RecursionError):  # the next session tries again
            pass


def _remove_placeholder(path: str) -> None:
    above, name = os.path.split(path)
    try:
        folder = open_folder(above)
    except OSError:
        return
    try:
        if name == "hooks":
            os.rmdir(name, dir_fd=folder)
        elif read_file(name, folder) == (SAME_FOLDER if name == "commondir" else b""):
            os.unlink(name, dir_fd=folder)
    except OSError:  # somebody uses it
        pass
    finally:
        os.close(folder)


def _shared_lines(view: ProjectView) -> list[str]:
    """Package managers link files from the host's cache into a project. A command that writes such a file changes it in
    the cache and in all projects, so that is said once. Looked at are the first packages of the project."""
    if view.project is None:
        return []
    for folder, pattern in INSTALLED.items():
        top = f"{view.project.folder}/{folder}"
        if any(_is_linked(f"{path}/{pattern}") for path in _packages(top)) and view.folders.is_first("links"):
            return [
                f"files in {folder} are shared with a cache of the host by hard links, so that a session which changes"
                " them changes them in other projects too; installing inside of a session makes copies"
            ]
    return []


def _packages(folder: str) -> list[str]:
    """Some folders of packages: those of node_modules, or of the site-packages of a virtual environment."""
    for part in ("lib", "*", "site-packages") if folder.endswith(".venv") else ():
        names = names_in(folder) if part == "*" else [part]
        folder = f"{folder}/{names[0]}" if names else folder
    return [f"{folder}/{name}" for name in names_in(folder)[:MAX_PACKAGES]]


def _is_linked(path: str) -> bool:
    try:
        return os.lstat(path).st_nlink > 1
    except OSError:
        return False


def _new_lines(view: ProjectView) -> list[str]:
    if view.project is None:
        return []
    top = view.project.folder
    names = [name for name in view.absent if os.path.lexists(f"{top}/{name}")]
    names += [path[len(top) + 1 :] for path in new_repositories(view.repositories, view.since, MAX_SEARCHED)]
    if view.git is not None:
        names += [path for path in view.git.absent if os.path.lexists(path)]
    lines = []
    if names:
        what = _few(dict.fromkeys(names))
        lines.append(f"new in the project: {what}; programs of the host obey or run these, so look at them first")
    if view.git is not None and view.git.unprotected:
        lines.append(f"too many repositories to protect: {_few(view.git.unprotected)}; start in one of them instead")
    return lines


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _few(names: Iterable[str]) -> str:
    return few(single_line(name)[:200] for name in names)
