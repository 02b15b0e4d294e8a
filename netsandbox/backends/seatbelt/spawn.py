"""Starts a program that inherits nothing of ours: no variable, and only the given descriptors."""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SIGPIPE, SIGXFSZ = 13, 25  # CPython ignores these two signals; the command must not inherit that


def spawn(program: str, words: Sequence[str], descriptors: Sequence[int], *, leads_group: bool = False) -> int:
    """Run *program* with *descriptors* as 0, 1, 2 and so on. Returns its pid, which is its group's if it leads one."""
    # Copy the descriptors to higher numbers first: a source that is also a target would be overwritten before its turn.
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
