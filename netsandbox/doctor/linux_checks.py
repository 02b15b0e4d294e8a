"""Checks of a Linux machine, each with the setting that is its remedy.

Kernel features are tried in a child process the way a session uses them, so the doctor's own process stays unchanged.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable

from netsandbox.backends.broker.requirements import SIGNAL_LANDLOCK
from netsandbox.backends.linux.cgroup import ADVICE, FILES, Cgroup, find_cgroup
from netsandbox.backends.linux.process_rules import is_exempt
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.diagnosis import explain_failure
from netsandbox.backends.namespaces.launch import HELPER
from netsandbox.doctor.check import MISSING, NOTE, OK, UNTRIED, Check, state_directory
from netsandbox.doctor.helper_trial import helper_failure
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.session.inspection import import_folders

NAMESPACES = ("user namespaces", "private /proc", "network namespace", "nftables tproxy")
LEAST_KERNEL = (5, 12)  # mount_setattr(2); everything else is older
NAME_SERVICES = "/etc/nsswitch.conf"
RESOLVES_LOCALHOST = ("myhostname", "resolve")  # nss-myhostname(8), nss-resolve(8); glibc alone does not
REINSTALL = "reinstall netsandbox with a C compiler at hand"


def shared_checks() -> list[Check]:
    """What every backend of Linux needs or uses."""
    return [
        architecture(os.uname().machine),
        state_directory(),
        splice(present=hasattr(os, "splice")),
        inspection(),
        server_names(NAME_SERVICES),
        limits(find_cgroup("doctor", tuple((name, 1) for name in FILES))),
        launcher(os.path.join(os.path.dirname(sys.executable), "netsandbox")),
    ]


def checks() -> list[Check]:
    """Every check of the backend `namespaces`. Forks, so call it before any thread is started."""
    return [
        kernel_version(os.uname().release),
        helper(HELPER),
        *namespaces(),
        seccomp(seccomp_notification(os.uname().machine)),
        ipv6(ipv6_sockets()),
        landlock(landlock_abi()),
        *mounts(),
    ]


def kernel_version(release: str) -> Check:
    numbers = tuple(int(part) for part in release.partition("-")[0].split(".")[:2] if part.isdigit())
    if numbers >= LEAST_KERNEL:
        return Check("kernel", OK, f"Linux {release}")
    return Check("kernel", MISSING, f"Linux {release}", "use Linux 5.12 or newer")


def architecture(machine: str) -> Check:
    try:
        syscall_table(machine)
    except NetsandboxError as error:
        return Check("architecture", MISSING, machine, str(error))
    return Check("architecture", OK, machine)


def helper(path: str) -> Check:
    if os.access(path, os.X_OK):
        return Check("native helper", OK, path)
    found = "not executable" if os.path.exists(path) else "not there"
    return Check("native helper", MISSING, f"{path} is {found}", REINSTALL)


def namespaces() -> list[Check]:
    """A feature that depends on a missing one is not tried, so that one cause has one remedy."""
    number = user_namespace()
    if number and helper_failure() is None:
        return [Check(name, OK, "can be made by the helper alone") for name in NAMESPACES]
    found = [by_error(NAMESPACES[0], number, "creating namespaces")]
    for name, try_feature, step in (
        (NAMESPACES[1], private_proc, "/proc"),
        (NAMESPACES[2], network_namespace, "creating namespaces"),
        (NAMESPACES[3], transparent_capture, "nftables"),
    ):
        needed = found[2 if name == NAMESPACES[3] else 0]
        if needed.status == OK:
            found.append(by_error(name, try_feature(), step))
        else:
            found.append(Check(name, UNTRIED, f"needs {needed.name}"))
    return found


def by_error(name: str, number: int, step: str) -> Check:
    """*step* is a step of `namespaces.diagnosis`, which names the setting that forbids it."""
    if number == 0:
        return Check(name, OK, "can be made")
    return Check(name, MISSING, os.strerror(number), explain_failure(step, number))


def seccomp(number: int) -> Check:
    if number == 0:
        return Check("seccomp", OK, "with user notification")
    remedy = "use a kernel with CONFIG_SECCOMP_FILTER; in a container allow seccomp(2)"
    return Check("seccomp", MISSING, f"no user notification: {os.strerror(number)}", remedy)


def ipv6(number: int) -> Check:
    if number == 0:
        return Check("IPv6", OK, "sockets can be made")
    return Check("IPv6", MISSING, os.strerror(number), "start the kernel without ipv6.disable=1")


def splice(*, present: bool) -> Check:
    if present:
        return Check("splice", OK, "bytes are relayed inside the kernel")
    return Check("splice", NOTE, "bytes are relayed by copying", "a Python with os.splice is faster")


def inspection() -> Check:
    """Whether the engine for requests is installed, in a version that was tested with it."""
    try:
        import_folders()
    except UsageError as error:
        found, _, remedy = str(error).partition("; ")
        return Check("inspection", NOTE, found, f"{remedy}, for rules for requests and secrets")
    return Check("inspection", OK, "mitmproxy is installed")


def server_names(path: str) -> Check:
    """Whether programs other than browsers and curl reach a server by its name. The settings of the C library tell it:
    a lookup could go to a server of the network."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.partition("#")[0].split() for line in file]
    except OSError:  # musl has none, and does not resolve such names
        lines = []
    if any(words[:1] == ["hosts:"] and set(RESOLVES_LOCALHOST) & set(words) for words in lines):
        return Check("NAME.localhost", OK, "every program that asks the C library resolves it")
    remedy = "install libnss-myhostname, or use the address that `netsandbox ports` shows"
    return Check("NAME.localhost", NOTE, "browsers and curl resolve it; node, Python, wget and others do not", remedy)


def landlock(abi: int) -> Check:
    if abi >= SIGNAL_LANDLOCK:
        return Check("Landlock", OK, f"ABI {abi}; signals end at the session's border")
    remedy = "nothing to do; Linux 6.12 with lsm=landlock,… has it"
    return Check("Landlock", NOTE, f"ABI {abi}, without signal scopes; `kill 0` is refused instead", remedy)


def mounts() -> list[Check]:
    """Tried by this process, which may be forbidden what the helper is allowed."""
    if user_namespace():
        return [Check(name, UNTRIED, "this process can make no user namespace") for name in ("overlay", "link mounts")]
    return [overlay(trial(_mount_overlay)), link_mount(trial(_mount_link))]


def overlay(number: int) -> Check:
    """Without it, caches in the mode project begin empty."""
    if number == 0:
        return Check("overlay", OK, "sessions see your caches, and keep their changes apart")
    remedy = "nothing to do; Linux 5.11 has it for every user, on most file systems"
    return Check("overlay", NOTE, f"{os.strerror(number)}; caches begin empty in a project", remedy)


def link_mount(number: int) -> Check:
    """Without it, git's configuration is read-only in the mode project."""
    if number == 0:
        return Check("link mounts", OK, "git may change a copy of its configuration")
    remedy = "nothing to do; a newer Linux has them"
    return Check("link mounts", NOTE, f"{os.strerror(number)}; .git/config is read-only in sessions", remedy)


def limits(cgroup: Cgroup | None) -> Check:
    """What holds `--limit`."""
    if cgroup is not None:
        return Check("limits", OK, f"memory, processes and cpu by a {cgroup.owner}, others by resource limits")
    counted = "memory" if is_exempt() else "memory and processes"
    return Check("limits", NOTE, f"{counted} by resource limits, cpu not at all", ADVICE)


def launcher(path: str) -> Check:
    """Whether the program runs our package although PYTHONPATH names a folder with another one of that name."""
    if not os.access(path, os.X_OK):
        return Check("launcher", NOTE, f"{path} is not there", "start netsandbox by the program of its installation")
    with tempfile.TemporaryDirectory(prefix="netsandbox-") as folder:
        os.mkdir(f"{folder}/netsandbox")
        for name in ("__init__.py", "__main__.py"):
            with open(f"{folder}/netsandbox/{name}", "w") as file:
                file.write("print('planted')\nraise SystemExit(0)\n")
        done = subprocess.run(
            [path, "--version"], cwd=folder, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, check=False
        )
    if done.returncode == 0 and b"planted" not in done.stdout:
        return Check("launcher", OK, "runs our package, whatever PYTHONPATH names")
    return Check("launcher", MISSING, "PYTHONPATH replaces our package", REINSTALL)


NETLINK_NETFILTER = 12
NLMSG_ERROR = 2
NETLINK_SECONDS = 3.0
MS_REC_PRIVATE = 0x4000 | 0x40000
# seccomp(2); landlock_create_ruleset(2)
SECCOMP = {"x86_64": 317, "aarch64": 277}
GET_ACTION_AVAILABLE = 2
ACTION_NOTIFY = 0x7FC00000
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_VERSION = 1
TRIAL = "/tmp"  # noqa: S108 (a tmpfs of the child's own is mounted there)
# open_tree(2), move_mount(2)
OPEN_TREE, MOVE_MOUNT, OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 428, 429, 1, 4
AT_FDCWD, AT_SYMLINK_NOFOLLOW = -100, 0x100


def user_namespace() -> int:
    """Each `try_feature` returns 0 for success, else the error number."""
    return trial(lambda: enter_namespaces(NEW_USER))


def network_namespace() -> int:
    return trial(lambda: enter_namespaces(NEW_USER | NEW_NETWORK))


def private_proc() -> int:
    return trial(_mount_proc)


def transparent_capture() -> int:
    """nftables with tproxy: the rules of a session, in a namespace that ends with the child."""
    return trial(_install_rules)


def seccomp_notification(machine: str) -> int:
    number = SECCOMP.get(machine)
    if number is None:
        return errno.ENOSYS
    action = ctypes.c_uint32(ACTION_NOTIFY)
    result = LIBC.syscall(number, GET_ACTION_AVAILABLE, 0, ctypes.byref(action))
    return 0 if result == 0 else ctypes.get_errno()


def landlock_abi() -> int:
    """The version of Landlock; 0 if there is none."""
    version: int = LIBC.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_VERSION)
    return max(version, 0)


def ipv6_sockets() -> int:
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()
    except OSError as error:
        return error.errno or errno.EAFNOSUPPORT
    return 0


def _mount_proc() -> None:
    enter_namespaces(NEW_USER | NEW_MOUNTS | NEW_PROCESSES)
    checked(LIBC.mount(None, b"/", None, MS_REC_PRIVATE, None))
    # Only a process inside the new PID namespace may mount its /proc.
    number = trial(_mount_own_proc)
    if number:
        raise OSError(number, os.strerror(number))


def _mount_overlay() -> None:
    """The folders are in a tmpfs of the child's own mount namespace, so nothing is left."""
    _own_tmpfs()
    for name in ("lower", "upper", "work", "merged"):
        os.mkdir(f"{TRIAL}/{name}")
    options = f"lowerdir={TRIAL}/lower,upperdir={TRIAL}/upper,workdir={TRIAL}/work,userxattr"
    checked(LIBC.mount(b"overlay", f"{TRIAL}/merged".encode(), b"overlay", 0, options.encode()))


def _mount_link() -> None:
    """A symbolic link is mounted over a file, as session_root.cover does it."""
    _own_tmpfs()
    os.symlink("nowhere", f"{TRIAL}/link")
    with open(f"{TRIAL}/file", "x"):
        pass
    clone = OPEN_TREE_CLONE | os.O_CLOEXEC | AT_SYMLINK_NOFOLLOW
    tree = checked(LIBC.syscall(OPEN_TREE, AT_FDCWD, f"{TRIAL}/link".encode(), clone))
    target = f"{TRIAL}/file".encode()
    checked(LIBC.syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH))
    os.readlink(f"{TRIAL}/file")


def _own_tmpfs() -> None:
    enter_namespaces(NEW_USER | NEW_MOUNTS)
    checked(LIBC.mount(None, b"/", None, MS_REC_PRIVATE, None))
    checked(LIBC.mount(b"tmpfs", TRIAL.encode(), b"tmpfs", 0, None))


def _mount_own_proc() -> None:
    checked(LIBC.mount(b"proc", b"/proc", b"proc", 0, None))


def _install_rules() -> None:
    enter_namespaces(NEW_USER | NEW_NETWORK)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as channel:
        channel.settimeout(NETLINK_SECONDS)
        channel.send(plan.FILTER)
        missing = plan.FILTER_ACKNOWLEDGEMENTS
        while missing > 0:
            for number in error_numbers(channel.recv(65536)):
                if number:
                    raise OSError(number, os.strerror(number))
                missing -= 1


def error_numbers(data: bytes) -> list[int]:
    """The error number of every acknowledgement in *data* (netlink(7)); 0 is success."""
    numbers = []
    at = 0
    while at + 20 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        if int.from_bytes(data[at + 4 : at + 6], "little") == NLMSG_ERROR:
            numbers.append(-int.from_bytes(data[at + 16 : at + 20], "little", signed=True))
        at += max((length + 3) & ~3, 20)
    return numbers


LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NETWORK, NEW_MOUNTS, NEW_PROCESSES = 0x10000000, 0x40000000, 0x00020000, 0x20000000
STRANGE = 255  # the action failed in a way that has no error number


def trial(action: Callable[[], None]) -> int:
    """Run *action* in a child: 0 when it returned, else the number of its OSError."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except OSError as error:
            os._exit(error.errno or STRANGE)
        except BaseException:
            os._exit(STRANGE)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def enter_namespaces(flags: int) -> None:
    """Enter new namespaces and map the user's identity to itself, as a session does."""
    uid, gid = os.geteuid(), os.getegid()
    checked(LIBC.unshare(flags))
    for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{file}", "w") as map_file:
            map_file.write(text)


def checked(result: int) -> int:
    """*result* of a libc call, or its error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
