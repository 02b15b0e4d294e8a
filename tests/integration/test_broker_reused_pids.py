"""A caller is killed while the broker waits for it, and another process of the user gets its pid.

The canary is a page of that process, at the address that the caller gave. A pid namespace of the test's own lets it
choose the pid, and the one thread of the broker that waits is held, so nothing here depends on time.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rig.command import CommandLine
from tests.rig.probes import Probe

pytestmark = [pytest.mark.backend("broker"), pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

PLACE = "0x7e0000000000UL"
# A child waits for a reply of the resolver, with everything it has to be written in one page; the word says how.
INSIDE = (
    r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
struct page { char data[512]; struct sockaddr_in from; socklen_t size; struct iovec part; struct mmsghdr message; };
static const char query[] = "\0\7\1\0\0\1\0\0\0\0\0\0\7example\4test\0\0\1\0\1";
#define WRITABLE PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED
static pid_t receive(int s, const char *how)
{
    struct page *page = mmap((void *)PLACE, 4096, WRITABLE, -1, 0);
    pid_t child;
    page->size = sizeof page->from;
    page->part = (struct iovec) { page->data, sizeof page->data };
    page->message.msg_hdr = (struct msghdr) { .msg_name = &page->from, .msg_namelen = sizeof page->from,
                                              .msg_iov = &page->part, .msg_iovlen = 1 };
    child = fork();
    if (child == 0) {
        if (strcmp(how, "recvfrom") == 0) recvfrom(s, page->data, 512, 0, (void *)&page->from, &page->size);
        if (strcmp(how, "recvmsg") == 0) recvmsg(s, &page->message.msg_hdr, 0);
        if (strcmp(how, "recvmmsg") == 0) recvmmsg(s, &page->message, 1, 0, NULL);
        _exit(page->from.sin_port == htons(53) && page->data[1] == 7 ? 0 : 1);
    }
    return child;
}
int main(int count, char **words)
{
    struct sockaddr_in server = { AF_INET, htons(53), { inet_addr("192.0.2.53") } };
    int s = socket(AF_INET, SOCK_DGRAM, 0), status;
    struct pollfd watched = { .fd = s, .events = POLLIN };
    pid_t child;
    connect(s, (void *)&server, sizeof server);
    child = receive(s, words[1]);
    send(s, query, sizeof query - 1, 0);
    waitpid(child, &status, 0);
    printf("twin %d\n", status);
    child = receive(s, words[1]);
    printf("%d\n", child);
    fflush(stdout);
    getchar();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("gone\n");
    fflush(stdout);
    getchar();
    send(s, query, sizeof query - 1, 0);
    printf("ready %d\n", poll(&watched, 1, 20000));
    fflush(stdout);
    getchar();
    return 0;
}
"""
).replace("PLACE", PLACE)
# Becomes the process with the pid of its word, and says whether something was written into it.
CANARY = (
    r"""
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    pid_t wanted = atoi(words[1]);
    struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1 };
    char *page = mmap((void *)PLACE, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    pid_t child;
    memset(page, 'c', 4096);
    child = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (child < 0) { perror("clone3"); return 1; }
    if (child == 0) for (;;) pause();
    printf("%d\n", child);
    fflush(stdout);
    getchar();
    for (int at = 0; at < 4096; at++)
        if (page[at] != 'c') { printf("written at %d\n", at); break; }
    printf("end\n");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
"""
).replace("PLACE", PLACE)
# Plays the host in the new pid namespace.
HOST = r"""
import ctypes, glob, json, os, subprocess, sys, time
inside, canary, how, command = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
def trace(request, thread):
    if libc.ptrace(ctypes.c_long(request), ctypes.c_long(thread), ctypes.c_void_p(), ctypes.c_void_p()) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
def polls(thread):
    # poll or ppoll of one descriptor, as the wait for a datagram is
    try:
        call = open(f"/proc/{thread}/syscall").read().split()
    except OSError: # it has ended
        return False
    return call[0] in ("7", "73") and int(call[2], 16) == 1
def waiting_thread():
    for comm in glob.glob("/proc/[0-9]*/task/*/comm"):
        thread = int(comm.split("/")[4])
        if polls(thread) and open(comm).read().startswith("netsandbox-brok"):
            return thread
    return None
def hold(thread):
    trace(SEIZE, thread)
    trace(INTERRUPT, thread)
    os.waitpid(thread, WALL)
    is_held = polls(thread)
    if not is_held: # it was just looking at its caller
        trace(DETACH, thread)
    return is_held
def open_pipes(words):
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
session = open_pipes([*command, inside, how])
found = {"twin": session.stdout.readline().split()[1]}
caller = int(session.stdout.readline())
deadline = time.monotonic() + 20
while ((thread := waiting_thread()) is None or not hold(thread)) and time.monotonic() < deadline:
    time.sleep(0.001)
print("\n", end="", file=session.stdin, flush=True)
assert session.stdout.readline() == "gone\n"
other = open_pipes([canary, str(caller)])
found["reused"] = int(other.stdout.readline()) == caller
print("\n", end="", file=session.stdin, flush=True)
found["reply"] = session.stdout.readline().split()[1]
trace(DETACH, thread)
deadline = time.monotonic() + 20
while waiting_thread() == thread and time.monotonic() < deadline:
    time.sleep(0.001)
print("\n", end="", file=session.stdin, flush=True)
found["status"] = session.wait(30)
print("\n", end="", file=other.stdin, flush=True)
found["canary"] = other.stdout.readline().strip()
other.wait(30)
print(json.dumps(found))
"""


@pytest.mark.attack(241)
@pytest.mark.parametrize("how", ["recvfrom", "recvmsg", "recvmmsg"])
def test_nothing_is_written_into_a_process_that_got_the_pid_of_a_caller(
    netsandbox: CommandLine, probe: Probe, how: str
) -> None:
    """INV-8. The twin is a caller that lives: the reply is written into it."""
    home = netsandbox.home()
    programs = [str(probe("reused-pid-inside", INSIDE)), str(probe("reused-pid-canary", CANARY))]
    run = [*home.identity.command, "run", "--backend", "broker", "--files", "open", "-q", "--"]
    played = home.plainly(["unshare", "-Urpf", "--mount-proc", home.identity.python, "-c", HOST, *programs, how, *run])
    assert played.returncode == 0, played.stderr
    found: dict[str, Any] = json.loads(played.stdout.splitlines()[-1])
    assert found == {"twin": "0", "reused": True, "reply": "1", "status": 0, "canary": "end"}
