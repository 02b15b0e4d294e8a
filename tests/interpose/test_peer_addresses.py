"""Programs that bring a resolver of their own: their questions go to the session's, and they never notice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.canary import Canaries
from tests.rig.mac_doors import MacDoors, own_address

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")

SERVER = "192.0.2.53"
# A question for the address of example.com, and what of an answer shows that it is one.
DNS = """
QUESTION = bytes.fromhex("5353 0100 0001 0000 0000 0000 07") + b"example" + b"\\3com\\0" + bytes.fromhex("0001 0001")
def right(data): return data[:2] == QUESTION[:2] and data[-4:] == bytes([198, 18, 0, 9])
"""


@pytest.fixture
def asked(doors: MacDoors) -> MacDoors:
    doors.authority.answer("example.com", "198.18.0.9")
    return doors


@pytest.mark.parametrize(
    "send",
    [
        "s.sendto(QUESTION, SERVER)",
        "s.sendmsg([QUESTION], [], 0, SERVER)",
        "s.connect(SERVER); print(s.getpeername()); s.send(QUESTION)",
    ],
)
@pytest.mark.parametrize("receive", ["data, sender = s.recvfrom(512)", "data, _, _, sender = s.recvmsg(512)"])
def test_a_question_is_answered_by_whom_it_was_sent_to(asked: MacDoors, send: str, receive: str) -> None:
    code = f"{DNS}\nSERVER = ({SERVER!r}, 53)\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10)\n"
    lines = asked.python(f"{code}{send}\n{receive}\nprint(right(data), sender)")
    assert lines[-1] == f"True ({SERVER!r}, 53)"
    assert lines[:-1] == [f"({SERVER!r}, 53)"] * ("connect" in send)
    assert [(query.name, query.transport) for query in asked.authority.queries] == [("example.com.", "udp")]


def test_a_question_by_ipv6_comes_to_the_door_of_that_family(asked: MacDoors, canary: Canaries) -> None:
    door = canary.udp("::1", asked.session.map.resolver, reply=b"answer")
    code = """
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(10)
s.sendto(b"question", ("2001:db8::53", 53)); print(s.recvfrom(9))
s.sendto(b"question", ("::ffff:192.0.2.53", 53)); print(s.recvfrom(9)[1][0])
"""
    assert asked.python(code) == ["(b'answer', ('2001:db8::53', 53, 0, 0))", "::ffff:192.0.2.53"]
    assert door.datagrams == [b"question"] * 2


def test_a_question_by_tcp_comes_without_a_preamble(asked: MacDoors) -> None:
    code = f"""{DNS}
for blocks in (True, False):
    s = socket.socket(); s.setblocking(blocks)
    print(s.connect_ex(({SERVER!r}, 53)) in (0, errno.EINPROGRESS)); s.settimeout(10)
    s.sendall(len(QUESTION).to_bytes(2, "big") + QUESTION)
    size = int.from_bytes(s.recv(2, socket.MSG_WAITALL), "big")
    print(right(s.recv(size, socket.MSG_WAITALL)), s.getpeername())
"""
    assert asked.python(code) == ["True", f"True ({SERVER!r}, 53)"] * 2
    assert [query.transport for query in asked.authority.queries] == ["tcp"] * 2
    assert asked.accepts == 0


def test_without_a_resolver_port_53_is_a_port_like_any_other(asked: MacDoors) -> None:
    asked.session.map.resolver = 0
    assert asked.python(f"socket.create_connection(({SERVER!r}, 53)); print('connected')") == ["connected"]
    assert asked.meant == [(SERVER, 53)]


def test_a_dissolved_socket_has_no_peer(asked: MacDoors, program: Callable[..., Path]) -> None:
    done = asked.run(program("forgetting"))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_many_messages_at_once_are_answered(asked: MacDoors, program: Callable[..., Path]) -> None:
    done = asked.run(program("questions"))
    assert (done.returncode, done.stdout) == (0, "answered 20\n"), done.stderr
    assert asked.authority.names == ["example.com"] * 20


@pytest.mark.parametrize("resolver", [True, False])
def test_no_question_reaches_the_address_itself(asked: MacDoors, canary: Canaries, resolver: bool) -> None:
    """Root may have port 53; the twin shows that the canary would have noticed."""
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    try:
        server = canary.udp(address, 53, reply=b"canary")
    except PermissionError:
        pytest.skip("port 53 is root's")
    if not resolver:
        asked.session.map.resolver = 0
    code = f"""{DNS}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10)
s.sendto(QUESTION, ({address!r}, 53)); data, sender = s.recvfrom(512); print(right(data), sender)
"""
    assert asked.python(code) == [f"{resolver} ({address!r}, 53)"]
    assert len(server.datagrams) == (not resolver)
