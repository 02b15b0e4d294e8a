"""UDP without a UDP socket: programs of a session talk to the resolver, and to nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rig.world import ALLOWED, DENIED, World

pytestmark = [pytest.mark.broker_as_root, pytest.mark.backend("broker")]

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
CLIENT = (
    PRELUDE
    + """
name = sys.argv[1]
wire = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\\0"
query, server = struct.pack("!6H", 7, 256, 1, 0, 0, 0) + wire + b"\\0\\1\\0\\1", ("192.0.2.53", 53)
def right(data):
    return data[:2] == b"\\0\\7" and wire in data
client = udp()
client.bind(("0.0.0.0", 0))
client.sendto(query, server)
data, source = client.recvfrom(512)
out["sendto"] = [right(data), list(source)]
client.sendmsg([query[:5], query[5:]], [], 0, server)
data, _, flags, source = client.recvmsg(512)
out["sendmsg"] = [right(data), flags, list(source)]
out["names"] = [client.getsockname()[0], tried(client.getpeername)]
client.connect(server)
out["connected"] = [client.getsockname()[0], list(client.getpeername())]
client.sendmsg([query])
out["recv"] = right(client.recv(512))
client.send(query)
peeked, taken = client.recvfrom(512, socket.MSG_PEEK)[0], client.recvfrom(512)[0]
out["peek"] = [right(peeked), peeked == taken]
os.write(client.fileno(), query)
out["select"] = len(select.select([client], [], [], 10)[0])
data, _, flags, _ = client.recvmsg(4)
out["truncated"] = [data == taken[:4], bool(flags & socket.MSG_TRUNC)]
client.sendto(query, ("192.0.2.54", 53))
client.send(query)
out["strangers"] = right(client.recv(512))
client.setblocking(False)
out["nonblocking"] = tried(lambda: client.recvfrom(512))
client.settimeout(0.2)
out["timeout"] = tried(lambda: client.recvfrom(512))
client.connect(("192.0.2.53", 9))
out["none"] = client.send(b"to nowhere")
out["type"] = [client.getsockopt(socket.SOL_SOCKET, each) for each in (socket.SO_TYPE, 38, 39)]
out["shutdown"] = tried(lambda: client.shutdown(socket.SHUT_WR))
six = udp(family=socket.AF_INET6)
six.sendto(query, ("2001:db8::53", 53))
data, source = six.recvfrom(512)
out["ipv6"] = [right(data), source[0]]
out["aimless"] = tried(lambda: udp().sendmsg([query]))
print(json.dumps(out))
"""
)
SERVER = (
    PRELUDE
    + """
for host, port in (("127.0.0.1", 5000), ("0.0.0.0", 5000), ("127.0.0.1", 80), ("192.0.2.1", 0), ("127.0.0.1", 0)):
    out[f"{host}:{port}"] = tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind((host, port)))
out["ipv6"] = tried(lambda: udp(5000, socket.AF_INET6))
print(json.dumps(out))
"""
)


def run_inside(line: Any, code: str, *words: str, options: tuple[str, ...] = ()) -> Any:
    run = line("run", *options, "--", line.python, "-c", code, *words)
    assert run.stdout, run.stderr
    return json.loads(run.stdout), run


@pytest.mark.ordinary_user
def test_a_client_of_the_resolver_works_as_elsewhere(netsandbox: Any) -> None:
    found, _ = run_inside(netsandbox, CLIENT, ALLOWED, options=("--allow-domain", ALLOWED))
    assert found == {
        "sendto": [True, ["192.0.2.53", 53]],
        "sendmsg": [True, 0, ["192.0.2.53", 53]],
        "names": ["0.0.0.0", "ENOTCONN"],
        "connected": ["127.0.0.1", ["192.0.2.53", 53]],
        "recv": True,
        "peek": [True, True],
        "select": 1,
        "truncated": [True, True],
        "strangers": True,
        "nonblocking": "EAGAIN",
        "timeout": "timed out",
        "none": 10,
        "type": [2, 17, 2],
        "shutdown": None,
        "ipv6": [True, "2001:db8::53"],
        "aimless": "EDESTADDRREQ",
    }


@pytest.mark.ordinary_user
@pytest.mark.attack(242)
def test_a_server_is_refused_at_its_bind(netsandbox: Any) -> None:
    """It could hear nobody, so it is told at once, and the log says why. A client's bind has no port."""
    found, run = run_inside(netsandbox, SERVER)
    assert found == {
        **dict.fromkeys(("127.0.0.1:5000", "0.0.0.0:5000", "127.0.0.1:80", "ipv6"), "EACCES"),
        "192.0.2.1:0": "EADDRNOTAVAIL",
        "127.0.0.1:0": None,
    }
    refused = run.events("bind", verdict="deny", reason="udp", protocol="udp")
    assert {(record["address"], record["port"]) for record in refused} >= {("127.0.0.1", 5000), ("::1", 5000)}


MANY = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static const char query[] = "\0\7\1\0\0\1\0\0\0\0\0\0\7example\4test\0\0\1\0\1";
int main(void)
{
    struct sockaddr_in place = { AF_INET, htons(53), { inet_addr("192.0.2.53") } };
    struct sockaddr_in from[2];
    char in[2][512];
    struct iovec parts[2], room[2];
    struct mmsghdr sent[2], got[2];
    int client = socket(AF_INET, SOCK_DGRAM, 0), out = 0, back = 0;
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    for (int each = 0; each < 2; each++) {
        parts[each] = (struct iovec) { (void *)query, sizeof query - 1 };
        room[each] = (struct iovec) { in[each], sizeof in[each] };
        sent[each].msg_hdr = (struct msghdr) { &place, sizeof place, &parts[each], 1 };
        got[each].msg_hdr = (struct msghdr) { &from[each], sizeof from[each], &room[each], 1 };
    }
    while (out < 2) out += sendmmsg(client, sent + out, 2 - out, 0);
    while (back < 2) back += recvmmsg(client, got + back, 2 - back, 0, NULL);
    for (int each = 0; each < 2; each++)
        printf("%d %d %d %d\n", sent[each].msg_len == sizeof query - 1, got[each].msg_len > sizeof query - 1,
               in[each][1], from[each].sin_addr.s_addr == place.sin_addr.s_addr);
    return 0;
}
"""


def test_many_messages_in_one_call(netsandbox: Any, probe: Any) -> None:
    """The broker sends or receives the first, as these calls may, and a program calls again."""
    program = probe("many-messages", MANY, static=True)
    run = netsandbox("run", "--allow-domain", "example.test", "--allow-read", program, "--", program)
    assert run.stdout == "1 1 7 1\n" * 2, run.stderr


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
