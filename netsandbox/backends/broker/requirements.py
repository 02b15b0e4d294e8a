"""What the broker backend needs of this machine, as far as files of the kernel show it.

Each function reads a file or two and returns a reason, in one line that ends with what to do; None if nothing is wrong.
Nothing is tried, so the list can be read before a session, or to explain one that could not be set up. What no file
shows, such as the version of Landlock, is left to the helper and to `netsandbox doctor`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_KERNEL = (5, 14)  # SECCOMP_ADDFD_FLAG_SEND
LEAST_LANDLOCK = 1  # Linux 5.13
NETWORK_LANDLOCK = 4  # rights to bind and to connect TCP sockets, Linux 6.7
SIGNAL_LANDLOCK = 6  # signals end at the session's border, Linux 6.12
YAMA_CAPABLE, YAMA_CLOSED = 2, 3  # kernel.yama.ptrace_scope: attaching needs CAP_SYS_PTRACE; is impossible
CAP_SYS_PTRACE = 1 << 19
FILTERED = "2"  # of `Seccomp:` in /proc/self/status
DEVICES = ("all", "lo")
LOOPBACK = "loopback"


def missing(root: str = "/") -> list[str]:
    """The reasons why no session of this backend can run here; none if nothing was found. *root* is for tests. Routes
    of the loopback are no reason where Landlock has rules for TCP, which only the helper finds out."""
    return [reason for name, look in LOOKS.items() if name != LOOPBACK and (reason := look(root)) is not None]


def kernel(root: str) -> str | None:
    release = read_file(root, "proc/sys/kernel/osrelease") or os.uname().release
    numbers = tuple(int(part) for part in release.partition("-")[0].split(".")[:2] if part.isdigit())
    return (
        None if numbers >= LEAST_KERNEL else f"Linux {release} cannot pass sockets to a caller; use Linux 5.14 or newer"
    )


def notification(root: str) -> str | None:
    actions = read_file(root, "proc/sys/kernel/seccomp/actions_avail")
    if actions is None or "user_notif" in actions.split():
        return None
    return "the kernel has no seccomp notification; use one with CONFIG_SECCOMP_FILTER, Linux 5.14 or newer"


def landlock(root: str) -> str | None:
    """The list of modules cannot be read in most containers; then the helper finds out."""
    modules = read_file(root, "sys/kernel/security/lsm")
    if not modules or "landlock" in modules.split(","):
        return None
    return f"Landlock is not among the kernel's security modules; start the kernel with lsm=landlock,{modules}"


def memory(root: str) -> str | None:
    """The broker reads the addresses of calls from the caller's memory, as a debugger does."""
    text = read_file(root, "proc/sys/kernel/yama/ptrace_scope") or "0"
    scope = int(text) if text.isdigit() else 0
    if scope < YAMA_CAPABLE or (scope < YAMA_CLOSED and _has_capability(root)):
        return None
    setting = f"kernel.yama.ptrace_scope={scope} lets nobody read the memory of a process"
    if scope >= YAMA_CLOSED:
        return f"{setting}, and cannot be changed; set it to 1 in /etc/sysctl.d and reboot"
    return f"{setting} without CAP_SYS_PTRACE; as root run `sysctl -w kernel.yama.ptrace_scope=1`"


def loopback(root: str) -> str | None:
    """The session's sockets are bound to addresses of 127.0.0.0/8, which the kernel routes to no other device."""
    routed = [name for name in DEVICES if _is_routed(root, name)]
    if not routed:
        return None
    names = " and ".join(f"net.ipv4.conf.{name}.route_localnet" for name in routed)
    wanted = " ".join(f"net.ipv4.conf.{name}.route_localnet=0" for name in routed)
    return f"{names} is 1, so addresses of the loopback can leave the machine; as root run `sysctl -w {wanted}`"


def routed_devices(root: str = "/") -> list[str]:
    """Other devices by which addresses of the loopback can leave the machine: a backstop less, no reason to refuse."""
    try:
        names = os.listdir(os.path.join(root, "proc/sys/net/ipv4/conf"))
    except OSError:
        return []
    return [name for name in sorted(names) if name not in DEVICES and _is_routed(root, name)]


def enclosing(root: str) -> str | None:
    """A process has one listener for its trapped calls at most, and each session of netsandbox has one."""
    if "NETSANDBOX_SESSION" not in os.environ or _status(root, "Seccomp:") != FILTERED:
        return None
    return "this is a session of netsandbox already, whose calls are trapped; run netsandbox outside of it"


LOOKS: dict[str, Callable[[str], str | None]] = {
    "kernel": kernel,
    "seccomp": notification,
    "Landlock": landlock,
    "Yama": memory,
    LOOPBACK: loopback,
    "other sandbox": enclosing,
}


def _is_routed(root: str, device: str) -> bool:
    return read_file(root, f"proc/sys/net/ipv4/conf/{device}/route_localnet") == "1"


def _has_capability(root: str) -> bool:
    return bool(int(_status(root, "CapEff:") or "0", 16) & CAP_SYS_PTRACE)


def _status(root: str, name: str) -> str:
    for line in (read_file(root, "proc/self/status") or "").splitlines():
        if line.startswith(name):
            return line[len(name) :].strip()
    return ""


def read_file(root: str, name: str) -> str | None:
    try:
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None
