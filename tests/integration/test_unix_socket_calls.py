"""Calls on Unix sockets that are odd, interrupted or waiting when their caller or the supervisor dies harm nobody.

The verdict is the canary's: the forbidden listener counts its accepts, and a run must also show that the good one
works.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rig.unix_probe import results, script

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

ODD = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
static void try(const char *what, long result) { printf("%s %s\n", what, result < 0 ? strerrorname_np(errno) : "ok"); }
int main(int argc, char **argv)
{
    struct sockaddr_un good = { .sun_family = AF_UNIX }, wrong = { .sun_family = AF_INET };
    struct sockaddr_in away = { .sin_family = AF_INET, .sin_port = htons(80) };
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sockaddr_un *torn = (void *)(page + 4096 - 8);
    int s = socket(AF_UNIX, SOCK_STREAM, 0), file = open("/dev/null", O_RDWR), path = open(argv[1], O_PATH);
    strcpy(good.sun_path, argv[1]);
    munmap(page + 4096, 4096);
    torn->sun_family = AF_UNIX;
    try("null", syscall(SYS_connect, s, NULL, sizeof good));
    try("kernel", syscall(SYS_connect, s, 0xffffffff81000000UL, sizeof good));
    try("wild", syscall(SYS_connect, s, ~0UL, sizeof good));
    try("torn", syscall(SYS_connect, s, torn, sizeof good));
    try("long", syscall(SYS_connect, s, &good, 129));
    try("negative", syscall(SYS_connect, s, &good, -1));
    try("nothing", syscall(SYS_connect, s, &good, 0));
    try("short", syscall(SYS_connect, s, &good, 1));
    try("family", syscall(SYS_connect, s, &wrong, sizeof wrong));
    try("internet", syscall(SYS_connect, s, &away, sizeof away));
    try("closed", syscall(SYS_connect, 77, &good, sizeof good));
    try("minus", syscall(SYS_connect, -1, &good, sizeof good));
    try("file", syscall(SYS_connect, file, &good, sizeof good));
    try("path", syscall(SYS_connect, path, &good, sizeof good));
    try("bind", syscall(SYS_bind, s, &good, sizeof good));
    try("listen", listen(s, 1));
    try("fresh", syscall(SYS_connect, socket(AF_UNIX, SOCK_STREAM, 0), &good, sizeof good));
    prctl(PR_SET_DUMPABLE, 0);
    try("secretive", syscall(SYS_connect, socket(AF_UNIX, SOCK_STREAM, 0), &good, sizeof good));
    return 0;
}
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(117)
def test_what_cannot_be_read_is_refused(netsandbox: Any, canary: Any, probe: Any, short_tmp: Path) -> None:
    """117: null, kernel, wild and torn pointers, lengths, families and descriptors that are none (INV-1)."""
    good = canary.unix(short_tmp / "good.sock")
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", probe("odd", ODD), good.path)
    found = dict(line.split() for line in run.stdout.splitlines())
    assert found.pop("fresh") == "ok", found
    secretive = found.pop("secretive")
    assert {found.pop(name) for name in ("null", "kernel", "wild", "torn")} == {"EFAULT"}
    assert {found.pop(name) for name in ("long", "negative", "nothing", "short", "family", "internet", "listen")} == {
        "EINVAL"
    }
    assert {found.pop(name) for name in ("closed", "minus", "path")} == {"EBADF"}
    assert found == {"file": "ENOTSOCK", "bind": "EADDRINUSE"}
    assert good.accepts == 1 + (secretive == "ok")
    assert run.events("socket", verdict="deny", reason="malformed")


MORTAL = r"""
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sockaddr_un good = { .sun_family = AF_UNIX }, bad = { .sun_family = AF_UNIX };
    strcpy(good.sun_path, argv[1]);
    strcpy(bad.sun_path, argv[2]);
    volatile int *reached = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 400 || (i < 4000 && *reached <= 100); i++) { /* a busy machine needs longer */
        pid_t child = fork();
        if (child == 0)
            for (int j = 0;; j++) {
                int s = socket(AF_UNIX, SOCK_STREAM, 0);
                *reached += connect(s, (struct sockaddr *)(j % 2 ? &good : &bad), sizeof good) == 0;
                close(s);
            }
        usleep(rand() % (i < 400 ? 3000 : 30000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    puts(connect(s, (struct sockaddr *)&good, sizeof good) ? "lost" : "served");
    return 0;
}
"""


@pytest.mark.attack(118)
def test_callers_that_die_in_the_middle_do_no_harm(netsandbox: Any, canary: Any, probe: Any, short_tmp: Path) -> None:
    good, bad = canary.unix(short_tmp / "good.sock"), canary.unix(short_tmp / "bad.sock")
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", probe("mortal", MORTAL), good.path, bad.path)
    assert run.stdout == "served\n"
    assert bad.accepts == 0
    assert good.accepts > 100


@pytest.mark.attack(119)
def test_calls_that_wait_fail_when_the_supervisor_dies(
    netsandbox: Any, canary: Any, leftovers: Any, short_tmp: Path
) -> None:
    good = canary.unix(short_tmp / "good.sock", echo=True)
    body = """
print(talk(sys.argv[1]), flush=True); sys.stdin.readline()
report(trapped=lambda: talk(sys.argv[1]))
"""
    option = ("--allow-unix-socket", good.path)
    running = netsandbox.spawn("run", *option, "--", netsandbox.python, "-c", script(body), good.path, stdin=-1)
    running.read_until(b"hello")
    watch = leftovers.watch(running)
    running.signal(signal.SIGSTOP)
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    time.sleep(0.2)
    running.signal(signal.SIGKILL)
    running.wait()
    watch.assert_gone()
    assert good.accepts == 1


INTERRUPTED = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
static volatile sig_atomic_t rings;
static void ring(int number) { rings++; }
int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = ring, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 300 }, { 0, 300 } };
    struct sockaddr_un good = { .sun_family = AF_UNIX };
    struct sockaddr_in here = { .sin_family = AF_INET };
    socklen_t length = sizeof here;
    int server = socket(AF_INET, SOCK_STREAM, 0), failed = 0;
    strcpy(good.sun_path, argv[1]);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(server, (struct sockaddr *)&here, sizeof here);
    listen(server, 1000);
    getsockname(server, (struct sockaddr *)&here, &length);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 300; i++) {
        int local = socket(AF_UNIX, SOCK_STREAM, 0), internet = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(local, (struct sockaddr *)&good, sizeof good)) { failed++; perror("unix"); }
        if (connect(internet, (struct sockaddr *)&here, sizeof here)) { failed++; perror("tcp"); }
        close(local);
        close(internet);
    }
    printf("%d %d\n", failed, rings > 100);
    return 0;
}
"""


@pytest.mark.attack(120)
def test_signals_in_the_middle_of_a_call_change_nothing(
    netsandbox: Any, canary: Any, probe: Any, short_tmp: Path
) -> None:
    """120: a timer that rings through 600 connects, and 100 three-stage pipelines with their SIGCHLDs."""
    good = canary.unix(short_tmp / "good.sock")
    option = ("--allow-unix-socket", good.path)
    run = netsandbox("run", *option, "--", probe("interrupted", INTERRUPTED), good.path)
    assert run.stdout == "0 1\n", run.stderr
    loop = 'i=0; while [ $i -lt 100 ]; do echo x$i | cat | grep -q "x$i" && echo done; i=$((i+1)); done'
    assert netsandbox("run", *option, "--", "sh", "-c", loop).stdout.count("done") == 100


def test_a_call_that_waits_keeps_nobody_else_waiting(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    """A server that never accepts holds its clients, not the supervisor; and the session still ends at once."""
    good = canary.unix(short_tmp / "good.sock", echo=True)
    body = f"""
import threading
for _ in range(8):
    threading.Thread(target=lambda: tried(lambda: talk({str(short_tmp / "full.sock")!r})), daemon=True).start()
import time; time.sleep(0.3)
def away():
    with socket.create_connection(("192.0.2.1", 80), 5) as client:
        return client.recv(1).decode()
report(good=lambda: talk({good.path!r}), away=away)
out["over"] = time.monotonic()
print(json.dumps(out), flush=True); os._exit(0)
"""
    with socket.socket(socket.AF_UNIX) as full:
        full.bind(str(short_tmp / "full.sock"))
        full.listen(0)
        options = ("--allow-unix-socket", good.path, "--allow-unix-socket", short_tmp / "full.sock")
        run = netsandbox("run", *options, "--", netsandbox.python, "-c", script(body), timeout=60)
        ended = time.monotonic()
    assert results(run)["good"] == "hello"
    assert run.events("egress", verdict="deny", host="192.0.2.1")
    assert ended - results(run)["over"] < 5


LINGERS = """
import ctypes, struct, threading
libc = ctypes.CDLL(None)
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(512)
port = server.getsockname()[1]
raw = struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
kept = []
for turn in range(150):
    client = socket.socket(); client.connect(("127.0.0.1", port)); kept.append(server.accept()[0])
    client.setblocking(False)
    try:
        while True: client.send(bytes(1 << 20))
    except BlockingIOError: pass
    client.setblocking(True)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
    number, began = client.detach(), threading.Event()
    def again():
        began.set()
        for _ in range(20): libc.connect(number, raw, 16)
    thread = threading.Thread(target=again); thread.start(); began.wait()
    threading.Thread(target=os.close, args=(number,), daemon=True).start()
    thread.join()
print("all answered", flush=True)
os._exit(0)
"""


def test_a_socket_that_lingers_keeps_nobody_waiting(netsandbox: Any) -> None:
    """Its caller closes it during the call, so the broker's copy is the last, and its data cannot be delivered."""
    run = netsandbox("run", "--", netsandbox.python, "-c", script(LINGERS), timeout=60)
    assert run.stdout == "all answered\n", run.stderr


def test_ports_that_need_a_capability_are_refused_to_both_families(netsandbox: Any) -> None:
    """The process that binds has capabilities which the command has not."""
    body = """
def at(family, host, port):
    with socket.socket(family) as server: server.bind((host, port))
    return "bound"
four, six = (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")
report(four=lambda: at(*four, 80), six=lambda: at(*six, 80), any=lambda: at(socket.AF_INET6, "::", 443),
       free=lambda: at(*four, 8080), free6=lambda: at(*six, 8080))
"""
    found = results(netsandbox("run", "--", netsandbox.python, "-c", script(body)))
    assert [found[name] for name in ("free", "free6")] == ["bound", "bound"]
    assert {found[name] for name in ("four", "six", "any")} == {"EACCES"}


@pytest.mark.attack(254)
def test_a_socket_of_the_host_that_a_server_hands_in_is_not_connected(
    netsandbox: Any, canary: Any, short_tmp: Path
) -> None:
    """The command may talk to the server, but dials only from its own network."""
    bad = canary.http(body=b"stolen")
    body = f"""
client = socket.socket(socket.AF_UNIX); client.connect({str(short_tmp / "giver.sock")!r})
(number,) = socket.recv_fds(client, 1, 1)[1]
server = socket.create_server(("127.0.0.1", 0))
def aimed(sock, port):
    sock.connect(("127.0.0.1", port))
    return "connected"
report(given=lambda: aimed(socket.socket(fileno=number), {bad.port}),
       own=lambda: aimed(socket.socket(), server.getsockname()[1]))
"""

    def give(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer, socket.socket() as gift:
            socket.send_fds(peer, [b"x"], [gift.fileno()])

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(short_tmp / "giver.sock"))
        (short_tmp / "giver.sock").chmod(0o777)
        server.listen()
        thread = threading.Thread(target=give, args=(server,), daemon=True)
        thread.start()
        options = ("--allow-unix-socket", short_tmp / "giver.sock")
        found = results(netsandbox("run", *options, "--", netsandbox.python, "-c", script(body)))
        thread.join(30)
    assert found == {"given": "EPERM", "own": "connected"}
    assert bad.accepts == 0
