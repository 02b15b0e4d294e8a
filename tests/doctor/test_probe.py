"""A probe is judged by the evidence from inside and outside: silence, refusal, a denial on record."""

from __future__ import annotations

import socket

from netsandbox.doctor.judgement import HOLDING, LEAK, OK, Answer
from netsandbox.doctor.probe import DENIED, REFUSED, SILENCE, Evidence, canary_probe, logged, refused
from netsandbox.doctor.servers import Canary


def test_a_canary_probe_expects_silence_and_passes_its_arguments_on() -> None:
    canary = Canary(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")
    try:
        probe = canary_probe("direct", "tcp", canary, host="127.0.0.1", port=canary.port)
        assert (probe.expected, probe.attempt, probe.arguments["port"]) == (SILENCE, "tcp", canary.port)
        assert probe.judge(Evidence(Answer(succeeded=False, detail="EACCES"))).status == OK
        socket.create_connection(("127.0.0.1", canary.port)).close()
        assert probe.judge(Evidence(Answer(succeeded=False, detail="EACCES"))).status == LEAK
    finally:
        canary.close()


def test_a_refused_probe_holds_only_where_the_attempt_failed() -> None:
    probe = refused("files", "read", path="/secret")
    assert (probe.expected, probe.arguments) == (REFUSED, {"path": "/secret"})
    assert probe.judge(Evidence(Answer(succeeded=False, detail="ENOENT"))).status == OK
    assert probe.judge(Evidence(Answer(succeeded=True, detail="read 4 bytes"))).status == LEAK


def test_a_logged_probe_needs_the_record_too() -> None:
    probe = logged("by name", "denied.test", 443)
    assert (probe.expected, probe.arguments) == (DENIED, {"host": "denied.test", "port": 443})
    assert probe.judge(Evidence(Answer(succeeded=False, detail="refused"))).status not in HOLDING
