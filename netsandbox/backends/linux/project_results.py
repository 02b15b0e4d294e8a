"""After a session in the mode `project`: what of its changes the host takes over, and what its user must know. Before
it: what of the project cannot be protected.

The session has ended, so nothing of it can move a file meanwhile. Other programs can: folders are opened name by name
without following links, and a configuration file is written as git does, by a lock that replaces it.
"""

from __future__ import annotations

import os
import time

from netsandbox.backends.linux.git_copies import DRAFT, SAME_FOLDER, identity, read_file
from netsandbox.backends.linux.private_folders import is_last, open_folder, remove_tree
from netsandbox.paths import short
from netsandbox.runtime.private_file import NEW, write_new
from netsandbox.runtime.project import MAX_DEEPER, deeper_folders, new_repositories, one_line
from netsandbox.runtime.real_paths import names_in
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.linux.git_copies import Copied
    from netsandbox.backends.linux.git_files import GitFiles
    from netsandbox.backends.linux.project_view import ProjectView
    from netsandbox.policy.git_merge import Merged

MAX_WAITS, PAUSE = 20, 0.05  # seconds; the host's git pauses for less between two changes
SETTLING = 6  # pauses; more than another session takes for its copy
MAX_PACKAGES = 16  # installed ones that are looked at
INSTALLED = {".venv": "__init__.py", "node_modules": "package.json"}  # folders of packages, and a file of each
OWN_STORE = ".pnpm-store"  # in node_modules: where `npx pnpm` keeps what it links, since it cannot write elsewhere
MAX_LINES = 8  # about configuration files
MAX_LOCKED = 4  # folders without rights, one in another
MAX_SEARCHED = 20_000  # changed folders of the project in which new repositories are looked for


def finish(view: ProjectView) -> list[str]:
    """Merge, clean up, and return the lines for the user."""
    lines: list[str] = []
    if view.git is not None:
        for copied in view.git.copied:
            lines += _settle(copied, view, view.git)
        lines.sort(key=lambda line: "has new URLs" not in line and "is taken back" not in line)  # never left out
        if len(lines) > MAX_LINES:
            lines[MAX_LINES:] = [f"{len(lines) - MAX_LINES} more lines about configuration files of git are left out"]
        lines += _lost_worktrees(view.git)
        _clean_up(view.git)
    made = [short(path) for path in view.forbidden if os.path.lexists(path)]
    if made:
        lines.append(f"new despite deny_write: {_few(made)}; programs of the host obey or run these, so look first")
    if view.agents:
        from netsandbox.backends.linux.agent_files import take_over  # loaded before the command ran

        for file in view.agents:
            lines += take_over(file, view.project.folder if view.project else view.home)
    return [*lines, *_new_lines(view), *_shared_lines(view)]


def repair(view: ProjectView) -> list[str]:
    """Look at the configuration files after a cover was off. The session is stopped until this returns.

    The session may have opened, mapped or linked the file that the host put there, so a copy takes its place, which
    takes the covers away once more. It may also have put a file of its own there, and nobody can tell whose change it
    is. So a setting that could run a program gets its old value again, and the user sets it after the session."""
    lines: list[str] = []
    for copied in view.git.copied if view.git is not None else ():
        try:
            if not copied.is_own():
                folder = open_folder(os.path.dirname(copied.path))
                try:
                    lines += _take_back(folder, copied, view) or _replace_by_copy(folder, copied, view)
                finally:
                    os.close(folder)
        except OSError:  # the host removed it, and is about to write it anew, or removes the repository
            continue
    return lines


def _settle(copied: Copied, view: ProjectView, git: GitFiles) -> list[str]:
    """Look at a configuration file after the session, and give it what the host takes over of the copy."""
    try:
        folder = git.open(os.path.dirname(copied.path))
    except OSError:
        return []
    try:
        return [*_last_look(folder, copied, view), *_merge_back(folder, copied, view)]
    finally:
        os.close(folder)


def _last_look(folder: int, copied: Copied, view: ProjectView) -> list[str]:
    try:
        lines = _take_back(folder, copied, view)
        if not lines and not copied.is_own() and os.lstat(copied.path).st_nlink > 1:  # for the next session
            _put(folder, copied, read_file(os.path.basename(copied.path), folder))
        return lines
    except OSError:  # the host removed it
        return []


def _take_back(folder: int, copied: Copied, view: ProjectView) -> list[str]:
    """Of the changes of the host's file, keep those that run nothing. git's lock is not asked: the session may hold
    it."""
    found = read_file(os.path.basename(copied.path), folder)
    names = _dangerous(copied.known, found, view)
    if not names:
        return []
    from netsandbox.policy.git_merge import merge

    before = _text(copied.known)
    try:
        after = merge(before, _text(found), before, lambda path: False).text or before
    except ValueError:
        after = before
    _put(folder, copied, _data(after))
    return [
        f"{single_line(short(copied.path))} was changed while the session could write it: {_few(names)};"
        " that is taken back, set it again after the session if it was you"
    ]


def _dangerous(before: bytes, after: bytes, view: ProjectView) -> list[str]:
    """The settings with new values that could run a program, and URLs that are gone: git takes the name of an unknown
    remote for a path, which the session may have made."""
    if before == after:
        return []
    from netsandbox.policy.git_merge import changed, is_harmless, is_url, merge

    old, new = _text(before), _text(after)
    try:
        refused = merge(old, new, old, lambda path: _is_outside(path, view)).refused
        settings = changed(old, new)
    except ValueError:
        return ["it has errors"]
    return [name for name in refused if (settings[name] or is_url(name)) and not is_harmless(name)]


def _is_outside(path: str, view: ProjectView) -> bool:
    shown = view.root.shown_entry(os.path.realpath(path))
    return shown is None or not shown.writable


def _replace_by_copy(folder: int, copied: Copied, view: ProjectView) -> list[str]:
    """Put a copy in the place of the file when the host's git, which often changes several settings, is done."""
    name = os.path.basename(copied.path)
    before, first = None, os.lstat(copied.path).st_ino
    for _ in range(MAX_WAITS):
        state = os.lstat(copied.path)
        is_locked = os.access(f"{name}.lock", os.F_OK, dir_fd=folder)
        if before == state.st_ino and not is_locked:
            break
        before = state.st_ino
        time.sleep(PAUSE)
    lines = _take_back(folder, copied, view)
    if lines:
        return lines
    theirs = copied.known = read_file(name, folder)
    if os.lstat(copied.path).st_ino != first and copied.adopts():
        return []
    _put(folder, copied, theirs)
    for _ in range(SETTLING):  # other sessions replace this copy by theirs, and this one must be stopped then
        time.sleep(PAUSE)
        if not copied.is_own() and copied.adopts():
            return _take_back(folder, copied, view)
    return []


def _put(folder: int, copied: Copied, content: bytes) -> None:
    """Put a file in the place of the host's. It is written among the hooks, where no session can open it before that,
    and keeps a second name there, by which other sessions know it (`Copied.adopts`)."""
    try:
        drafts = open_folder(copied.drafts)
        try:
            _put_from(drafts, folder, copied, content)
        finally:
            os.close(drafts)
    except OSError:  # a link, another disk, or not ours to write; what others do is then replaced
        _put_from(folder, folder, copied, content)


def _put_from(drafts: int, folder: int, copied: Copied, content: bytes) -> None:
    name = os.path.basename(copied.path)
    draft = f"{DRAFT}{os.urandom(8).hex()}"
    state = write_new(draft, content, copied.mode, drafts)
    try:
        if not os.path.samestat(os.fstat(drafts), os.fstat(folder)):
            os.link(draft, f"{DRAFT}{state.st_ino}", src_dir_fd=drafts, dst_dir_fd=drafts)
            copied.marks.append(f"{copied.drafts}/{DRAFT}{state.st_ino}")
        os.rename(draft, name, src_dir_fd=drafts, dst_dir_fd=folder)
    except OSError:
        os.unlink(draft, dir_fd=drafts)
        raise
    copied.own = identity(os.stat(name, dir_fd=folder, follow_symlinks=False))


def _merge_back(folder: int, copied: Copied, view: ProjectView) -> list[str]:
    name = single_line(short(copied.path))
    try:
        mine = read_file(copied.copy)
    except OSError:  # the session removed its copy, or made none
        return []
    try:
        return _result_lines(name, _write(folder, copied, mine, view)) if mine != copied.base else []
    except ValueError:
        return [f"{name} or the session's copy of it has errors, so it stays as it is"]
    except FileExistsError:
        return [f"{name}.lock exists, so the session's changes of {name} are lost; remove it if no git runs there"]
    except OSError as error:
        return [f"{name} could not be written ({error.strerror}), so the session's changes of it are lost"]


def _write(folder: int, copied: Copied, mine: bytes, view: ProjectView) -> Merged:
    """Merge while git's own lock is held, so that no change of the host is lost."""
    from netsandbox.policy.git_merge import merge

    name = os.path.basename(copied.path)
    lock = f"{name}.lock"
    assert view.git is not None
    while True:  # another session may end too
        try:
            os.close(os.open(lock, NEW, copied.mode, dir_fd=folder))
            break
        except FileExistsError:
            view.git.waits += 1
            if view.git.waits >= MAX_WAITS:  # for all files together: a command may leave a lock beside each
                raise
            time.sleep(PAUSE)
    try:
        theirs = read_file(name, folder)
        merged = merge(_text(copied.base), _text(mine), _text(theirs), lambda path: _is_outside(path, view))
        if merged.text is not None:
            _put(folder, copied, _data(merged.text))
        return merged
    finally:
        os.unlink(lock, dir_fd=folder)


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


def _clean_up(git: GitFiles) -> None:
    """Remove what only stood for something missing, unless another session needs it."""
    for path in [path for copied in git.copied for path in copied.marks]:
        _remove(path)
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
    """Remove a placeholder, or the second name of a file."""
    above, name = os.path.split(path)
    try:
        folder = open_folder(above)
    except OSError:
        return
    try:
        if name == "hooks":
            os.rmdir(name, dir_fd=folder)
        elif name.startswith(DRAFT) or read_file(name, folder) == (SAME_FOLDER if name == "commondir" else b""):
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
        if os.path.isdir(f"{top}/{OWN_STORE}"):
            continue
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
    from netsandbox.backends.linux.new_repositories import NewRepositories, unlock

    top = view.project.folder
    names = [name for name in view.absent if os.path.lexists(f"{top}/{name}")]
    deeper = deeper_folders(view.folders.repositories)
    search = new_repositories(view.repositories, view.since, MAX_SEARCHED, deeper)
    for _ in range(MAX_LOCKED):  # a folder may be closed, and others in it
        if not unlock(search.found):
            break
        search = new_repositories(view.repositories, view.since, MAX_SEARCHED, deeper)
    lines = NewRepositories(view, lambda path: _is_outside(path, view)).settle(search.found)
    names += [path[len(top) + 1 :] for path in search.found if os.path.lexists(path)]
    if view.git is not None:
        names += [path.removeprefix(f"{top}/") for path in view.git.absent if os.path.lexists(path)]
    if names:
        what = _few(dict.fromkeys(names))
        lines.append(f"new in the project: {what}; programs of the host obey or run these, so look at them first")
    if not search.is_whole:
        lines.append(f"more than {MAX_SEARCHED} folders are new in the project; there may be repositories in them")
    return lines


def unprotected_lines(view: ProjectView, *, verbose: bool) -> list[str]:
    """For the start of a session. That folders are read-only which the user cannot read is said if *verbose*."""
    closed, unprotected = (view.git.closed, view.git.unprotected) if view.git else ([], [])
    locked = [path for path in closed if not os.access(path, os.R_OK | os.X_OK)]
    lines = []
    if locked and verbose:
        them = "it" if len(locked) == 1 else "them"
        lines.append(f"{_few(map(short, locked))} cannot be read by you, so the session has {them} read-only")
    for paths, state in ([path for path in closed if path not in locked], "read-only"), (unprotected, "unprotected"):
        if paths:
            lines.append(f"too many repositories: {_few(map(short, paths))}; these are {state}, start in one of them")
    if not view.repositories.is_whole:
        lines.append(
            f"more than {MAX_DEEPER} folders: a repository deep in them may be unprotected; start in one of them"
        )
    return lines


def _data(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _few(names: Iterable[str]) -> str:
    return few(single_line(name)[:200] for name in names)
