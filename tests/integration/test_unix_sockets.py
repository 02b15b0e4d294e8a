"""Unix sockets: none by default; with `--allow-unix-socket PATH` that one socket, whatever the workload races or swaps.

The verdict is the canary's: the forbidden listener counts its accepts, and a run must also show that the good one
works.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

# Each probe prints what happened: the bytes that came back, or the name of the error.
PROBE = """
import errno, json, os, socket, sys
def tried(action):
    try:
        return action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def talk(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as client:
        client.connect(path)
        client.sendall(b"hello")
        client.shutdown(socket.SHUT_WR)
        return client.recv(5).decode()
def bound(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(path)
        return "bound"
def sent(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"hello", path)
        return "sent"
def pair(kind):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.send(b"x")
    return b.recv(1).decode()
out = {}
def report(**results):
    out.update({name: tried(action) for name, action in results.items()})
"""


def script(body: str) -> str:
    return PROBE + body + "\nprint(json.dumps(out))\n"


def results(run: Any) -> dict[str, Any]:
    assert run.stdout, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.mark.ordinary_user
@pytest.mark.attack(164)
@pytest.mark.attack(130)
@pytest.mark.attack(131)
def test_by_default_no_unix_socket_can_even_be_made(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    """Stand-ins for docker, ssh-agent, X11 and D-Bus; by path and abstract, stream and datagram (164, 130, 131)."""
    places = [short_tmp / name for name in ("docker.sock", "agent.1", "X0", "bus")]
    servers = [canary.unix(place, echo=True) for place in (*places, f"\0nsb-{os.getpid()}-dbus")]
    body = f"""
for number, path in enumerate({[server.path for server in servers]!r}):
    report(**{{f"connect{{number}}": lambda: talk(path), f"send{{number}}": lambda: sent(path)}})
report(bind=lambda: bound({str(short_tmp / "mine")!r}), abstract=lambda: bound("\\0mine"),
       pair=lambda: pair(socket.SOCK_STREAM), packets=lambda: pair(socket.SOCK_SEQPACKET),
       datagrams=lambda: pair(socket.SOCK_DGRAM))
"""
    run = netsandbox("run", "--", netsandbox.python, "-c", script(body))
    found = results(run)
    assert (found.pop("pair"), found.pop("packets")) == ("x", "x")
    assert set(found.values()) == {"EAFNOSUPPORT"}
    assert [server.accepts for server in servers] == [0] * len(servers)
    assert not (short_tmp / "mine").exists()
    denied = run.events("socket", verdict="deny", reason="unix-socket", family="unix")
    assert {record["type"] for record in denied} == {"stream", "dgram"}
    assert sum(record["count"] for record in denied if record["type"] == "stream") == len(servers) + 2
    for server in servers:  # the twin: from outside each answers
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(server.path)
        assert server.wait(1)


@pytest.mark.attack(167)
def test_a_socket_that_appears_later_is_out_of_reach_too(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    body = """
print("ready", flush=True); sys.stdin.readline()
report(late=lambda: talk(sys.argv[1]))
"""
    late = short_tmp / "late.sock"
    for option in ((), ("--allow-unix-socket", short_tmp / "other.sock")):
        late.unlink(missing_ok=True)
        running = netsandbox.spawn("run", *option, "--", netsandbox.python, "-c", script(body), late, stdin=-1)
        running.read_until(b"ready")
        server = canary.unix(late)
        running.process.stdin.write(b"\n")
        running.process.stdin.flush()
        assert (b"EACCES" if option else b"EAFNOSUPPORT") in running.read_until(b"}")
        running.wait()
        assert server.accepts == 0


@pytest.mark.ordinary_user
@pytest.mark.attack(131)
@pytest.mark.attack(166)
def test_an_allowed_path_is_that_socket_and_no_other(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    good, bad = canary.unix(short_tmp / "good.sock", echo=True), canary.unix(short_tmp / "bad.sock", echo=True)
    abstract = canary.unix(f"\0nsb-{os.getpid()}", echo=True)
    (short_tmp / "to-good").symlink_to(good.path)
    (short_tmp / "to-bad").symlink_to(bad.path)
    body = f"""
os.chdir({str(short_tmp)!r})
report(good=lambda: talk({good.path!r}), relative=lambda: talk("./good.sock"), link=lambda: talk("to-good"),
       bad=lambda: talk({bad.path!r}), near=lambda: talk("bad.sock"), badlink=lambda: talk("to-bad"),
       dots=lambda: talk({str(short_tmp / "good.sock/../bad.sock")!r}), file=lambda: talk("/etc/passwd"),
       proc=lambda: talk(f"/proc/self/fd/{{os.open({bad.path!r}, os.O_PATH)}}"),
       root=lambda: talk("/proc/self/root" + {bad.path!r}),
       abstract=lambda: talk({abstract.path!r}), empty=lambda: talk(""), missing=lambda: talk("none.sock"),
       packets=lambda: talk({bad.path!r}, socket.SOCK_SEQPACKET), datagram=lambda: sent({good.path!r}),
       bind=lambda: bound("mine.sock"), bindabstract=lambda: bound("\\0mine"), autobind=lambda: bound(""))
"""
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", netsandbox.python, "-c", script(body))
    found = results(run)
    assert [found.pop(name) for name in ("good", "relative", "link")] == ["hello"] * 3
    assert found.pop("missing") == "ENOENT"
    assert found.pop("dots") == "ENOTDIR"
    assert found.pop("proc") in ("EACCES", "ELOOP", "ENOENT")
    assert found.pop("root") in ("EACCES", "ELOOP", "ENOENT")
    assert found.pop("datagram", "EAFNOSUPPORT") == "EAFNOSUPPORT"
    assert set(found.values()) == {"EACCES"}, found
    assert (bad.accepts, abstract.accepts, good.accepts) == (0, 0, 3)
    assert not (short_tmp / "mine.sock").exists()
    allowed = run.events("socket", verdict="allow")
    assert [(r["reason"], r["rule"], r["call"]) for r in allowed] == [("rule", good.path, "connect")] * 3
    denied = {record.get("path") for record in run.events("socket", verdict="deny")}
    assert {bad.path, "to-bad", abstract.path.replace("\0", "@"), "mine.sock"} <= denied


@pytest.mark.ordinary_user
def test_internet_sockets_behave_as_without_the_option(netsandbox: Any, short_tmp: Path) -> None:
    """TCP and UDP, both families, blocking or not, listening, refused and denied: the same answers (INV-3)."""
    body = """
def served(family, host):
    with socket.create_server((host, 0), family=family) as server:
        client = socket.create_connection(server.getsockname()[:2])
        peer, _ = server.accept()
        peer.sendall(b"hi")
        return client.recv(2).decode()
def later(host):
    import select
    with socket.create_server((host, 0)) as server, socket.socket() as client:
        client.setblocking(False)
        first = client.connect_ex(server.getsockname())
        select.select([], [client], [], 5)
        again = client.connect_ex(server.getsockname()) in (0, errno.EISCONN)
        return [errno.errorcode.get(first), client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), again]
def aimed():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
        a.bind(("127.0.0.1", 0)); b.connect(a.getsockname()); b.send(b"x")
        return a.recv(1).decode()
def twice():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.socket() as two:
        two.bind(one.getsockname())
def away():
    with socket.create_connection(("192.0.2.1", 80), 5) as client:
        return client.recv(1).decode()
def low(family, host):
    with socket.socket(family) as server:
        server.bind((host, 80))
report(tcp=lambda: served(socket.AF_INET, "127.0.0.1"), tcp6=lambda: served(socket.AF_INET6, "::1"),
       later=lambda: later("127.0.0.1"), udp=aimed, twice=twice, away=away,
       refused=lambda: socket.create_connection(("127.0.0.1", 9)),
       low=lambda: low(socket.AF_INET, "127.0.0.1"), low6=lambda: low(socket.AF_INET6, "::1"),
       door=lambda: low(socket.AF_INET, "127.0.0.1"), interfaces=lambda: [name for _, name in socket.if_nameindex()],
       names=lambda: sorted({entry[4][0] for entry in socket.getaddrinfo("localhost", 80)}))
"""
    plain = results(netsandbox("run", "--", netsandbox.python, "-c", script(body)))
    option = ("--allow-unix-socket", short_tmp / "none.sock")
    brokered = netsandbox("run", *option, "--", netsandbox.python, "-c", script(body))
    assert results(brokered) == plain
    assert (plain["tcp"], plain["tcp6"], plain["udp"], plain["low"]) == ("hi", "hi", "x", "EACCES")
    assert plain["later"] == ["EINPROGRESS", 0, True]
    assert brokered.events("egress", verdict="deny", host="192.0.2.1")


RACE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static const char *good, *bad;
static atomic_int over;
static atomic_long iterations, reached;
struct pair { struct sockaddr_un address; int number; };
static void aim(struct sockaddr_un *address, const char *path)
{
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, path);
}
static void *flip_address(void *arg)
{
    struct pair *pair = arg;
    while (!over) { aim(&pair->address, bad); aim(&pair->address, good); }
    return NULL;
}
static void *connect_flipped(void *arg)
{
    struct pair *pair = arg;
    while (!over) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        iterations++;
        if (connect(fd, (struct sockaddr *)&pair->address, sizeof pair->address) == 0) reached++;
        close(fd);
    }
    return NULL;
}
static void *swap_descriptor(void *arg)
{
    struct pair *pair = arg;
    while (!over) {
        int local = socket(AF_UNIX, SOCK_STREAM, 0), internet = socket(AF_INET, SOCK_STREAM, 0);
        for (int i = 0; i < 50; i++) { dup2(internet, pair->number); dup2(local, pair->number); }
        close(local); close(internet);
    }
    return NULL;
}
static void *connect_swapped(void *arg)
{
    struct pair *pair = arg;
    struct sockaddr_un address;
    for (long i = 0; !over; i++) {
        aim(&address, i % 2 ? bad : good);
        iterations++;
        if (connect(pair->number, (struct sockaddr *)&address, sizeof address) == 0) reached++;
    }
    return NULL;
}
int main(int argc, char **argv)
{
    static struct pair pairs[4];
    pthread_t threads[8];
    int swap = argv[1][0] == 's';
    good = argv[2]; bad = argv[3];
    for (int i = 0; i < 4; i++) {
        aim(&pairs[i].address, good);
        pairs[i].number = 100 + i;
        dup2(0, 100 + i);
        pthread_create(&threads[2 * i], NULL, swap ? swap_descriptor : flip_address, &pairs[i]);
        pthread_create(&threads[2 * i + 1], NULL, swap ? connect_swapped : connect_flipped, &pairs[i]);
    }
    struct timespec pause = { 2, 300000000 };
    nanosleep(&pause, NULL);
    over = 1;
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    printf("%ld %ld\n", iterations, reached);
    return 0;
}
"""


@pytest.mark.attack(115)
@pytest.mark.attack(116)
@pytest.mark.parametrize("mode", ["flip-address", "swap-descriptor"])
def test_races_for_the_forbidden_socket_are_lost(
    netsandbox: Any, canary: Any, probe: Any, short_tmp: Path, mode: str
) -> None:
    """115: threads rewrite the address while it is judged; 116: they put another socket under the same number."""
    good, bad = canary.unix(short_tmp / "good.sock"), canary.unix(short_tmp / "evil.sock")
    program, argument = probe("race", RACE), "swap" if mode == "swap-descriptor" else "flip"
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", program, argument, good.path, bad.path)
    iterations, reached = map(int, run.stdout.split())
    assert (run.returncode, bad.accepts) == (0, 0)
    assert iterations > 1000
    assert reached > 100
    assert good.accepts > 100


@pytest.mark.attack(146)
@pytest.mark.attack(147)
@pytest.mark.attack(149)
@pytest.mark.parametrize("late", [False, True], ids=["before-first-use", "after-first-use"])
def test_another_socket_put_under_the_allowed_name_is_refused(
    netsandbox: Any, canary: Any, short_tmp: Path, late: bool
) -> None:
    """By symbolic link, hard link, rename, and a renamed folder; the user meant the socket that was there."""
    inner = short_tmp / "folder"
    inner.mkdir()
    inner.chmod(0o777)
    good, bad = canary.unix(inner / "good.sock", echo=True), canary.unix(short_tmp / "bad.sock", echo=True)
    body = f"""
good, bad, folder = {good.path!r}, {bad.path!r}, {str(inner)!r}
if {late}:
    report(first=lambda: talk(good))
os.rename(good, good + ".kept")
os.symlink(bad, good); report(symlink=lambda: talk(good)); os.unlink(good)
os.link(bad, good); report(hardlink=lambda: talk(good)); os.unlink(good)
os.rename(bad, good); report(renamed=lambda: talk(good)); os.rename(good, bad)
os.rename(folder, folder + "2"); os.mkdir(folder); os.link(bad, good); report(folder=lambda: talk(good))
report(kept=lambda: talk(folder + "2/good.sock.kept"))
"""
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", netsandbox.python, "-c", script(body))
    found = results(run)
    if late:
        assert found.pop("first") == "hello"
    assert found.pop("kept") == "hello"  # the twin: it is the inode that counts
    assert found == dict.fromkeys(("symlink", "hardlink", "renamed", "folder"), "EACCES")
    assert bad.accepts == 0


def test_a_server_that_makes_its_socket_anew_is_still_the_one_meant(
    netsandbox: Any, canary: Any, short_tmp: Path
) -> None:
    body = """
print("ready", flush=True); sys.stdin.readline()
report(again=lambda: talk(sys.argv[1]))
"""
    path = short_tmp / "server.sock"
    first = canary.unix(path, echo=True)
    option = ("--allow-unix-socket", path)
    running = netsandbox.spawn("run", *option, "--", netsandbox.python, "-c", script(body), path, stdin=-1)
    running.read_until(b"ready")
    first.close()
    path.unlink()
    second = canary.unix(path, echo=True)
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    assert b"hello" in running.read_until(b"}")
    assert (first.accepts, second.accepts) == (0, 1)


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
    assert found == {"file": "ENOTSOCK", "bind": "EACCES"}
    assert good.accepts == 1 + (secretive == "ok")
    assert run.events("socket", verdict="deny", reason="malformed")


MORTAL = r"""
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sockaddr_un good = { .sun_family = AF_UNIX }, bad = { .sun_family = AF_UNIX };
    strcpy(good.sun_path, argv[1]);
    strcpy(bad.sun_path, argv[2]);
    for (int i = 0; i < 400; i++) {
        pid_t child = fork();
        if (child == 0)
            for (int j = 0;; j++) {
                int s = socket(AF_UNIX, SOCK_STREAM, 0);
                connect(s, (struct sockaddr *)(j % 2 ? &good : &bad), sizeof good);
                close(s);
            }
        usleep(rand() % 3000);
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
    watch.assert_gone(within=1.0)
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
print(json.dumps(out), flush=True); os._exit(0)
"""
    with socket.socket(socket.AF_UNIX) as full:
        full.bind(str(short_tmp / "full.sock"))
        full.listen(0)
        options = ("--allow-unix-socket", good.path, "--allow-unix-socket", short_tmp / "full.sock")
        run = netsandbox("run", *options, "--", netsandbox.python, "-c", script(body), timeout=15)
    assert results(run)["good"] == "hello"
    assert run.events("egress", verdict="deny", host="192.0.2.1")
    assert run.seconds < 5


def test_the_log_says_who_used_what_and_repeats_are_counted(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    good = canary.unix(short_tmp / "good.sock", echo=True)
    body = f"""
for _ in range(20):
    report(good=lambda: talk({good.path!r}), bad=lambda: talk("/run/none.sock"))
"""
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", netsandbox.python, "-c", script(body))
    allowed = run.events("socket", verdict="allow", path=good.path)
    assert [record["count"] for record in allowed] == [1, 19]
    assert allowed[0]["exe"].rpartition("/")[2].startswith("python")
    assert sum(record["count"] for record in run.events("socket", verdict="deny", path="/run/none.sock")) == 20
