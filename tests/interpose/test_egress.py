"""Connections elsewhere, as a Mac's library takes them to the session's door: run on Linux by real programs."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.canary import Canaries
from tests.rig.mac_doors import MacDoors, own_address

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")

ECHO = """
s.sendall(b"hello"); print(s.recv(5), s.getpeername()[:2])
"""


@pytest.mark.parametrize(
    ("family", "host", "meant"),
    [
        ("AF_INET", "192.0.2.7", "192.0.2.7"),
        ("AF_INET6", "2001:db8::7", "2001:db8::7"),
        ("AF_INET6", "::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
@pytest.mark.parametrize("mode", ["", "s.setblocking(False)", "s.settimeout(5)"])
def test_a_connection_comes_to_the_door_with_its_address(
    doors: MacDoors, family: str, host: str, meant: str, mode: str
) -> None:
    """Whether the socket blocks or not: the program finds itself connected, and to whom it asked for."""
    doors.serve = doors.echo
    code = f"s = socket.socket(socket.{family})\n{mode}\ns.connect(({host!r}, 443))\nblocks = s.getblocking()\n"
    end = f"s.setblocking(True)\n{ECHO}\nprint(blocks)"
    assert doors.python(code + end) == [f"b'hello' {(host, 443)}", str(mode != "s.setblocking(False)")]
    assert doors.meant == [(meant, 443)]


def test_a_socket_for_ipv6_only_has_a_door_of_its_family(doors: MacDoors) -> None:
    doors.serve = doors.echo
    code = f"""
s = socket.socket(socket.AF_INET6); s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
s.connect(("2001:db8::7", 443))
{ECHO}"""
    assert doors.python(code) == ["b'hello' ('2001:db8::7', 443)"]
    assert [server.accepts for server in doors.servers] == [0, 1]


def test_an_event_loop_connects_many_at_once(doors: MacDoors) -> None:
    doors.serve = doors.echo
    code = """
import asyncio
async def one(number):
    reader, writer = await asyncio.open_connection(f"198.51.100.{number}", 8000 + number)
    writer.write(b"%d" % number)
    assert int(await reader.read(9)) == number
    peer = writer.get_extra_info("peername")
    writer.close()
    return peer
async def main(): return await asyncio.gather(*(one(number) for number in range(1, 41)))
print(asyncio.run(main()) == [(f"198.51.100.{number}", 8000 + number) for number in range(1, 41)])
"""
    assert doors.python(code) == ["True"]
    assert sorted(doors.meant) == sorted((f"198.51.100.{number}", 8000 + number) for number in range(1, 41))


def test_who_is_connected_is_told_so_by_the_kernel_and_keeps_his_peer(doors: MacDoors) -> None:
    doors.serve = doors.echo
    code = """
s = socket.create_connection(("192.0.2.7", 443))
print(attempt(s.connect, ("192.0.2.8", 443)), attempt(s.connect, ("127.0.0.1", 9)), s.getpeername())
s.sendall(b"once"); print(s.recv(9))
"""
    assert doors.python(code) == ["EISCONN EISCONN ('192.0.2.7', 443)", "b'once'"]
    assert doors.meant == [("192.0.2.7", 443)]


def test_a_descriptor_that_is_used_again_is_shown_its_own_peer(doors: MacDoors) -> None:
    """Who connects to the door itself, as by a proxy variable, sees the door."""
    door = doors.session.map.egress
    code = f"""
first = socket.create_connection(("192.0.2.7", 443)); number = first.fileno(); first.close()
s = socket.create_connection(("127.0.0.1", {door})); print(s.fileno() == number, s.getpeername()); s.close()
s = socket.create_connection(("192.0.2.9", 80)); print(s.fileno() == number, s.getpeername(), flush=True)
if child := os.fork(): os.waitpid(child, 0)
print(s.getpeername(), flush=True)
"""
    lines = doors.python(code)
    assert lines[:2] == [f"True ('127.0.0.1', {door})", "True ('192.0.2.9', 80)"]
    assert lines[2:] == ["('192.0.2.9', 80)"] * 2, "a child has what its parent had"


def test_a_door_that_is_gone_is_a_refused_connection_and_the_socket_can_be_used_again(doors: MacDoors) -> None:
    """INV-1."""
    doors.close()
    code = """
for family, host in ((socket.AF_INET, "192.0.2.7"), (socket.AF_INET6, "2001:db8::7")):
    for blocks in (True, False):
        s = socket.socket(family); s.setblocking(blocks)
        print(attempt(s.connect, (host, 443)), attempt(s.getpeername), s.getblocking())
server = socket.create_server(("127.0.0.1", 0))
s = socket.socket(); attempt(s.connect, ("192.0.2.7", 443)); s.connect(server.getsockname())
s.sendall(b"x"); print(server.accept()[0].recv(1))
"""
    refused = [f"ECONNREFUSED ENOTCONN {blocks}" for blocks in (True, False)] * 2
    assert doors.python(code) == [*refused, "b'x'"]


def test_a_door_that_takes_nobody_is_a_refused_connection_within_its_time(doors: MacDoors) -> None:
    """Its queue is full: the kernel says nothing at all, and an event loop must not wait for that."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        doors.session.map.egress = full.getsockname()[1]
        code = f"""
kept = []
for _ in range(4):
    s = socket.socket(); s.setblocking(False); s.connect_ex(("127.0.0.1", {full.getsockname()[1]})); kept.append(s)
for blocks in (True, False):
    s = socket.socket(); s.setblocking(blocks)
    print(attempt(s.connect, ("192.0.2.7", 443)), attempt(s.send, b"x") != 1, s.getblocking())
"""
        assert doors.python(code) == ["ECONNREFUSED True True", "ECONNREFUSED True False"]
    assert doors.accepts == 0


def test_a_door_that_hangs_up_kills_nobody(doors: MacDoors) -> None:
    """No SIGPIPE of the library's making."""

    def hang_up(stream: socket.socket, _visit: object) -> None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        stream.close()

    doors.serve = hang_up
    code = """
import signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
for _ in range(50): attempt(socket.create_connection, ("192.0.2.7", 443))
print("alive")
"""
    assert doors.python(code) == ["alive"]


def test_sockets_that_are_no_streams_are_left_to_the_kernel(doors: MacDoors, tmp_path: Path) -> None:
    code = f"""
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.connect(("192.0.2.7", 443)); print(udp.getpeername())
unix = socket.socket(socket.AF_UNIX); print(attempt(unix.connect, {str(tmp_path / "none")!r}))
udp.connect_ex(("0.0.0.0", 0)); print(attempt(socket.socket(socket.AF_INET6).connect, ("::1", 1)))
"""
    assert doors.python(code) == ["('192.0.2.7', 443)", "ENOENT", "ECONNREFUSED"]
    assert doors.accepts == 0


def test_a_map_that_went_bad_is_a_refusal(doors: MacDoors) -> None:
    """INV-1: it was there and is not to be read any more; nobody then goes around the door."""
    code = f"""
socket.create_connection(("192.0.2.7", 443))
open({str(doors.session.path)!r}, "r+b").write(b"xxxx")
print(attempt(socket.create_connection, ("192.0.2.7", 443)), attempt(socket.gethostbyname, "example.com"))
"""
    assert doors.python(code) == ["EACCES EAI_FAIL"]
    assert (len(doors.meant), doors.authority.names) == (1, [])


@pytest.mark.parametrize("egress", [True, False])
def test_nothing_reaches_the_address_itself(doors: MacDoors, canary: Canaries, egress: bool) -> None:
    """The twin without a door shows that the canary would have noticed."""
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    server = canary.http(address)
    if not egress:
        doors.session.map.egress = 0
    code = f"""
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
print(opener.open("http://{address}:{server.port}/").read())
"""
    assert doors.python(code) == [str(b"by the door\n" if egress else b"canary\n")]
    assert (server.accepts, doors.meant) == ((0, [(address, server.port)]) if egress else (1, []))


def test_threads_that_connect_and_fork_at_once_meet_their_own(doors: MacDoors, program: Callable[..., Path]) -> None:
    doors.serve = doors.echo
    done = doors.run(program("elsewhere"), 30, timeout=120)
    assert (done.returncode, done.stdout) == (0, "lost 0\n"), done.stderr


def test_nothing_is_allocated_on_the_way(doors: MacDoors, program: Callable[..., Path]) -> None:
    done = doors.run(program("allocations"), "elsewhere", 3000)
    assert (done.returncode, done.stdout) == (0, "allocated 0 times, good\n"), done.stderr
    assert doors.meant == [("192.0.2.7", 443)]
