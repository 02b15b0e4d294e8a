"""A lesser kernel, or a container's profile, in front of a command: a seccomp filter that refuses some calls."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from tests.rig.probes import Probe

# Arguments: "call error place comparison value"…, then "--" and the command. Comparisons of a call's argument are
# "always", "bits" (any of them is set) and "above".
PROGRAM = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct sock_filter steps[2048];
static unsigned short count;
static void add(uint16_t code, uint8_t yes, uint8_t no, uint32_t value)
{
    steps[count++] = (struct sock_filter) { code, yes, no, value };
}
int main(int argc, char **argv)
{
    int at = 1;
    for (; strcmp(argv[at], "--") != 0; at += 5) {
        uint32_t place = (uint32_t)offsetof(struct seccomp_data, args) + 8 * (uint32_t)atoi(argv[at + 2]);
        uint32_t value = (uint32_t)strtoul(argv[at + 4], NULL, 0);
        add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
        if (argv[at + 3][0] == 'b' || argv[at + 3][1] == 'b') {
            add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, (uint32_t)atoi(argv[at]));
            add(BPF_LD | BPF_W | BPF_ABS, 0, 0, place);
            add(BPF_JMP | (argv[at + 3][0] == 'b' ? BPF_JSET : BPF_JGT) | BPF_K, 0, 1, value);
        } else
            add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)atoi(argv[at]));
        add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (uint32_t)atoi(argv[at + 1]));
    }
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { count, steps };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) return 99;
    execvp(argv[at + 1], argv + at + 1);
    return 98;
}
"""


@dataclass(frozen=True)
class Refusal:
    """A system call of x86_64 that fails with an error; or only if an argument has some bits, or is above a number."""

    call: int
    error: int = errno.EPERM
    place: int = 0
    comparison: str = "always"
    value: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        return (*map(str, (self.call, self.error, self.place)), self.comparison, str(self.value))


NEW_NAMESPACES = 0x7E020080
# What moby's default profile denies to a container without capabilities, of what a sandbox may want.
DOCKER = (
    Refusal(56, errno.EPERM, 0, "bits", NEW_NAMESPACES & ~0x80),  # clone
    Refusal(272, errno.EPERM, 0, "bits", NEW_NAMESPACES),  # unshare
    Refusal(435, errno.ENOSYS),  # clone3
    *map(Refusal, (308, 165, 166, 155, 161)),  # setns, mount, umount2, pivot_root, chroot
    *map(Refusal, (438, 312, 321, 298, 323)),  # pidfd_getfd, kcmp, bpf, perf_event_open, userfaultfd
    *map(Refusal, (425, 426, 427)),  # io_uring
    *map(Refusal, (428, 429, 430, 431, 432, 433, 442)),  # the new mount calls
    *map(Refusal, (303, 304, 169, 246, 175, 176, 313, 227, 159, 250)),  # handles, kernel administration, keys
)
NO_MEMORY_CALLS = (Refusal(310), Refusal(311))  # process_vm_readv, process_vm_writev
NO_KILLABLE_WAIT = (Refusal(317, errno.EINVAL, 1, "bits", 1 << 5),)  # seccomp(2) with WAIT_KILLABLE_RECV
NO_LANDLOCK = (Refusal(444, errno.ENOSYS),)
LANDLOCK_4 = (Refusal(444, errno.E2BIG, 1, "above", 16),)  # without scopes: ABI 4 and 5
LANDLOCK_1 = (Refusal(444, errno.E2BIG, 1, "above", 8),)  # without network: ABI 1 to 3


def lesser(probe: Probe, *refusals: Refusal) -> list[str | Path]:
    """The words before a command that give it a kernel with these refusals."""
    return [probe("lesser", PROGRAM), *(word for refusal in refusals for word in refusal.words), "--"]
