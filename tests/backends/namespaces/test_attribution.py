"""Which program a connection belongs to: found by the session's own socket table, never at the cost of a verdict."""

from __future__ import annotations

import os
import signal
import socket

from netsandbox.backends.namespaces.attribution import BURST, SHARE, Attribution


def test_the_holder_of_a_live_connection_is_named():
    """Our own process stands in for PID 1: its child holds the client's end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready, go = os.pipe()
        child = os.fork()
        if child == 0:
            client = socket.create_connection(server.getsockname())
            os.close(go)
            os.read(ready, 1)
            client.close()
            os._exit(0)
        os.close(ready)
        accepted, source = server.accept()
        try:
            assert Attribution(os.getpid(), lambda: 1.0)(source) == (child, os.readlink("/proc/self/exe"))
        finally:
            os.close(go)
            os.waitpid(child, 0)
            accepted.close()


def test_the_holder_is_named_though_its_other_descriptors_come_and_go():
    """A busy client: a descriptor that is closed between two looks says nothing of the ones after it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = os.fork()
        if child == 0:
            spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
            client = socket.create_connection(server.getsockname())
            client.send(b"r")
            while True:
                for descriptor in spare:
                    os.close(descriptor)
                spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
        try:
            accepted, source = server.accept()
            accepted.recv(1)
            attribution = Attribution(os.getpid(), lambda: 1.0)
            named = [attribution(source) for _ in range(40)]
            accepted.close()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert set(named) == {(child, os.readlink("/proc/self/exe"))}


def test_a_client_that_is_gone_is_left_out():
    assert Attribution(os.getpid(), lambda: 1.0)(("127.0.0.1", 1)) is None
    assert Attribution(2**22 + 1, lambda: 1.0)(("127.0.0.1", 1)) is None


def test_a_storm_gets_no_more_than_its_share_of_time(monkeypatch):
    """Each look-up takes 5 ms here, and connections come every millisecond for ten seconds."""
    now, spent = [0.0], [0.0]
    attribution = Attribution(os.getpid(), lambda: now[0])

    def slow(*source):
        now[0] += 0.005
        spent[0] += 0.005

    monkeypatch.setattr(attribution, "_inode", slow)
    while now[0] < 10:
        now[0] += 0.001
        attribution(("127.0.0.1", 1))
    assert spent[0] <= BURST + SHARE * now[0] + 0.005


def test_the_holder_of_a_datagram_socket_is_named_however_often():
    """Without a bound, as for tests that are blamed for what they did."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(("127.0.0.1", 9))
    source = client.getsockname()
    child = os.fork()
    if child == 0:
        signal.pause()
    client.close()
    try:
        attribution = Attribution(os.getpid(), lambda: 1.0, is_bounded=False)
        attribution._left = -1.0
        assert attribution(source, "udp") == (child, os.readlink("/proc/self/exe"))
        assert attribution(source) is None
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
