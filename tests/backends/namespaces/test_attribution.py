"""Which program a connection belongs to: found by the session's own socket table, never at the cost of a verdict."""

from __future__ import annotations

import os
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
