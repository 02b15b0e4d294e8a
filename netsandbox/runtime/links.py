"""The symbolic links that a path goes through.

A command that may write to the folder of a link can make it lead elsewhere, for the next session too.
"""

from __future__ import annotations

import os

from netsandbox.errors import HostError
from netsandbox.paths import PACKAGE, first_session, user_can_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINKS = 40  # as many as the kernel follows


class LinkLoop(HostError):
    """A path that the kernel does not follow either. `links` are those on it, each once."""

    def __init__(self, path: str, links: tuple[str, ...]) -> None:
        super().__init__(f"{path!a} leads through more than {MAX_LINKS} links; write where it leads to")
        self.links = links


def links_of_loop(path: str) -> tuple[str, ...]:
    """The links on a path that never ends, or did not a moment ago."""
    try:
        return links_on(path)
    except LinkLoop as error:
        return error.links


def links_to(path: str, real: str, is_same: Callable[[str, str], bool] = str.__eq__) -> tuple[str, ...]:
    """The links on the way to *path*; an error if they no longer lead to *real*, because a program exchanges them."""
    links, found = followed(path)
    if not is_same(found, real):
        raise HostError(f"{path!a} leads elsewhere each time it is looked at; end what changes it, and do this again")
    return links


def links_on(path: str) -> tuple[str, ...]:
    """Each link on the way to *path*, which is absolute, by the real path of its folder and its own name."""
    return followed(path)[0]


def made_later(origin: str, links: tuple[str, ...]) -> tuple[str, ...]:
    """Those of *links* that an earlier session may have created: this user can change them, and they are newer than the
    first session. A link on a path of a built-in profile counts as old, because the user cannot write that path in
    another way."""
    since = first_session()
    if since is None or origin.startswith(f"{PACKAGE}/"):
        return ()
    return tuple(link for link in links if user_can_change(os.path.dirname(link)) and _changed(link) >= since)


def _changed(link: str) -> int:
    """The time when the link was created or moved, which no program can set."""
    try:
        return os.lstat(link).st_ctime_ns
    except OSError as error:
        raise HostError(f"cannot look at {link!a}: {error.strerror}; do this again") from None


def followed(path: str) -> tuple[tuple[str, ...], str]:
    """The links on the way to *path*, and where they lead."""
    found: list[str] = []
    here, rest = "/", path.split("/")[::-1]
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        here = os.path.join(here, name)
        try:
            target = os.readlink(here)
        except OSError:  # no link, or nothing
            continue
        if len(found) == MAX_LINKS:
            raise LinkLoop(path, tuple(dict.fromkeys(found)))
        found.append(here)
        here = "/" if target.startswith("/") else os.path.dirname(here)
        rest += target.split("/")[::-1]
    return tuple(dict.fromkeys(found)), here
