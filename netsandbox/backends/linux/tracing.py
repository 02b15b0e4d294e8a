"""Whether the kernel lets a process look into another one, by which trapped calls are served: their sockets are copied,
and their arguments read from memory."""

from __future__ import annotations

from netsandbox.errors import HostError

PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"  # Documentation/admin-guide/LSM/Yama.rst
NOBODY = "3"


def ptrace_scope() -> str:
    """The kernel's setting; empty where it has none."""
    try:
        with open(PTRACE_SCOPE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def check_tracing() -> None:
    """An error if not even root may: every call of the command would be refused. It stays so until the next boot."""
    if ptrace_scope() == NOBODY:
        raise HostError(
            "kernel.yama.ptrace_scope=3 lets no process look into another one, which sessions need; set it to 1 for the"
            " next boot and start again"
        )
