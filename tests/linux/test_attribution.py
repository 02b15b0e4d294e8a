"""Which program a connection belongs to: found by the session's own socket table, never at the cost of a verdict."""

from __future__ import annotations

import os
import socket

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.linux.attribution import BURST, SHARE, Attribution, find_inode, table_address


def test_addresses_are_written_as_the_kernel_writes_them():
    assert table_address("127.0.0.1", 53) == "0100007F:0035"
    assert table_address("::1", 8080) == "00000000000000000000000001000000:1F90"


@given(st.ip_addresses(), st.integers(0, 65535))
def test_two_addresses_never_share_a_spelling(address, port):
    written = table_address(str(address), port)
    words, _, last = written.partition(":")
    restored = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    assert (restored, int(last, 16)) == (address.packed, port)


@given(st.text())
def test_a_table_of_anything_is_read_without_a_word(table):
    find_inode(table, "0100007F:0035")


def test_a_socket_without_a_holder_is_not_an_answer():
    row = "0: 0100007F:0035 0100007F:9999 06 00000000:00000000 03:000017C4 00000000 0 0 0 3"
    assert find_inode(row, "0100007F:0035") is None


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


def test_a_row_is_found_among_those_that_look_like_it():
    closed = "   0: 0100007F:0035 0100007F:9999 06 00000000:00000000 03:000017C4 00000000     0        0 0 3 x\n"
    reverse = "   1: 0100007F:9999 0100007F:0035 01 00000000:00000000 00:00000000 00000000  1000        0 777 1 x\n"
    live = "   2: 0100007F:0035 0100007F:9998 01 00000000:00000000 00:00000000 00000000  1000        0 888 1 x\n"
    assert find_inode(closed + reverse + live, "0100007F:0035") == "888"
