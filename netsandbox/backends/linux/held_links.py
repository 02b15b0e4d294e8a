"""Links on the way to a protected path, covered by themselves: a command that replaces one leads the path elsewhere."""

from __future__ import annotations

import os

from netsandbox.runtime.links import links_of_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.linux.session_root import SessionRoot


def hold_links(root: SessionRoot, path: str, is_replaceable: Callable[[str], bool]) -> None:
    """Cover each link on the way to *path* that the command could replace."""
    for link in links_of_loop(path):
        if is_replaceable(link):
            root.pin_above(link)
            root.cover(os.readlink(link), link)
