"""Probes of the network report what they achieved and what prevented it."""

from __future__ import annotations

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.wire import Query, parse_query

from netsandbox.doctor.inside import network
from netsandbox.doctor.inside.attempts import attempt
from netsandbox.doctor.inside.network import encode_query
from netsandbox.doctor.servers import Control


def test_a_reply_is_a_success():
    control = Control()
    control._socket.settimeout(20)
    thread = threading.Thread(target=control.serve)
    thread.start()
    assert attempt("tcp", {"host": "127.0.0.1", "port": control.port}) == (True, "answered 'HTTP/1.1 200 control'")
    thread.join()
    control.close()
    assert control.visits == 1


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nX-Netsandbox-Reason: not-allowed\r\n\r\nbody", "403 not-allowed"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "HTTP/1.1 502 Bad Gateway"),
        (b"", "closed by the door"),
    ],
)
def test_a_refusal_is_reported_by_its_reason(head, said):
    assert network._refusal(head) == said


LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20)


@given(st.lists(LABEL, min_size=1, max_size=5).map(".".join), st.integers(1, 65535))
def test_an_encoded_query_is_one_that_name_servers_read(name, kind):
    query = parse_query(encode_query(name, kind))
    assert isinstance(query, Query)
    assert (query.name.decode(), query.qtype) == (name, kind)


class TestTheDoorThatTheEnvironmentNames:
    """On a Mac, where doors have numbers of their own and a token."""

    def test_is_read_with_its_token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://netsandbox:secret@localhost:20107")
        assert network.named_door() == (20107, "netsandbox", "secret")

    @pytest.mark.parametrize("url", ["", "localhost", "http://localhost"])
    def test_is_none_where_none_is_named(self, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        monkeypatch.setenv("HTTP_PROXY", url)
        for name in ("connect-door", "socks-door"):
            said = attempt(name, {"door": None, "host": "127.0.0.1", "port": 9})
            assert said == (False, "the environment names no door")

    @pytest.mark.parametrize(
        ("replies", "said"),
        [
            ([b"\x05\xff"], "the door speaks no SOCKS5"),
            ([b"\x05\x02", b"\x01\x01"], "the door does not take the password"),
            ([b"\x05\x02", b"\x01\x00", b"\x05\x02" + bytes(8)], "SOCKS5 reply 2"),
        ],
    )
    def test_asks_for_the_password_by_socks_too(
        self, monkeypatch: pytest.MonkeyPatch, replies: list[bytes], said: str
    ) -> None:
        got = []
        with socket.create_server(("127.0.0.1", 0)) as server:
            monkeypatch.setenv("HTTP_PROXY", f"http://me:word@localhost:{server.getsockname()[1]}")

            def serve() -> None:
                with server.accept()[0] as client:
                    for reply in replies:
                        got.append(client.recv(100))
                        client.sendall(reply)

            thread = threading.Thread(target=serve)
            thread.start()
            assert attempt("socks-door", {"door": None, "host": "127.0.0.1", "port": 9}) == (False, said)
            thread.join()
        assert got[0] == b"\x05\x01\x02"
        assert got[1:2] in ([], [b"\x01\x02me\x04word"])


def test_a_server_listens_in_the_window_or_on_a_given_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert attempt("listen", {"address": "127.0.0.1", "port": port}) == (False, "EADDRINUSE")
        monkeypatch.setenv("LISTENING_BASE_PORT", str(port))
        assert attempt("listen", {"address": "127.0.0.1", "port": None}) == (False, "EADDRINUSE")
    assert attempt("listen", {"address": "127.0.0.1", "port": None}) == (True, f"listens on port {port}")


def test_names_are_looked_up_as_programs_do() -> None:
    assert attempt("lookup", {"name": "localhost"}) == (True, "found 127.0.0.1")
    done, said = attempt("lookup", {"name": "no such name"})
    assert not done
    assert said
