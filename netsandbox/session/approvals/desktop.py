"""Tells the user's desktop that a session asks something: by notify-send, or by osascript on a Mac.

Rules kept here:
1. The program is one of the system. A search path may lead to folders that a session can write.
2. The command chose names in the text: they are printable ASCII, without markup, and an argument begins with our words.
3. Nothing waits for the program. While it runs, and for `PAUSE` seconds after its start, further questions start none:
   `netsandbox pending` lists them all.
"""

from __future__ import annotations

import os

from netsandbox.system import IS_MACOS
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PAUSE = 5.0  # seconds
MAX_TEXT = 300
NOTIFY_SEND = ("/usr/bin/notify-send", "/usr/local/bin/notify-send", "/run/current-system/sw/bin/notify-send")
OSASCRIPT = "/usr/bin/osascript"
TITLE = "netsandbox asks"
SCRIPT = f'on run argv\ndisplay notification (item 1 of argv) with title "{TITLE}"\nend run'
MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# What the program needs of the user's environment.
VARIABLES = (
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
    *("HOME", "USER", "LANG", "LC_ALL"),
)


def desktop_program(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The beginning of the command that notifies; empty where there is no desktop or no such program."""
    if IS_MACOS:
        is_remote = environment.get("SSH_CONNECTION")
        return () if is_remote or not os.access(OSASCRIPT, os.X_OK) else (OSASCRIPT, "-e", SCRIPT)
    if not environment.get("DISPLAY") and not environment.get("WAYLAND_DISPLAY"):
        return ()
    found = next((path for path in NOTIFY_SEND if os.access(path, os.X_OK)), None)
    return () if found is None else (found, "--app-name=netsandbox", "--", TITLE)


def open_desktop(clock: Callable[[], float]) -> Desktop | None:
    """None where there is no desktop."""
    program = desktop_program(os.environ)
    return Desktop(program, os.environ, clock) if program else None


class Desktop:
    """Starts *program* with a text behind it. *clock* gives seconds."""

    def __init__(self, program: Sequence[str], environment: Mapping[str, str], clock: Callable[[], float]) -> None:
        self._program = program
        self._environment = {name: environment[name] for name in VARIABLES if name in environment}
        self._clock = clock
        self._pid: int | None = None
        self._next = float("-inf")

    def notify(self, text: str) -> None:
        if self._is_running() or self._clock() < self._next:
            return
        self._next = self._clock() + PAUSE
        try:
            self._pid = self._spawn([*self._program, self._argument(text)])
        except OSError:  # the question is on standard error too
            self._pid = None

    def _argument(self, text: str) -> str:
        shown = printable(text, MAX_TEXT)
        if self._program[0] != OSASCRIPT:
            shown = "".join(MARKUP.get(char, char) for char in shown)
        return f"Question: {shown}"

    def _spawn(self, command: list[str]) -> int:
        """Without our descriptors, signals and process group: Ctrl-C at the session's terminal is not for it."""
        nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        return os.posix_spawn(
            command[0],
            command,
            self._environment,
            file_actions=nothing,
            setpgroup=0,
            setsigmask=(),
            setsigdef=(2, 13, 15),
        )

    def _is_running(self) -> bool:
        if self._pid is not None:
            try:
                if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                    return True
            except ChildProcessError:  # the kernel reaped it
                pass
            self._pid = None
        return False
