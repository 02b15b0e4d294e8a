"""The kernel's table of sockets: what it says is read exactly, whatever else stands in it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.socket_table import find_inode, listeners, local_ports, read_address, table_address


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


def test_a_row_is_found_among_those_that_look_like_it():
    closed = "   0: 0100007F:0035 0100007F:9999 06 00000000:00000000 03:000017C4 00000000     0        0 0 3 x\n"
    reverse = "   1: 0100007F:9999 0100007F:0035 01 00000000:00000000 00:00000000 00000000  1000        0 777 1 x\n"
    live = "   2: 0100007F:0035 0100007F:9998 01 00000000:00000000 00:00000000 00000000  1000        0 888 1 x\n"
    assert find_inode(closed + reverse + live, "0100007F:0035") == "888"


@given(st.ip_addresses(), st.integers(0, 65535))
def test_what_was_written_is_read_back(address, port):
    assert read_address(table_address(str(address), port)) == (socket.inet_ntop(*_packed(address)), port)


def _packed(address):
    return (socket.AF_INET if address.version == 4 else socket.AF_INET6), address.packed


def test_sockets_that_listen_are_listed_and_others_are_not():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        table = Path("/proc/self/net/tcp").read_text(encoding="ascii")
        found = {(address, port): inode for address, port, inode in listeners(table)}
        assert found[server.getsockname()] == str(os.fstat(server.fileno()).st_ino)
        assert client.getsockname() not in found


def test_listeners_of_ipv6_are_read_too():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        table = Path("/proc/self/net/tcp6").read_text(encoding="ascii")
        assert server.getsockname()[:2] in [(address, port) for address, port, _ in listeners(table)]


@given(st.text())
def test_lines_that_are_no_rows_are_passed_over(table):
    assert all(0 <= port <= 65535 for _, port, _ in listeners(table))


def row(local, state="0A", inode="7", *, number=0):
    rest = f"00000000:00000000 00:00000000 00000000     0        0 {inode} 1 x"
    return f"{number:4d}: {local} 00000000:0000 {state} {rest}\n"


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
STATES = [f"{state:02X}" for state in range(1, 13)]


@given(st.lists(st.tuples(st.ip_addresses(), st.integers(0, 65535), st.sampled_from(STATES)), max_size=8))
def test_of_any_table_exactly_the_listeners_are_listed(rows):
    table = HEAD + "".join(
        row(table_address(str(address), port), state, str(number), number=number)
        for number, (address, port, state) in enumerate(rows)
    )
    expected = [
        (socket.inet_ntop(*_packed(address)), port, str(number))
        for number, (address, port, state) in enumerate(rows)
        if state == "0A"
    ]
    assert list(listeners(table)) == expected
    assert local_ports(table) == {port for _, port, _ in rows}


@given(st.sampled_from(["0100007F:1F90", "0" * 32 + ":0050"]), st.data())
def test_a_row_cut_anywhere_is_whole_or_nothing(local, data):
    """A table that ends in the middle of a line names no port that is not there."""
    whole = row(local, inode="4711")
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    for address, port, inode in listeners(cut):
        assert (address, port) == read_address(local)
        assert "4711".startswith(inode)


def test_a_word_that_only_looks_like_the_state_does_not_listen():
    """0A may stand as another field too."""
    assert list(listeners(row("0100007F:1F90", "01").replace(" 1 x", " 0A x"))) == []


@given(st.text(), st.text("0123456789ABCDEF:", max_size=40))
def test_a_port_in_use_is_found_whatever_else_stands_in_the_table(table, local):
    assert 8080 in local_ports(HEAD + row("0100007F:1F90") + table + "\n" + row(local))
