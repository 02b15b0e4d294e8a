"""The private home where nothing can be mounted: HOME names it, and links in it lead to what is shown of the real one.

Earlier sessions leave what they like in that home. So no link is followed on the way, a link or file where one of ours
belongs is replaced, and start files of shells are removed: a shell would run what an earlier session left. A folder
with something in it stays.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.private_folders import FOLDER, open_folder
from netsandbox.policy.shown_files import SHELL_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.linux.project_view import ProjectView


def link_home(view: ProjectView) -> None:
    """Make the links, which are removed when the last session of the project has ended."""
    links = home_links(view)
    top = open_folder(view.folders.home)
    try:
        for name in SHELL_FILES:
            _clear(top, name)
        for path, target in links.items():
            _link(top, path.split("/"), target)
    finally:
        os.close(top)
    if links:
        view.folders.clean_later(links)


def home_links(view: ProjectView) -> dict[str, str]:
    """Names below the private home and where they lead: what is shown of the real home, and caches."""
    start = f"{view.home}/"
    found = {}
    for path, entry in view.root.entries.items():
        held = view.root.holder(path)
        if path.startswith(start) and held is not None and held[0] == view.home:
            if entry.kind == "cache" or (entry.upper == "ours" and entry.writable):
                found[path[len(start) :]] = entry.upper if entry.kind == "cache" else entry.source
            elif path in view.settings:
                found[path[len(start) :]] = entry.source
            elif entry.kind == "link" or (entry.kind == "show" and entry.upper != "ours"):
                found[path[len(start) :]] = path
    return found


def _link(top: int, names: list[str], target: str) -> None:
    here = os.dup(top)
    try:
        for name in names[:-1]:
            above, here = here, _folder(name, here)
            os.close(above)
        if _clear(here, names[-1]):
            os.symlink(target, names[-1], dir_fd=here)
    except OSError:  # another session of the project made something there; the real path can be used
        pass
    finally:
        os.close(here)


def _folder(name: str, above: int) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=above)
    except OSError:
        if not _clear(above, name):
            raise
    os.mkdir(name, 0o700, dir_fd=above)
    return os.open(name, FOLDER, dir_fd=above)


def _clear(above: int, name: str) -> bool:
    """Whether nothing is at *name* any more."""
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            os.rmdir(name, dir_fd=above)
        else:
            os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        pass
    except OSError:  # a folder that is not empty
        return False
    return True
