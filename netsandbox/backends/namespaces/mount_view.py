"""What a session sees of this host's files: the paths for `plan.View`, found on the disk."""

from __future__ import annotations

import os

from netsandbox.backends.namespaces.launch import NETWORK_FILES
from netsandbox.backends.namespaces.plan import View
from netsandbox.paths import user_can_change
from netsandbox.policy.file_rules import outermost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.linux.file_view import FileView
    from netsandbox.runtime.protection import OwnPaths


def session_view(
    own: OwnPaths,
    covers: tuple[tuple[str, str], ...] = (),
    rules: FileView | None = None,
    overlay: tuple[str, str] | None = None,
    closed: str = "",
) -> View:
    """*own* are the paths of netsandbox. In each pair of *covers*, the first file appears at the second path (INV-8).
    *rules* are the user's, *overlay* a folder with mount options, *closed* the file that covers hidden files.

    The folders on the way cannot be moved, and the links on the way cannot be replaced: otherwise a forged log could
    appear where the true one is expected (attack 149).
    """
    read_only = (*own.read_only, *(rules.read_only if rules else ()))
    hidden = list(outermost(map(os.path.realpath, own.hidden)))
    files = rules.files if rules else ()
    links = _links(rules.links if rules else (), *own.hidden, *read_only)
    hidden += rules.folders if rules else ()
    return View(
        uid=os.geteuid(),
        gid=os.getegid(),
        files=(
            *NETWORK_FILES,
            *covers,
            *(("/dev/null", path) for path in (rules.disks if rules else ())),
        ),
        hidden=tuple(hidden),
        read_only=read_only,
        pinned=_folders_above(*hidden, *files, *read_only, links=links),
        links=links,
        overlay=overlay,
        covered=tuple((closed, path) for path in files),
        writable=rules.writable if rules else None,
    )


def _links(known: tuple[str, ...], *paths: str) -> tuple[str, ...]:
    """The *known* links and those on the way to *paths* that the user could replace."""
    found = dict.fromkeys(known)
    for path in map(os.path.abspath, paths):
        if os.path.realpath(path) != path:
            from netsandbox.runtime.links import links_on  # most launches have no link

            found.update(dict.fromkeys(links_on(path)))
    return tuple(link for link in found if user_can_change(os.path.dirname(link)))


def _folders_above(*paths: str, links: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Folders above *paths* and *links* that the user could move, outer folders first. If one were moved, the next
    session would not find the paths that it must hide or protect.
    """
    movable: dict[str, bool] = {}
    for lowest in (*(os.path.dirname(os.path.realpath(path)) for path in paths), *map(os.path.dirname, links)):
        folder = lowest
        while folder != "/" and folder not in movable:
            above = os.path.dirname(folder)
            movable[folder] = user_can_change(above)
            folder = above
    return tuple(sorted((folder for folder, moves in movable.items() if moves), key=len))
