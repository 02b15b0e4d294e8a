"""UDP without a UDP socket: programs of a session talk to one another and to the resolver, and to nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rig.world import ALLOWED, DENIED, World

pytestmark = [pytest.mark.backend("broker"), pytest.mark.closed_files]

PRELUDE = """
import ctypes, errno, json, os, select, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
out = {}
def tried(action):
    try:
        return action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def udp(port=None, family=socket.AF_INET):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.settimeout(10)
    if port is not None:
        sock.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
    return sock
"""
LOOPBACK = (
    PRELUDE
    + """
server, client = udp(5000), udp()
client.sendto(b"one", ("127.0.0.1", 5000))
data, source = server.recvfrom(100)
out["sendto"] = [data.decode(), source[0], source == ("127.0.0.1", client.getsockname()[1])]
server.sendto(b"reply", source)
out["reply"] = client.recvfrom(100)[0].decode()
client.sendmsg([b"two ", b"parts"], [], 0, ("127.0.0.1", 5000))
data, _, flags, source = server.recvmsg(100)
out["sendmsg"] = [data.decode(), flags, source[0]]
client.connect(("127.0.0.1", 5000))
out["names"] = [client.getsockname()[0], list(client.getpeername()), list(server.getsockname())]
client.send(b"connected")
out["peek"] = [server.recvfrom(100, socket.MSG_PEEK)[0].decode(), server.recvfrom(100)[0].decode()]
client.send(b"0123456789")
data, _, flags, _ = server.recvmsg(4)
out["truncated"] = [data.decode(), bool(flags & socket.MSG_TRUNC)]
os.write(client.fileno(), b"written")
out["write"] = server.recvfrom(100)[0].decode()
client.send(b"")
out["empty"] = server.recvfrom(100)[0].decode()
server.sendto(b"to the connected", client.getsockname())
out["recv"] = client.recv(100).decode()
other = udp()
other.sendto(b"stranger", client.getsockname())
client.settimeout(0.2)
out["strangers"] = tried(lambda: client.recv(100).decode())
server.setblocking(False)
out["nonblocking"] = tried(lambda: server.recvfrom(100))
server.settimeout(0.2)
out["timeout"] = tried(lambda: server.recvfrom(100))
out["ready"] = len(select.select([server], [], [], 0)[0])
client.send(b"x")
out["select"] = len(select.select([server], [], [], 10)[0])
out["type"] = [server.getsockopt(socket.SOL_SOCKET, each) for each in (socket.SO_TYPE, 38, 39)]
out["taken"] = tried(lambda: udp(5000).close())
out["low"] = tried(lambda: udp(80).close())
out["elsewhere"] = tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("192.0.2.1", 5001)))
six, four = udp(5002, socket.AF_INET6), udp(family=socket.AF_INET6)
four.sendto(b"six", ("::1", 5002))
out["ipv6"] = [six.recvfrom(100)[0].decode()]
closed = udp()
closed.connect(("127.0.0.1", 5999))
out["refused"] = tried(lambda: closed.sendto(b"x", ("127.0.0.1", 5999)) and tried(lambda: closed.recvfrom(10)))
out["shutdown"] = tried(lambda: client.shutdown(socket.SHUT_WR))
server.close()
again = udp(5000)
out["again"] = again.getsockname()[1]
print(json.dumps(out))
"""
)


def run_inside(line: Any, code: str, *words: str, options: tuple[str, ...] = ()) -> Any:
    run = line("run", *options, "--", line.python, "-c", code, *words)
    assert run.stdout, run.stderr
    return json.loads(run.stdout), run


@pytest.mark.ordinary_user
def test_two_programs_talk_as_they_do_elsewhere(netsandbox: Any) -> None:
    found, _ = run_inside(netsandbox, LOOPBACK)
    assert found.pop("refused") in ("ECONNREFUSED", "EAGAIN")
    assert found == {
        "sendto": ["one", "127.0.0.1", True],
        "reply": "reply",
        "sendmsg": ["two parts", 0, "127.0.0.1"],
        "names": ["127.0.0.1", ["127.0.0.1", 5000], ["127.0.0.1", 5000]],
        "peek": ["connected", "connected"],
        "truncated": ["0123", True],
        "write": "written",
        "empty": "",
        "recv": "to the connected",
        "strangers": "timed out",
        "nonblocking": "EAGAIN",
        "timeout": "timed out",
        "ready": 0,
        "select": 1,
        "type": [2, 17, 2],
        "taken": "EADDRINUSE",
        "low": "EACCES",
        "elsewhere": "EADDRNOTAVAIL",
        "ipv6": ["six"],
        "shutdown": None,
        "again": 5000,
    }


MANY = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_in place = { .sin_family = AF_INET, .sin_port = htons(5000) };
    struct sockaddr_in from[8];
    char in[8][16];
    struct iovec parts[8], room[8];
    struct mmsghdr sent[8], got[8];
    int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0);
    unsigned length = 0;
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    inet_pton(AF_INET, "127.0.0.1", &place.sin_addr);
    if (bind(server, (void *)&place, sizeof place)) return 1;
    for (int each = 0; each < 8; each++) {
        parts[each] = (struct iovec) { "datagram", (size_t)each + 1 };
        sent[each].msg_hdr.msg_name = &place;
        sent[each].msg_hdr.msg_namelen = sizeof place;
        sent[each].msg_hdr.msg_iov = &parts[each];
        sent[each].msg_hdr.msg_iovlen = 1;
        room[each] = (struct iovec) { in[each], sizeof in[each] };
        got[each].msg_hdr.msg_name = &from[each];
        got[each].msg_hdr.msg_namelen = sizeof from[each];
        got[each].msg_hdr.msg_iov = &room[each];
        got[each].msg_hdr.msg_iovlen = 1;
    }
    printf("%d", sendmmsg(client, sent, 8, 0));
    printf(" %d", recvmmsg(server, got, 8, MSG_WAITFORONE, NULL));
    for (int each = 0; each < 8; each++)
        if (sent[each].msg_len == got[each].msg_len && from[each].sin_port == from[0].sin_port)
            length += got[each].msg_len;
    printf(" %u\n", length);
    return 0;
}
"""


def test_many_messages_in_one_call(netsandbox: Any, probe: Any) -> None:
    program = probe("many-messages", MANY, static=True)
    run = netsandbox("run", "--allow-read", program, "--", program)
    assert run.stdout == "8 8 36\n", run.stderr


DNS = (
    PRELUDE
    + """
def ask(name, server, port=53):
    wire = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\\0"
    with udp() as sock:
        sock.settimeout(5)
        sock.sendto(struct.pack("!6H", 7, 256, 1, 0, 0, 0) + wire + b"\\0\\1\\0\\1", (server, port))
        data, source = sock.recvfrom(512)
    return [struct.unpack("!4H", data[:8])[3], data[3] & 15, source[0]]
good, bad = sys.argv[1:]
for server in ("127.0.0.1", "127.0.0.53", "192.0.2.53", "8.8.8.8"):
    out[server] = [tried(lambda: ask(good, server)), tried(lambda: ask(bad, server))]
print(json.dumps(out))
"""
)


def test_any_name_server_is_the_sessions_own(world: World) -> None:
    options = world.options(9)
    found, run = run_inside(world.netsandbox, DNS, ALLOWED, DENIED, options=options)
    for server, (good, bad) in found.items():
        assert good == [1, 0, server], found
        assert bad[0] == 0
        assert bad[1] != 0
    world.assert_denied(run)
    assert world.authority.count(DENIED) == 0


OUT = (
    PRELUDE
    + """
port = int(sys.argv[1])
def send(place, family=socket.AF_INET, connects=False):
    with udp(family=family) as sock:
        if connects:
            sock.connect(place)
            return sock.send(b"secret")
        return sock.sendto(b"secret", place)
for address in ("127.0.0.1", "192.0.2.1", "127.0.0.2"):
    for connects in (False, True):
        tried(lambda: send((address, port), connects=connects))
    tried(lambda: send(("::ffff:" + address, port), socket.AF_INET6))
tried(lambda: send(("::1", port), socket.AF_INET6))
with udp() as sock:
    sock.connect(("192.0.2.1", port))
    os.write(sock.fileno(), b"secret")
    source = (socket.IPPROTO_IP, 8, struct.pack("=i4s4s", 0, socket.inet_aton("127.0.0.1"), bytes(4)))  # IP_PKTINFO
    tried(lambda: sock.sendmsg([b"secret"], [source], 0, ("127.0.0.1", port)))
print(json.dumps("sent"))
"""
)


@pytest.mark.ordinary_user
def test_everything_else_is_recorded_and_dropped(netsandbox: Any, canary: Any) -> None:
    """The host's own servers on every address among them."""
    servers = [canary.udp("127.0.0.1")]
    servers.append(canary.udp("0.0.0.0", servers[0].port + 1))
    for server in servers:
        _, run = run_inside(netsandbox, OUT, str(server.port), options=("--allow-domain", ALLOWED))
        denied = {(record["reason"], record.get("address")) for record in run.audit if record.get("verdict") == "deny"}
        assert ("udp", "192.0.2.1") in denied, run.audit
    assert [server.datagrams for server in servers] == [[], []]
