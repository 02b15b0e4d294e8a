"""Where the kernel lacks what the boundary needs, nothing runs and the user hears what to do (INV-1)."""

from __future__ import annotations

import errno
import platform
from pathlib import Path
from typing import Any

import pytest

from tests.rig.lesser import LANDLOCK_4, NO_LANDLOCK, lesser

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

# Stands for an older kernel or a container's profile: the named system call fails with the given error, then COMMAND.
LESSER = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    unsigned int number = (unsigned)atoi(argv[1]), error = (unsigned)atoi(argv[2]), mask = (unsigned)atoi(argv[3]);
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, mask ? 0 : 2, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof steps / sizeof *steps, steps };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, 1, 0, &program)) return 99;
    execvp(argv[4], argv + 4);
    return 98;
}
"""
CLONE_NEWUSER = 0x10000000

# (system call on x86_64, error, bits of its first argument of which one must be set, or 0 for every call)
LESSER_KERNELS = {
    "no-user-namespaces": (56, errno.EPERM, CLONE_NEWUSER),
    "no-room": (56, errno.ENOSPC, CLONE_NEWUSER),
    "no-mounts": (165, errno.EPERM, 0),
    "no-mount-setattr": (442, errno.ENOSYS, 0),
    "no-close-range": (436, errno.ENOSYS, 0),
}


# The same for a session whose files are confined.
LESSER_FOR_FILES = {
    "no-openat2": (437, errno.ENOSYS),
    "no-open-tree": (428, errno.ENOSYS),
    "no-move-mount": (429, errno.ENOSYS),
    "locked-mounts": (428, errno.EINVAL),
    "no-room-for-mounts": (429, errno.ENOSPC),
}
# And for one with a root of its own.
LESSER_FOR_A_ROOT = {
    "no-pivot-root": (155, errno.EINVAL),  # as where the root is an initial ramdisk
    "no-unmount": (166, errno.EPERM),  # the host's root would stay below the session's
}
FILES = [
    (lacking, number, error, options)
    for options, kernels in (
        (("--files", "readable", "--allow-write", "."), LESSER_FOR_FILES),
        (("--files", "project"), {**LESSER_FOR_FILES, **LESSER_FOR_A_ROOT}),
    )
    for lacking, (number, error) in kernels.items()
]


def refuses(home: Any, command: list[str | Path], *options: str) -> str:
    """Runs `COMMAND… netsandbox run OPTIONS -- touch MARK`; it must fail and MARK must not be there. Its message.
    With another backend it may run: test_broker_kernels.py has those."""
    mark = home.work / "ran"
    product = [
        home.identity.python,
        "-m",
        "netsandbox",
        "run",
        "--backend",
        "namespaces",
        *options,
        "--",
        "touch",
        mark,
    ]
    run = home.plainly([*command, *product])
    assert not mark.exists(), "the command ran unconfined"
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("netsandbox: ")
    assert "Traceback" not in run.stderr
    return run.stderr


@pytest.mark.ordinary_user
@pytest.mark.attack(134)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in names system calls by their x86_64 numbers")
@pytest.mark.parametrize("files", ["project", "open"])
@pytest.mark.parametrize("lacking", sorted(LESSER_KERNELS))
def test_a_lesser_kernel_is_refused_with_advice(netsandbox: Any, probe: Any, lacking: str, files: str) -> None:
    """134: never unconfined instead (INV-1); the message says what to do."""
    number, error, mask = LESSER_KERNELS[lacking]
    lesser = [probe("lesser", LESSER), str(number), str(error), str(mask)]
    text = refuses(netsandbox.home(), lesser, "--files", files)
    if lacking == "no-user-namespaces":
        assert "container" in text


@pytest.mark.ordinary_user
@pytest.mark.attack(134)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in names system calls by their x86_64 numbers")
@pytest.mark.parametrize(
    ("number", "error", "options"), [case[1:] for case in FILES], ids=[f"{case[3][1]}-{case[0]}" for case in FILES]
)
def test_134_files_that_cannot_be_confined_are_refused(
    netsandbox: Any, probe: Any, number: int, error: int, options: tuple[str, ...]
) -> None:
    """INV-1: and where nothing is to be confined, the same kernel runs the command."""
    lesser = [probe("lesser", LESSER), str(number), str(error), "0"]
    refuses(netsandbox.home(), lesser, *options)
    with pytest.raises(AssertionError, match="the command ran unconfined"):
        refuses(netsandbox.home(), lesser, "--files", "open")


@pytest.mark.attack(134)
def test_forbidden_user_namespaces_are_named_with_the_switch(netsandbox: Any) -> None:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    text = refuses(netsandbox.home(), ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"])
    assert "sysctl -w user.max_user_namespaces=" in text


SIGNALS = """
import os, subprocess
child = subprocess.Popen(["sleep", "60"])
try:
    os.kill(0, 9)
    print("sent")
except PermissionError:
    print("refused")
os.kill(child.pid, 9)
print(child.wait(), flush=True)
"""
# A job as a shell has it, with a process of the caller in the same group.
JOB = 'sleep 60 >/dev/null 2>&1 & "$@"; kill -0 $! && echo alive; kill $!'


@pytest.mark.attack(170)
@pytest.mark.ordinary_user
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in names system calls by their x86_64 numbers")
@pytest.mark.parametrize("kernel", [LANDLOCK_4, NO_LANDLOCK], ids=["no-scopes", "no-landlock"])
def test_without_landlock_scopes_a_signal_to_the_group_does_not_reach_the_caller(
    netsandbox: Any, probe: Any, kernel: Any
) -> None:
    """Linux before 6.12: kill(0, 9) is refused; a process of the session is still killed by its number."""
    home = netsandbox.home()
    options = ["--files=open", f"--gateway-port={home.gateway_port}"]
    session = [*home.identity.command, "run", *options, "--", netsandbox.python, "-c", SIGNALS]
    done = home.plainly(["setsid", "-w", "sh", "-c", JOB, "job", *lesser(probe, *kernel), *session])
    assert done.stdout == "refused\n-9\nalive\n", done.stderr
