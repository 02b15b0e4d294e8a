"""The table of the broker's sockets (native/socket_table.c), under AddressSanitizer: the kernel gives inodes again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.rig.native_units import FOLDERS, INCLUDES
from tests.rig.probes import Probe

# One socket in two entries has the inode of both, as a new socket has that of one whose program closed it.
HARNESS = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "socket_table.h"
int hand_over(void) { return 1; }
void fail(const char *step) { perror(step); exit(1); }
size_t caller_link(pid_t pid, const char *what, char *into, size_t size) { return 0; }
pid_t *descendants(size_t *count) { *count = 0; return calloc(1, sizeof(pid_t)); }
void close_copy(int copy) { close(copy); }
int main(void)
{
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    struct entry *first, *second;
    ino_t inode;
    sockets_begin();
    first = entry_add(made, -1, KIND_UNIX, AF_UNIX, SOCK_STREAM, getpid());
    second = entry_add(dup(made), -1, KIND_UNIX, AF_UNIX, SOCK_STREAM, getpid());
    printf("in-use %s\n", second == NULL ? "refused" : "taken");
    first->is_listening = 1; /* its thread goes on */
    entry_done(first);
    second = entry_add(dup(made), -1, KIND_UNIX, AF_UNIX, SOCK_STREAM, getpid());
    printf("done %s\n", second == NULL ? "refused" : second->is_listening ? "old" : "new");
    inode = second->inode;
    entry_done(second);
    printf("found %d\n", entry_take(inode) == second);
    entry_done(second);
    sweep_sockets(1);
    printf("swept %d\n", entry_take(inode) == NULL);
    return 0;
}
"""


def test_an_inode_that_comes_again_takes_no_entry_that_is_in_use(probe: Probe) -> None:
    unit = next(folder / "socket_table.c" for folder in FOLDERS if (folder / "socket_table.c").exists())
    flags = ("-D_GNU_SOURCE", *INCLUDES, "-fsanitize=address", "-pthread", str(unit))
    program: Path = probe("socket-table", HARNESS, flags=flags)
    done = subprocess.run(
        [program], capture_output=True, text=True, check=False, env={"ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert done.stdout.splitlines() == ["in-use refused", "done new", "found 1", "swept 1"], done.stderr
    assert done.stderr == ""
