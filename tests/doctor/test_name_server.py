"""The counting name server answers its names and counts every question, by UDP and by TCP."""

from __future__ import annotations

import socket

import pytest

from netsandbox.doctor.attendant import ProbeResponder
from netsandbox.doctor.inside.prevented import Prevented
from netsandbox.doctor.inside.questions import ask
from netsandbox.doctor.name_server import NameServer


@pytest.fixture
def server():
    made, attendant = NameServer(["known.test"]), ProbeResponder()
    attendant.watch(made.datagrams, made.serve_datagram)
    attendant.watch(made.stream, made.serve_stream)
    attendant.start()
    yield made
    attendant.close()
    made.close()


@pytest.mark.parametrize("tcp", [False, True])
def test_a_known_name_is_answered_and_counted(server, tcp):
    assert ask(server.address, server.port, "KNOWN.test", tcp=tcp) == "1 records"
    assert (server.heard("known.test"), server.total) == (1, 1)


@pytest.mark.parametrize(
    ("name", "kind", "said"), [("other.test", 1, "NXDOMAIN"), ("known.test", 16, "without a record")]
)
def test_what_has_no_answer_is_counted_all_the_same(server, name, kind, said):
    with pytest.raises(Prevented, match=said):
        ask(server.address, server.port, name, kind)
    assert server.asked[name, kind] == 1


def test_bytes_that_are_no_question_count_too(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"secret", (server.address, server.port))
    with pytest.raises(Prevented):
        ask(server.address, server.port, "other.test")
    assert server.total == 2
