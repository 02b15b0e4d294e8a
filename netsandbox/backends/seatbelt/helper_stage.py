"""The program that sandbox-exec starts inside the profile, if our own helper cannot run.

    python -I -S -E -B helper_stage.py PORT CMD [ARG…]

It does what `native/` does from the self-test on, with the same report: it tests whether the kernel enforces the
profile, closes every descriptor but the standard ones, writes `+` and becomes CMD; or writes `step NUL errno NUL
detail` and exits. CMD is never executed without the profile (INV-1). It imports only built-in modules and `_socket`,
nothing of ours: all of it runs with the command's rights.
"""

from __future__ import annotations

import _signal
import _socket
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PLAN, REPORT, ERROR = 3, 4, 5  # as in apply.h; ERROR: the command's standard error, while 2 takes sandbox-exec's output
CONFINED = b"+"
FORBIDDEN = (errno.EPERM, errno.EACCES)
MAX_DESCRIPTOR = 65536
SEARCHED = b"/usr/bin:/bin"  # if PATH is not set


class Failed(Exception):
    """A step that failed: its name, the errno, and a detail."""


def main(words: list[str]) -> NoReturn:
    try:
        os.dup2(ERROR, 2)
        port, command = _arguments(words)
        environment = _environment(_read_all(PLAN))
        _settle()
        prove_confined(port)
        os.write(REPORT, CONFINED)
        _execute(command, environment)
    except Failed as failed:
        step, number, detail = failed.args
    except OSError as error:
        step, number, detail = "stage", error.errno or 0, ""
    os.write(REPORT, b"%s\0%d\0%s" % (step.encode(), number, detail.encode()))
    os._exit(125)


def _arguments(words: list[str]) -> tuple[int, list[bytes]]:
    if len(words) < 2 or not (words[0].isascii() and words[0].isdigit()) or not 0 < int(words[0]) < 65536:
        raise Failed("arguments", errno.EINVAL, "")
    return int(words[0]), [os.fsencode(word) for word in words[1:]]


def _read_all(fd: int) -> bytes:
    data = b""
    while piece := os.read(fd, 1 << 16):
        data += piece
    return data


def _environment(plan: bytes) -> dict[bytes, bytes]:
    """The variables, after the profile, which is applied already. A truncated plan: the supervisor has exited."""
    if not plan.endswith(b"\0"):
        raise Failed("plan", errno.EPIPE, "")
    return dict(entry.split(b"=", 1) for entry in plan.split(b"\0")[1:-1])


def _settle() -> None:
    """Restore the signals as before Python, and close every descriptor that leads past the profile."""
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    os.close(PLAN)
    _close_from(ERROR)
    os.set_inheritable(REPORT, False)  # noqa: FBT003 (the library's signature)


def _close_from(first: int) -> None:
    """As in apply.c: the limit may be lower now than when a descriptor was opened."""
    limit = os.sysconf("SC_OPEN_MAX")
    limit = limit if 0 < limit < MAX_DESCRIPTOR else MAX_DESCRIPTOR
    os.closerange(first, limit)
    try:
        left = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        os.closerange(limit, MAX_DESCRIPTOR)
        return
    for number in left:
        if number >= limit:
            os.closerange(number, number + 1)


def prove_confined(port: int) -> None:
    """Verify the profile: the kernel must forbid *port* of localhost, where nothing listens, not just refuse it."""
    _expect_forbidden(_attempt(_socket.AF_INET, "127.0.0.1", port), "TCP to 127.0.0.1")
    number = _attempt(_socket.AF_INET6, "::1", port)
    if number != errno.EAFNOSUPPORT:  # without IPv6 there is no way out through it
        _expect_forbidden(number, "TCP to ::1")


def _attempt(family: int, address: str, port: int) -> int:
    try:
        sock = _socket.socket(family, _socket.SOCK_STREAM)
    except OSError as error:
        return error.errno or 0
    try:
        return sock.connect_ex((address, port))
    finally:
        sock.close()


def _expect_forbidden(number: int, what: str) -> None:
    if number not in FORBIDDEN:
        raise Failed("self-test", number, what)


def _execute(command: list[bytes], environment: dict[bytes, bytes]) -> NoReturn:
    """Execute as execvp(3) does: search PATH, and run a file that the kernel cannot execute with the shell."""
    name, number, denied = command[0], errno.ENOENT, False
    folders = [b""] if b"/" in name else environment.get(b"PATH", SEARCHED).split(b":")
    for folder in folders:
        path = os.path.join(folder, name) if folder else name
        try:
            os.execve(path, command, environment)  # noqa: S606 (it is what we are for)
        except OSError as error:
            number = error.errno or errno.EIO
        if number == errno.ENOEXEC:
            os.execve(b"/bin/sh", [b"/bin/sh", path, *command[1:]], environment)  # noqa: S606
        if number not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            raise Failed("exec", number, "")
        denied = denied or number == errno.EACCES
    raise Failed("exec", errno.EACCES if denied else number, "")


if __name__ == "__main__":
    main(sys.argv[1:])
