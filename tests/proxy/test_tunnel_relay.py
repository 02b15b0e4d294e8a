"""Bytes through a tunnel: all of them, in order, with half-close and back-pressure, by splice once it is worth it."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from typing import Any

import pytest

from netsandbox.runtime import pump

SIZE = 20_000_000


def pour(client: socket.socket, data: bytes) -> threading.Thread:
    def send() -> None:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("spliced", [True, False])
def test_many_megabytes_echo_unchanged(rig: Any, speak: Any, monkeypatch: pytest.MonkeyPatch, *, spliced: bool) -> None:
    if not spliced:
        monkeypatch.setattr(pump, "_splice", None)
    rig.canary()
    client = rig.tunnel(rig.mixed())
    data = b"\0" + os.urandom(1_000_000) * (SIZE // 1_000_000)
    thread = pour(client, data)
    back = speak.read_all(client)
    thread.join()
    assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest()
    client.close()
    rig.settle()
    assert rig.gate.named("ended")[0][3:] == (len(data), len(data), "opaque")


def test_without_a_descriptor_for_a_pipe_bytes_are_copied(
    rig: Any, speak: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from netsandbox.runtime.pump import PipePool

    monkeypatch.setattr(PipePool, "take", lambda self: None)
    rig.canary()
    client = rig.tunnel(rig.mixed())
    data = b"\0" + bytes(1_000_000)
    pour(client, data)
    assert speak.read_all(client) == data


@pytest.mark.attack(44)
def test_a_client_that_half_closes_still_hears_the_answer(rig: Any, speak: Any) -> None:
    def sum_up(canary: Any, peer: socket.socket) -> None:
        while canary.hear(peer):
            pass
        peer.sendall(b"%d" % len(canary.heard))

    rig.canary(sum_up)
    client = rig.tunnel(rig.mixed())
    client.sendall(b"\0" * 1000)
    client.shutdown(socket.SHUT_WR)
    assert speak.read_all(client) == b"1000"


@pytest.mark.attack(44)
def test_a_server_that_half_closes_still_hears_the_client(rig: Any, speak: Any) -> None:
    def last_word_first(canary: Any, peer: socket.socket) -> None:
        peer.sendall(b"bye")
        peer.shutdown(socket.SHUT_WR)
        while canary.hear(peer):
            pass

    canary = rig.canary(last_word_first)
    client = rig.tunnel(rig.mixed())
    assert speak.read_all(client) == b"bye"
    client.sendall(b"\0and one more thing")
    client.shutdown(socket.SHUT_WR)
    rig.settle()
    assert canary.everything() == b"\0and one more thing"


@pytest.mark.attack(202)
def test_a_reader_that_never_reads_stops_the_writer(rig: Any, speak: Any) -> None:
    sent = [0]

    def flood(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        while True:
            sent[0] += peer.send(bytes(65536))

    rig.canary(flood)
    client = rig.tunnel(rig.mixed())
    client.sendall(b"\0")
    speak.wait_for(lambda: speak.steady(lambda: sent[0]))
    assert 0 < sent[0] < 50_000_000
    rig.come_to_rest()
    other = rig.tunnel(rig.mixed())
    other.sendall(b"\0")
    assert other.recv(1)


@pytest.mark.attack(202)
def test_a_tunnel_without_a_byte_is_closed_when_idle_and_a_busy_one_is_not(rig: Any, speak: Any) -> None:
    rig.canary()
    port = rig.mixed(handshake=60.0, idle=1200.0)
    quiet, busy = rig.tunnel(port), rig.tunnel(port)
    for client in (quiet, busy):
        client.sendall(b"\0")
        assert client.recv(1) == b"\0"
    for _ in range(16):
        rig.skip(180.0)
        busy.sendall(b"x")
        assert busy.recv(1) == b"x"
    assert rig.flows == 1
    assert rig.gate.named("ended")[0][5] == "deadline"
    assert speak.read_all(quiet) == b""


def test_a_reset_on_one_side_resets_the_other(rig: Any) -> None:
    def slam(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    rig.canary(slam)
    client = rig.tunnel(rig.mixed())
    client.sendall(b"\0")
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert rig.gate.named("ended")[0][5] == "reset"
