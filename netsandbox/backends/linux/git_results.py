"""What a session left in the repositories of its project: what the host takes over of it, and what is taken back.

The same happens after a session that had a copy of git's configuration and after one that wrote the host's own:
1. The host's file gets the old value of each setting that changed and could run a program. Nobody can tell who changed
   it. Everything else in it stays.
2. It gets what is harmless of the session's copy.
3. Operations that are not finished lose what the session added and git would run.

Only a file that is missing was removed. What is no plain file, too large, unreadable or has errors is replaced by the
content from before the session. The session has ended, so nothing of it can move a file meanwhile. Other programs can:
folders are opened name by name without following links, and a file is written as git does, by a lock that replaces it.
"""

from __future__ import annotations

import os
import time

from netsandbox.backends.linux.git_copies import SAME_FOLDER, make_writable, read_file, unlock
from netsandbox.backends.linux.git_operations import settle as settle_operations
from netsandbox.backends.linux.private_folders import ASIDE, is_last, move_aside, open_folder, remove_tree
from netsandbox.paths import short
from netsandbox.policy.git_merge import merge, taken_back
from netsandbox.runtime.private_file import NEW, write_new
from netsandbox.runtime.project import one_line
from netsandbox.runtime.real_paths import names_in
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.linux.git_copies import Copied
    from netsandbox.backends.linux.git_files import GitFiles
    from netsandbox.backends.linux.project_view import ProjectView
    from netsandbox.policy.git_merge import Merged

MAX_WAITS, PAUSE = 20, 0.05  # seconds; the host's git holds its lock for less
MAX_LINES = 8  # about configuration files, and about operations


def settle(view: ProjectView, git: GitFiles) -> list[str]:
    """Returns the lines for the user."""
    lines: list[str] = []
    for copied in git.copied:
        lines += _settle(copied, view, git)
    lines.sort(key=lambda line: "has new URLs" not in line and "is taken back" not in line)  # never left out
    operations: list[str] = []
    for folder in filter(git.is_held, git.held):
        if not git.is_copied(folder):
            operations += _settle_operations(folder, git)
    lines = [*_first(lines, "configuration files"), *_first(operations, "operations"), *_lost_worktrees(git)]
    _clean_up(git)
    return lines


def _first(lines: list[str], what: str) -> list[str]:
    if len(lines) <= MAX_LINES:
        return lines
    return [*lines[:MAX_LINES], f"{len(lines) - MAX_LINES} more lines about {what} of git are left out"]


def _settle_operations(folder: str, git: GitFiles) -> list[str]:
    """Those of a repository and of its worktrees, also of new ones."""
    lines = settle_operations(folder, git.operations)
    trees = f"{folder}/worktrees"
    if os.path.islink(trees):  # the host's own, which is held
        return lines
    try:
        unlock(trees)
        names = os.listdir(trees)
    except (FileNotFoundError, NotADirectoryError):
        return lines
    except OSError as error:
        return [
            *lines,
            f"{single_line(short(trees))} cannot be looked at ({error.strerror}); look before you use git there",
        ]
    return lines + [line for name in names for line in settle_operations(f"{trees}/{name}", git.operations)]


def _settle(copied: Copied, view: ProjectView, git: GitFiles) -> list[str]:
    name, shown = os.path.basename(copied.path), single_line(short(copied.path))
    try:
        folder = _opened(os.path.dirname(copied.path), view)
    except (FileNotFoundError, NotADirectoryError):  # the repository is gone, or something else is in its place
        return []
    except OSError as error:
        return [f"{shown} cannot be looked at ({error.strerror}); look at it before you use git there"]
    try:
        return [*_take_back(folder, name, copied, view), *_take_over(folder, name, copied, view, git)]
    except OSError as error:
        return [f"{shown} could not be written ({error.strerror}); look at it before you use git there"]
    finally:
        os.close(folder)


def _opened(folder: str, view: ProjectView) -> int:
    """A descriptor of a folder with files of git. The session may have taken the rights to it, or to one above."""
    top = view.project.folder if view.project is not None else folder
    above = folder
    ways = []
    while above.startswith(f"{top}/"):
        ways.append(above)
        above = os.path.dirname(above)
    for way in reversed(ways):
        unlock(way)
    return open_folder(folder)


def _take_back(folder: int, name: str, copied: Copied, view: ProjectView) -> list[str]:
    """Of the changes of the host's file, keep those that run nothing. git's lock is not asked: the session may have
    left it."""
    try:
        found = read_file(name, folder)
        has_new_name = os.stat(name, dir_fd=folder, follow_symlinks=False).st_nlink > copied.links
    except FileNotFoundError:
        return _restore(folder, name, copied, "it was removed") if copied.base else []
    except OSError:  # whatever it is: git may read what we cannot
        kept = move_aside(name, folder)
        return _restore(folder, name, copied, f"it is a link, too large or unreadable, and {kept} now")
    if found == copied.base and not has_new_name:
        return []
    try:
        result = taken_back(_text(copied.base), _text(found), lambda path: is_outside(path, view))
    except ValueError:
        return _restore(folder, name, copied, "it has errors")
    if result.text is not None or has_new_name:  # by which a later session could write it
        _put(folder, name, found if result.text is None else _data(result.text), copied.mode)
    shown = single_line(short(copied.path))
    return [*_taken_lines(shown, result.refused), *_moved_lines(shown, result)]


def _restore(folder: int, name: str, copied: Copied, why: str) -> list[str]:
    _put(folder, name, copied.base, copied.mode)
    return _taken_lines(single_line(short(copied.path)), (why,))


def _put(folder: int, name: str, content: bytes, mode: int) -> None:
    make_writable(folder)
    draft = f"{name}{ASIDE}-{os.urandom(8).hex()}"
    write_new(draft, content, mode, folder)
    try:
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(draft, dir_fd=folder)
        raise


def _take_over(folder: int, name: str, copied: Copied, view: ProjectView, git: GitFiles) -> list[str]:
    """Give the host's file what is harmless of the session's copy."""
    shown = single_line(short(copied.path))
    try:
        mine = read_file(copied.copy)
    except OSError:  # the session removed its copy, or made none
        return []
    if mine == copied.base:
        return []
    try:
        merged = _merge(folder, name, copied, mine, view, git)
    except ValueError:
        return [f"{shown} or the session's copy of it has errors, so it stays as it is"]
    except FileExistsError:
        return [f"{shown}.lock exists, so the session's changes of {shown} are lost; remove it if no git runs there"]
    return [*_refused_lines(shown, merged), *_moved_lines(shown, merged)]


def _merge(folder: int, name: str, copied: Copied, mine: bytes, view: ProjectView, git: GitFiles) -> Merged:
    """Merge while git's own lock is held, so that no change of the host is lost."""
    lock = f"{name}.lock"
    make_writable(folder)
    while True:  # another session may end too
        try:
            os.close(os.open(lock, NEW, copied.mode, dir_fd=folder))
            break
        except FileExistsError:
            git.waits += 1
            if git.waits >= MAX_WAITS:  # for all files together: a command may leave a lock beside each
                raise
            time.sleep(PAUSE)
    try:
        theirs = _text(read_file(name, folder))
        merged = merge(_text(copied.base), _text(mine), theirs, lambda path: is_outside(path, view))
        if merged.text is not None:
            _put(folder, name, _data(merged.text), copied.mode)
        return merged
    finally:
        os.unlink(lock, dir_fd=folder)


def is_outside(path: str, view: ProjectView) -> bool:
    """Whether the session could not write a path."""
    shown = view.root.shown_entry(os.path.realpath(path))
    return shown is None or not shown.writable


# What the user is told


def _taken_lines(shown: str, what: tuple[str, ...]) -> list[str]:
    if not what:
        return []
    return [
        f"{shown} was changed while the session could write it: {_few(what)};"
        " that is taken back, set it again if it was you"
    ]


def _refused_lines(shown: str, merged: Merged) -> list[str]:
    if not merged.refused:
        return []
    return [
        f"{shown} does not get these settings of the session: {_few(merged.refused)};"
        " set those you want with `git config` here"
    ]


def _moved_lines(shown: str, merged: Merged) -> list[str]:
    return [f"{shown} has new URLs now: {_few(merged.moved)}; check them before you push"] if merged.moved else []


def _lost_worktrees(git: GitFiles) -> list[str]:
    """Those that the session made where it had a folder of its own, not the host's."""
    lost = []
    for folder, known in git.worktrees:
        for name in set(names_in(folder)).difference(known):
            place = one_line(f"{folder}/{name}/gitdir", "")
            if place is not None and not os.path.lexists(os.path.join(folder, name, place)):
                lost.append(os.path.dirname(os.path.join(folder, name, place)))
    if not lost:
        return []
    what = _few(short(path) for path in lost)
    return [
        f"worktree {what} is not on the host, as that folder is the session's own; make it in the project, or make its"
        " folder first and open that with --allow-write; `git worktree prune` forgets it"
    ]


# What stood for something missing


def _clean_up(git: GitFiles) -> None:
    """Remove what only stood for something missing, unless another session needs it."""
    try:
        turn = git.folders.git_turn()
        try:
            for folder, lock in git.held.items():
                if is_last(lock):
                    _remove_placeholders(git, folder)
        finally:
            os.close(turn)
    except OSError:  # the state home is gone; placeholders mean nothing, and the next session removes them
        pass
    if git.copied:
        try:
            remove_tree(os.path.dirname(git.copied[0].copy))
        except (OSError, RecursionError):  # the next session tries again
            pass


def _remove_placeholders(git: GitFiles, folder: str) -> None:
    own = [each.path for each in git.copied if each.path.startswith(f"{folder}/") and not each.base]
    for path in (*own, f"{folder}/commondir", f"{folder}/hooks"):
        if path in git.made or path.endswith(("/commondir", "/config.worktree")):
            _remove(path)


def _remove(path: str) -> None:
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


def _data(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _few(names: Iterable[str]) -> str:
    return few(single_line(name)[:200] for name in names)
