"""Attacks on the backend without namespaces: the command is among the host's processes, and must not touch them.

The verdict is that of the process outside: what the command tried to change is read back there.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.system_calls import PRELUDE, lines

pytestmark = [pytest.mark.ordinary_user]
BROKER = ("--backend", "broker")
TWINS = 9

TAMPER = (
    PRELUDE
    + r"""
#include <sys/resource.h>
static long own_signals(int number, int pid)
{
    int ends[2];
    struct { int type, pid; } owner = { 1, pid };
    if (pipe(ends) < 0) return -1;
    long result = fcntl(ends[0], F_SETOWN, pid);
    if (number) fcntl(ends[0], F_SETSIG, number);
    if (number) fcntl(ends[0], 15, &owner);
    if (result == 0) result = ioctl(ends[0], FIOASYNC, &(int){ 1 });
    write(ends[1], "x", 1);
    write(ends[1], "x", 1);
    return result;
}
static long socket_owner(int pid)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) return -1;
    long result = ioctl(ends[0], 0x8901, &pid);  /* FIOSETOWN */
    ioctl(ends[0], FIOASYNC, &(int){ 1 });
    write(ends[1], "x", 1);
    return result;
}
int main(int argc, char **argv)
{
    int pid = atoi(argv[1]);
    int group = atoi(argv[2]);
    struct rlimit limit = { 77, 77 };
    cpu_set_t one;
    struct sched_param none = { 0 };
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    TRY("limit", prlimit(pid, RLIMIT_NOFILE, &limit, NULL));
    TRY("limit-read", prlimit(pid, RLIMIT_NOFILE, NULL, &limit));
    TRY("affinity", sched_setaffinity(pid, sizeof one, &one));
    TRY("scheduler", sched_setscheduler(pid, SCHED_IDLE, &none));
    TRY("param", sched_setparam(pid, &none));
    struct { unsigned size, policy; unsigned long flags; int nice; unsigned priority; unsigned long more[3]; } wanted
        = { 48, SCHED_BATCH, 0, 5, 0, { 0 } };
    TRY("attr", syscall(SYS_sched_setattr, pid, &wanted, 0));
    TRY("priority", setpriority(PRIO_PROCESS, (unsigned)pid, 7));
    TRY("priority-user", setpriority(PRIO_USER, getuid(), 1)); /* hardly felt by others if it is let through */
    TRY("ioprio", syscall(SYS_ioprio_set, 1, pid, 3 << 13));
    TRY("ioprio-user", syscall(SYS_ioprio_set, 3, getuid(), 2 << 13 | 4));
    TRY("migrate", syscall(SYS_migrate_pages, pid, 64, &(unsigned long){ 1 }, &(unsigned long){ 1 }));
    TRY("group", setpgid(pid, pid));
    TRY("kill", kill(pid, SIGUSR1));
    TRY("kill-group", kill(-group, SIGUSR1));
    TRY("tgkill", syscall(SYS_tgkill, pid, pid, SIGUSR1));
    TRY("tkill", syscall(SYS_tkill, pid, SIGUSR1));
    siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
    TRY("queue", syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &info));
    TRY("tgqueue", syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGUSR1, &info));
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    TRY("pidfd", syscall(SYS_pidfd_send_signal, process, SIGUSR1, NULL, 0));
    TRY("pidfd-get", syscall(SYS_pidfd_getfd, process, 0, 0));
    TRY("owner", own_signals(SIGUSR1, pid));
    TRY("owner-group", own_signals(SIGUSR1, -group));
    TRY("socket-owner", socket_owner(pid));
    TRY("ptrace", ptrace(PTRACE_SEIZE, pid, 0, 0));
    struct iovec here = { &info, 8 }, there = { (void *)&main, 8 };
    TRY("memory", process_vm_readv(pid, &here, 1, &there, 1, 0));
    TRY("twin-limit", prlimit(0, RLIMIT_NOFILE, NULL, &limit));
    TRY("twin-limit-set", setrlimit(RLIMIT_NOFILE, &limit));
    TRY("twin-affinity", sched_setaffinity(0, sizeof one, &one));
    TRY("twin-priority", setpriority(PRIO_PROCESS, 0, 19)); /* only lower: who ran us may be nice already */
    pid_t child = fork();
    if (child == 0) { pause(); _exit(0); }
    TRY("twin-child-limit", prlimit(child, RLIMIT_NOFILE, NULL, &limit));
    TRY("twin-child-affinity", sched_setaffinity(child, sizeof one, &one));
    TRY("twin-child-priority", setpriority(PRIO_PROCESS, (unsigned)child, 19));
    TRY("twin-child-owner", own_signals(0, child));
    TRY("twin-child-kill", kill(child, SIGKILL));
    return 0;
}
"""
)


LESSER = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444, 0, 3), /* landlock_create_ruleset: scopes made its argument larger */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 24, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | E2BIG),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof steps / sizeof *steps, steps };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, 1, 0, &program)) return 99;
    execvp(argv[1], argv + 1);
    return 98;
}
"""
SENTINEL = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGIO})
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def sentinel(identity: Any) -> Iterator[Any]:
    """A process of the same account that has nothing to do with the session. It blocks the signals that it gets."""
    process = subprocess.Popen(
        [*identity.prefix, identity.python, "-I", "-c", SENTINEL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def state(pid: int) -> dict[str, Any]:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        "limits": Path(f"/proc/{pid}/limits").read_text(),
        "cpus": os.sched_getaffinity(pid),
        "scheduler": os.sched_getscheduler(pid),
        "nice": os.getpriority(os.PRIO_PROCESS, pid),
        "pending": status["ShdPnd"].strip() + status["SigPnd"].strip(),
        "tracer": status["TracerPid"].strip(),
    }


@pytest.mark.attack(170)
@pytest.mark.parametrize("kernel", ["this", "without scopes"])
def test_a_process_outside_is_not_changed(netsandbox: Any, probe: Any, sentinel: Any, kernel: str) -> None:
    home, before = netsandbox.home(), state(sentinel.pid)
    words = [str(probe("tamper", TAMPER)), str(sentinel.pid), str(sentinel.pid)]
    lesser = [str(probe("lesser-landlock", LESSER))] if kernel == "without scopes" else []
    if lesser and platform.machine() != "x86_64":
        pytest.skip("the stand-in names system calls by their x86_64 numbers")
    run = home.plainly([*lesser, *home.identity.command, "run", *BROKER, "--", *words])
    found = lines(run.stdout)
    assert state(sentinel.pid) == before, found
    assert sentinel.poll() is None
    twins = {name: what for name, what in found.items() if name.startswith("twin-")}
    assert set(twins.values()) == {"ok"}, (twins, run.stderr)
    assert len(twins) == TWINS
