"""The probe program tells truly what it achieved and what prevented it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.wire import Query, parse_query

from netsandbox.doctor.inside import network
from netsandbox.doctor.inside.attempts import attempt
from netsandbox.doctor.inside.network import encode_query
from netsandbox.doctor.jail import PROGRAM
from netsandbox.doctor.servers import Canary, Control

ROOT = Path(__file__).parents[2]


def test_what_the_kernel_refuses_is_named_by_its_error():
    canary = Canary(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")
    target = {"host": "127.0.0.1", "port": canary.port}
    canary.close()
    assert attempt("tcp", target) == (False, "ECONNREFUSED")
    assert attempt("append", {"path": "/proc/nowhere/x", "text": ""}) == (False, "ENOENT")


def test_an_answer_is_an_achievement():
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
def test_a_refusal_is_told_by_its_reason(head, said):
    assert network._refusal(head) == said


LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20)


@given(st.lists(LABEL, min_size=1, max_size=5).map(".".join), st.integers(1, 65535))
def test_a_question_is_one_that_name_servers_read(name, kind):
    query = parse_query(encode_query(name, kind))
    assert isinstance(query, Query)
    assert (query.name.decode(), query.qtype) == (name, kind)


def test_the_program_runs_alone_with_nothing_but_the_standard_library():
    probes = [
        {"probe": "p", "attempt": "no-filter", "arguments": {}},
        {"probe": "q", "attempt": "unix-stream", "arguments": {"path": "/x"}},
    ]
    run = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, json.dumps(probes)], cwd="/", env={}, capture_output=True, check=True
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert [answer["probe"] for answer in answers] == ["p", "q"]
    assert answers[1] == {"probe": "q", "succeeded": False, "detail": "ENOENT"}


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


def test_files_are_read_and_listed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "sessions" / "me" / "audit.jsonl"
    monkeypatch.setenv("NETSANDBOX_SESSION", "me")
    assert attempt("read-log", {"state": str(tmp_path)}) == (False, "ENOENT")
    log.parent.mkdir(parents=True)
    log.write_text("four")
    assert attempt("read-log", {"state": str(tmp_path)}) == (True, "read 4 bytes")
    assert attempt("read", {"path": str(log)}) == (True, "read 4 bytes")
    assert attempt("listing", {"path": str(log.parent)}) == (True, "1 names seen")


def test_a_server_stands_in_the_window_and_where_it_is_let(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_process_that_is_gone_is_not_touched() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    for name in ("end-process", "trace-process", "read-environment"):
        assert not attempt(name, {"pid": ended.pid})[0]


def test_descriptors_are_counted() -> None:
    code = (
        "from netsandbox.doctor.inside.attempts import attempt\n"
        "import os, sys\n"
        "os.closerange(3, 1024)\n"
        "print(attempt('inherited', {}))\n"
        "os.dup2(0, 9)\n"
        "print(attempt('inherited', {}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "(False, 'only 0, 1 and 2')\n(True, '1 more, the first is 9')\n"
