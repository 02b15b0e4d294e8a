"""How a test starts a command as a session of a Mac does: by the helper."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from netsandbox.backends.seatbelt.helper_process import HelperProcess

PROFILE = "(version 1)\n(deny default)\n"
ENVIRONMENT = {b"PATH": b"/usr/bin:/bin"}
Start = Callable[..., Any]


def starting(kind: type[HelperProcess], program: str, folder: Path, closed_port: int) -> Start:
    """start(*command, profile=, environment=, program=); what it writes is in `out` and `err` of *folder*."""

    def start(
        *command: str,
        profile: str = PROFILE,
        environment: dict[bytes, bytes] = ENVIRONMENT,
        program: str = program,
        limits: Sequence[tuple[int, int]] = (),
    ) -> HelperProcess:
        with open(os.devnull) as nothing, open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
            stdio = (nothing.fileno(), out.fileno(), err.fileno())
            return kind(program, command, profile, environment, stdio, closed_port=closed_port, limits=limits)

    return start


def supervising(kind: type[HelperProcess], program: str, command: Sequence[str]) -> dict[str, Any]:
    """For subprocess: a Python that starts *command* in this way, with its own standard descriptors, and waits."""
    text = f"""
import socket
from {kind.__module__} import {kind.__name__}
held = socket.socket(); held.bind(("127.0.0.1", 0))
words = ({program!r}, {list(command)!r}, {PROFILE!r}, {ENVIRONMENT!r}, (0, 1, 2))
{kind.__name__}(*words, closed_port=held.getsockname()[1]).wait()
"""
    return {"args": [sys.executable, "-c", text], "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}}
