"""Which symbolic links a path goes through: what leads to a place decides as much as the place itself.

A link lies in a folder, and whoever may write there can let it lead elsewhere, for the next session too.
"""

from __future__ import annotations

import os

from netsandbox.errors import HostError

MOST = 40  # as many as the kernel follows


def links_on(path: str) -> tuple[str, ...]:
    """Each link on the way to *path*, which is absolute, by the real path of its folder and its own name."""
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
        if len(found) == MOST:
            raise HostError(f"{path!a} leads through more than {MOST} links; write where it leads to")
        found.append(here)
        here = "/" if target.startswith("/") else os.path.dirname(here)
        rest += target.split("/")[::-1]
    return tuple(dict.fromkeys(found))
