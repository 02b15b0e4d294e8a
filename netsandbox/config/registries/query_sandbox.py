"""A session of its own for a tool that is asked: whoever can write to the user's PATH, or to what a tool loads, could
otherwise run programs outside of every session by letting us ask them.

It is offline, with no configuration, no profile and no published port; secrets are hidden as always. It works in a new,
empty folder, which must be as empty afterwards: another session may see it and leave settings there. The home is none,
so that no settings of the user answer in the tool's place (on a Mac it is the user's, where sessions write no settings
and the profile is made for it). The log goes with the folder. Where no session can be made, nothing is run (INV-1).
"""

from __future__ import annotations

import os
import sys

from netsandbox.config.registries import tool_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from types import TracebackType

GRACE = 2.0  # for a session to end by itself
# Nothing can be made in the kernel's folder. Tools take it that a home is missing; below a file yarn and pdm fail, and
# below /proc npm tries for ever to make one.
_NO_HOME = "/sys/none" if os.path.isdir("/sys/kernel") else "/dev/null"
# Our packages may be a checkout that only PYTHONPATH names, which an isolated interpreter does not read.
_PROGRAM = """\
import sys
sys.path[:0] = [folder for folder in sys.argv.pop(1).split(":") if folder not in sys.path]
from netsandbox.config.registries.sandboxed_query import main
main()
"""


class QuerySandbox:
    """Used once. `port`: that of this machine which the tool may reach."""

    def __init__(self, port: int | None = None) -> None:
        self._port = port
        self._base = ""
        self._began = 0

    def __enter__(self) -> QuerySandbox:
        from tempfile import mkdtemp

        self._base = mkdtemp(prefix="netsandbox-")
        os.mkdir(self._folder, 0o700)
        self._began = os.stat(self._folder).st_ctime_ns
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from shutil import rmtree

        rmtree(self._base, ignore_errors=True)

    @property
    def _folder(self) -> str:
        return os.path.join(self._base, "work")

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], home: str
    ) -> subprocess.Popen[bytes] | None:
        """The session around *command*, whose variables are *environment*; ours are those of any session."""
        from netsandbox.paths import packages

        folders = ":".join(dict.fromkeys(os.path.dirname(path) for path in packages()))
        log = os.path.join(self._base, "audit.jsonl")
        ours = [sys.executable, "-I", "-B", "-c", _PROGRAM, folders, log, str(self._port or "")]
        seen = {**environment, "HOME": home if sys.platform == "darwin" else _NO_HOME}
        told = "\0".join(f"{name}={value}" for name, value in seen.items())
        question = told.encode("utf-8", "surrogateescape")
        return tool_process.start([*ours, *command], os.environ, question, self._folder)

    def untouched(self) -> bool:
        """Whether nobody left anything in the folder, not even for a moment."""
        try:
            return os.stat(self._folder).st_ctime_ns == self._began
        except OSError:
            return False


def ask(
    command: Sequence[str], environment: Mapping[str, str], home: str, *, patience: float = tool_process.PATIENCE
) -> bytes | None:
    """What *command* prints in a session of its own; None if it fails, says too much or takes too long."""
    try:
        with QuerySandbox() as enclosure:
            process = enclosure.start(command, environment, home)
            said = None if process is None else tool_process.answer(process, patience, GRACE)
            return said if enclosure.untouched() else None
    except OSError:  # no temporary folder
        return None
