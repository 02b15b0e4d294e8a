"""Whether a server speaks TLS is read from its answer: real servers with TLS and without."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from netsandbox_portmap.tls_answer import PROBE, FirstAnswer, is_tls

from tests.rig.certificates import CertificateAuthority
from tests.rig.waiting import PATIENCE, wait_for


def first_answer(rig: Any, port: int, data: bytes = PROBE, seconds: float = PATIENCE) -> tuple[bytes, bytes]:
    sock = rig.client(port)
    sock.setblocking(False)
    answers: list[tuple[bytes, bytes]] = []
    question = rig.run(
        lambda: FirstAnswer(rig.loop, sock, data, lambda first, unsent: answers.append((first, unsent)), seconds)
    )
    rig.run(question.start)
    wait_for(lambda: answers)
    return answers[0]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_server_with_tls_answers_the_probe_with_tls(rig: Any, ca: CertificateAuthority, version: str) -> None:
    import ssl

    context = ca.issue("localhost").context()
    context.minimum_version = ssl.TLSVersion[version]

    def serve(peer: socket.socket) -> None:
        try:
            context.wrap_socket(peer, server_side=True).close()
        except OSError:
            pass

    first, unsent = first_answer(rig, rig.server(serve).port)
    assert is_tls(first)
    assert unsent == b""


def test_a_server_without_tls_does_not(rig: Any) -> None:
    first, _ = first_answer(rig, rig.server(lambda peer: peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")).port)
    assert first
    assert not is_tls(first)


def test_a_server_that_closes_or_says_nothing_is_none(rig: Any) -> None:
    assert first_answer(rig, rig.server(lambda peer: None).port)[0] == b""
    assert first_answer(rig, rig.server(lambda peer: peer.recv(9999) and peer.recv(1)).port, seconds=0.1)[0] == b""


@pytest.mark.parametrize("first", [b"", b"\x16", b"\x15", b"H", b"HTTP/1.1", b"\x16\x02", b"\x17\x03\x03"])
def test_what_is_no_record_of_tls(first: bytes) -> None:
    assert not is_tls(first)
