"""Starts a program that gets nothing of ours but what it is handed: no variable, and these descriptors."""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SIGPIPE, SIGXFSZ = 13, 25  # CPython ignores these two; the command must not inherit that


def spawn(program: str, words: Sequence[str], descriptors: Sequence[int], *, leads_group: bool = False) -> int:
    """*program* with *descriptors* as 0, 1, 2 and so on; its number, and its group's if it leads one."""
    # Copies out of the way first: a source that is itself one of the targets would be overwritten before its turn.
    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(descriptors)) for fd in descriptors]
    actions = [(os.POSIX_SPAWN_DUP2, source, number) for number, source in enumerate(sources)]
    group: dict[str, Any] = {"setpgroup": 0} if leads_group else {}
    try:
        return os.posix_spawn(
            program, [program, *words], {}, file_actions=actions, setsigmask=[], setsigdef=[SIGPIPE, SIGXFSZ], **group
        )
    finally:
        for source in sources:
            os.close(source)
