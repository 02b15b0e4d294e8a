"""The program of the probes runs alone and names every error."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

from netsandbox.doctor.inside.attempts import attempt
from netsandbox.doctor.jail import PROGRAM
from netsandbox.doctor.servers import Canary


def test_a_refusal_of_the_kernel_is_named_by_its_error():
    canary = Canary(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")
    target = {"host": "127.0.0.1", "port": canary.port}
    canary.close()
    assert attempt("tcp", target) == (False, "ECONNREFUSED")
    assert attempt("append", {"path": "/proc/nowhere/x", "text": ""}) == (False, "ENOENT")


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
