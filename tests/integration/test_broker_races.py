"""Sockets without a network of their own: addresses and descriptors that change during a call lead nowhere else.

Servers of the host, on all addresses, are the canaries; the session's own server on the same machine is the twin.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rig.system_calls import PRELUDE, lines

pytestmark = [pytest.mark.ordinary_user]
BROKER = ("--backend", "broker")

PROGRAM = (
    PRELUDE
    + r"""
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/un.h>
#define ROUNDS 400
static struct sockaddr_in own, forbidden, flipping;
static struct sockaddr_un local, flipping_local;
static volatile int stop, target = -1, sources[2];
static const char *host_path;
static struct sockaddr_in at(const char *address, int port)
{
    struct sockaddr_in made = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    inet_pton(AF_INET, address, &made.sin_addr);
    return made;
}
static void *flip(void *unused)
{
    while (!stop) { flipping = forbidden; flipping = own; }
    return unused;
}
static void *flip_path(void *unused)
{
    while (!stop) { strcpy(flipping_local.sun_path, host_path); strcpy(flipping_local.sun_path, local.sun_path); }
    return unused;
}
static void *swap(void *unused)
{
    while (!stop) { dup2(sources[0], target); dup2(sources[1], target); }
    return unused;
}
static void *accepts(void *listener)
{
    for (;;) { int s = accept(*(int *)listener, NULL, NULL); if (s >= 0) close(s); }
    return NULL;
}
static void racing(const char *name, void *(*other)(void *), int (*one)(int))
{
    pthread_t thread;
    int done = 0;
    stop = 0;
    pthread_create(&thread, NULL, other, NULL);
    for (int round = 0; round < ROUNDS; round++) done += one(round);
    stop = 1;
    pthread_join(thread, NULL);
    printf("%s %d\n", name, done);
    fflush(stdout);
}
static int dial(int round)
{
    int s = socket(AF_INET, SOCK_STREAM, 0), good = connect(s, (void *)&flipping, sizeof flipping) == 0;
    close(s);
    return good;
}
static int dial_path(int round)
{
    int s = socket(AF_UNIX, SOCK_STREAM, 0), good = connect(s, (void *)&flipping_local, sizeof flipping_local) == 0;
    close(s);
    return good;
}
static int send_flipping(int round)
{
    static char text[] = "secret";
    struct iovec part = { text, sizeof text };
    struct msghdr message = { .msg_name = &flipping, .msg_namelen = sizeof own, .msg_iov = &part, .msg_iovlen = 1 };
    int s = socket(AF_INET, SOCK_DGRAM, 0), good = sendmsg(s, &message, 0) > 0;
    close(s);
    return good;
}
/* The descriptor changes between sockets of two kinds, while calls with addresses are made. */
static int swapped(int round)
{
    static char text[] = "secret";
    struct iovec part = { text, sizeof text };
    struct msghdr message = { .msg_name = &forbidden, .msg_namelen = sizeof own, .msg_iov = &part, .msg_iovlen = 1 };
    struct sockaddr_un path = { .sun_family = AF_UNIX };
    struct msghdr by_path = { .msg_name = &path, .msg_namelen = sizeof path, .msg_iov = &part, .msg_iovlen = 1 };
    strcpy(path.sun_path, host_path);
    connect(target, (void *)&forbidden, sizeof forbidden);
    sendmsg(target, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    sendto(target, text, sizeof text, MSG_NOSIGNAL | MSG_DONTWAIT, (void *)&forbidden, sizeof forbidden);
    sendmsg(target, &by_path, MSG_NOSIGNAL | MSG_DONTWAIT);
    connect(target, (void *)&path, sizeof path);
    return 1;
}
static void swap_kinds(const char *name, int first, int second)
{
    sources[0] = first;
    sources[1] = second;
    target = dup(first);
    racing(name, swap, swapped);
    close(target);
}
static void ways(int port)
{
    static const char *V4[] = { "127.0.0.1", "0.0.0.0", "127.0.0.2", "127.255.255.254", "0.0.0.1" };
    static const char *V6[] = { "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::127.0.0.1", "64:ff9b::7f00:1",
                                "fe80::1" };
    char text[] = "secret";
    int on = 1;
    for (size_t each = 0; each < sizeof V4 / sizeof *V4; each++) {
        struct sockaddr_in to = at(V4[each], port);
        int s = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);
        connect(s, (void *)&to, sizeof to);
        sendto(s, text, sizeof text, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&to, sizeof to);
        sendto(u, text, sizeof text, 0, (void *)&to, sizeof to);
        close(s); close(u);
        s = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(s, IPPROTO_TCP, 30, &on, sizeof on);  /* TCP_FASTOPEN_CONNECT */
        connect(s, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr));
        connect(s, (void *)&to, sizeof to);
        send(s, text, sizeof text, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(s);
    }
    for (size_t each = 0; each < sizeof V6 / sizeof *V6; each++) {
        struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_scope_id = 1 };
        int s = socket(AF_INET6, SOCK_STREAM, 0), family = AF_INET;
        inet_pton(AF_INET6, V6[each], &to.sin6_addr);
        connect(s, (void *)&to, sizeof to);
        setsockopt(s, IPPROTO_IPV6, 1, &family, sizeof family);  /* IPV6_ADDRFORM */
        connect(s, (void *)&forbidden, sizeof forbidden);
        send(s, text, sizeof text, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(s);
    }
    TRY("mptcp", socket(AF_INET, SOCK_STREAM, 262));
    TRY("sctp", socket(AF_INET, SOCK_STREAM, 132));
    TRY("raw", socket(AF_INET, SOCK_RAW, 6));
    TRY("vsock", socket(40, SOCK_STREAM, 0));
    TRY("alg", socket(38, SOCK_SEQPACKET, 0));
    TRY("smc", socket(43, SOCK_STREAM, 0));
    TRY("unix-datagram", socket(AF_UNIX, SOCK_DGRAM, 0));
    TRY("unix-raw-pair", socketpair(AF_UNIX, SOCK_RAW, 0, (int[2]){ 0, 0 }));
    TRY("device", setsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_BINDTODEVICE, "lo", 2));
    TRY("uring", syscall(425, 4, text));
}
int main(int argc, char **argv)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), path_listener = socket(AF_UNIX, SOCK_STREAM, 0);
    int port = atoi(argv[1]);
    pthread_t thread;
    host_path = argv[2];
    forbidden = at("127.0.0.1", port);
    own = flipping = at("127.0.0.1", 4545);
    local = flipping_local = (struct sockaddr_un){ .sun_family = AF_UNIX, .sun_path = "own-server.sock" };
    TRY("bind", bind(listener, (void *)&own, sizeof own));
    TRY("listen", listen(listener, 512));
    TRY("bind-path", bind(path_listener, (void *)&local, sizeof local));
    TRY("listen-path", listen(path_listener, 512));
    pthread_create(&thread, NULL, accepts, &listener);
    pthread_create(&thread, NULL, accepts, &path_listener);
    racing("dialled", flip, dial);
    racing("dialled-path", flip_path, dial_path);
    racing("sent", flip, send_flipping);
    swap_kinds("udp-tcp", socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET, SOCK_STREAM, 0));
    swap_kinds("udp-unix", socket(AF_INET, SOCK_DGRAM, 0), socket(AF_UNIX, SOCK_STREAM, 0));
    swap_kinds("netlink-tcp", socket(AF_NETLINK, SOCK_RAW, 0), socket(AF_INET6, SOCK_STREAM, 0));
    ways(port);
    return 0;
}
"""
)
REFUSED = ("mptcp", "sctp", "raw", "vsock", "alg", "smc", "unix-datagram", "unix-raw-pair", "device", "uring")


class Everywhere:
    """A TCP and a UDP server of the host at one port of all addresses, of both families."""

    def __init__(self) -> None:
        self.tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.udp.bind(("::", self.port))
        self.tcp.settimeout(0.2)
        self.udp.settimeout(0.2)

    def _accept(self) -> None:
        self.tcp.accept()[0].close()

    def visits(self) -> int:
        found = 0
        for take in (self._accept, lambda: self.udp.recv(64)):
            try:
                take()
                found += 1
            except TimeoutError:
                pass
        return found


@pytest.fixture
def everywhere() -> Iterator[Everywhere]:
    server = Everywhere()
    with server.tcp, server.udp:
        yield server


@pytest.mark.attack(115)
@pytest.mark.attack(116)
def test_no_call_reaches_a_server_of_the_host(netsandbox: Any, probe: Any, canary: Any, everywhere: Any) -> None:
    unix = canary.unix()
    run = netsandbox("run", *BROKER, "--", str(probe("broker-races", PROGRAM)), str(everywhere.port), unix.path)
    found = lines(run.stdout)
    assert everywhere.visits() == 0, found
    assert unix.accepts == 0, found
    assert {name: found[name] for name in REFUSED if found.get(name, "ok") == "ok"} == {}, run.stderr
    assert {found[name] for name in ("bind", "listen", "bind-path", "listen-path")} == {"ok"}
    assert int(found["dialled"]) > 0  # the twins: the session's own servers were reached
    assert int(found["dialled-path"]) > 0
    with socket.create_connection(("127.0.0.1", everywhere.port)):
        assert everywhere.visits() == 1


@pytest.mark.attack(174)
def test_a_datagram_is_recorded_with_the_peer_that_it_was_written_to(netsandbox: Any) -> None:
    """Nothing waits between the write and the next connect, which is to the session itself."""
    body = """
import socket
for port in range(9000, 9050):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("192.0.2.9", port))
    s.send(b"secret")
    s.connect(("127.0.0.1", 9))
    s.close()
"""
    run = netsandbox("run", *BROKER, "--", netsandbox.python, "-c", body)
    recorded = {record.get("port") for record in run.audit if "192.0.2.9" in str(record)}
    assert recorded >= set(range(9000, 9050)), run.audit[-3:]
