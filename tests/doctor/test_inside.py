"""The probe program tells truly what it achieved and what prevented it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.wire import Query, parse_query

from netsandbox.doctor.canary import Canary
from netsandbox.doctor.control import Control
from netsandbox.doctor.inside import streams
from netsandbox.doctor.inside.questions import question
from netsandbox.doctor.inside.verbs import attempt
from netsandbox.doctor.jail import PROGRAM


def test_what_the_kernel_refuses_is_named_by_its_error():
    canary = Canary(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")
    target = {"host": "127.0.0.1", "port": canary.port}
    canary.close()
    assert attempt("tcp", target) == (False, "ECONNREFUSED")
    assert attempt("append", {"path": "/proc/nowhere/x", "text": ""}) == (False, "ENOENT")


def test_an_answer_is_an_achievement():
    import threading

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
    assert streams._refusal(head) == said


LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20)


@given(st.lists(LABEL, min_size=1, max_size=5).map(".".join), st.integers(1, 65535))
def test_a_question_is_one_that_name_servers_read(name, kind):
    query = parse_query(question(name, kind))
    assert isinstance(query, Query)
    assert (query.name.decode(), query.qtype) == (name, kind)


def test_the_program_runs_alone_with_nothing_but_the_standard_library():
    wishes = [
        {"probe": "p", "verb": "no-filter", "with": {}},
        {"probe": "q", "verb": "unix-stream", "with": {"path": "/x"}},
    ]
    run = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, json.dumps(wishes)], cwd="/", env={}, capture_output=True, check=True
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert [answer["probe"] for answer in answers] == ["p", "q"]
    assert answers[1] == {"probe": "q", "done": False, "said": "ENOENT"}
