"""After a session in the mode `project`: what of its changes the host takes over, and what its user must know. Before
it: what of the project cannot be protected.

`git_results` and `new_repositories` have what concerns repositories.
"""

from __future__ import annotations

import os

from netsandbox.backends.linux.git_copies import unlock
from netsandbox.backends.linux.git_results import is_outside, settle
from netsandbox.paths import short
from netsandbox.runtime.project import MAX_DEEPER, deeper_folders, new_repositories
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.linux.project_view import ProjectView

MAX_LOCKED = 4  # folders without rights, one in another
MAX_SEARCHED = 20_000  # changed folders of the project in which new repositories are looked for


def finish(view: ProjectView) -> list[str]:
    """Take away, merge, clean up, and return the lines for the user."""
    held = _held_lines(view)
    lines = settle(view, view.git) if view.git is not None else []
    if view.agents:
        from netsandbox.backends.linux.agent_files import take_over  # loaded before the command ran

        for file in view.agents:
            lines += take_over(file, view.project.folder if view.project else view.home)
    if view.expected:
        from netsandbox.backends.linux.agent_files import give_new

        for path, inside in view.expected:
            lines += give_new(path, inside)
    return [*held, *lines, *_new_lines(view)]


def _held_lines(view: ProjectView) -> list[str]:
    from netsandbox.backends.linux.held_names import hold_back

    return hold_back(view.missing, view.folders.state)


def _new_lines(view: ProjectView) -> list[str]:
    if view.project is None or not view.repositories.seen:  # the launch ended before the command ran
        return []
    from netsandbox.backends.linux.new_repositories import NewRepositories

    top = view.project.folder
    names = [name for name in view.absent if os.path.lexists(f"{top}/{name}")]
    deeper = deeper_folders(view.folders.repositories)
    search = new_repositories(view.repositories, view.since, MAX_SEARCHED, deeper)
    for _ in range(MAX_LOCKED):  # a folder may be closed, and others in it
        if not unlocked(search.found):
            break
        search = new_repositories(view.repositories, view.since, MAX_SEARCHED, deeper)
    lines = NewRepositories(view, lambda path: is_outside(path, view)).settle(search.found)
    names += [path[len(top) + 1 :] for path in search.found if os.path.lexists(path)]
    if view.git is not None:
        names += [path.removeprefix(f"{top}/") for path in view.git.absent if os.path.lexists(path)]
    if names:
        what = _few(dict.fromkeys(names))
        lines.append(f"new in the project: {what}; programs of the host obey or run these, so look at them first")
    if not search.is_whole:
        lines.append(f"more than {MAX_SEARCHED} folders are new in the project; there may be repositories in them")
    return lines


def unlocked(paths: Iterable[str]) -> bool:
    done = False
    for path in paths:
        try:
            done |= unlock(path)
        except OSError:  # what is found then is moved aside
            continue
    return done


def unprotected_lines(view: ProjectView, *, verbose: bool) -> list[str]:
    """For the start of a session, with those of the view. That folders are read-only which the user cannot read is said
    if *verbose*."""
    closed, unprotected = (view.git.closed, view.git.unprotected) if view.git else ([], [])
    locked = [path for path in closed if not os.access(path, os.R_OK | os.X_OK)]
    lines = [*view.lines]
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


def _few(names: Iterable[str]) -> str:
    return few(single_line(name)[:200] for name in names)
