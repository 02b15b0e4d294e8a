"""A worker that an attacker controls: really sealed, with the sockets of a connection, running hostile code. It can't
dial, open, execute, give its sockets away or write a record, and the supervisor ends it when it lies (attack 240)."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from netsandbox_proxy.inspect import process

from netsandbox.policy.inspection import HttpRequest
from tests.rig.certificates import CertificateAuthority
from tests.rig.https_canary import HttpsCanary
from tests.rig.inspecting import EngineBench, ScriptedFlow, wait_for
from tests.rig.sources.hostile_worker import LAST
from tests.rig.workshop import ROOT

pytest.importorskip("mitmproxy")
if not sys.platform.startswith("linux"):
    pytest.skip("the engine needs seccomp", allow_module_level=True)


class Details(ScriptedFlow):
    """Keeps the texts of refusals."""

    def __init__(self, bench: EngineBench) -> None:
        super().__init__(bench)
        self.details: list[str] = []

    def refused(self, reason: str, detail: str) -> None:
        self.details.append(detail)


class Hostile:
    """Engines whose worker runs tests/rig/sources/hostile_worker.py."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ca: CertificateAuthority, server: HttpsCanary, log: Path):
        self._patch = monkeypatch
        self._ca, self._server, self._log = ca, server, log
        self._other = socket.create_server(("127.0.0.1", 0))
        self._other.settimeout(0.05)
        self._benches: list[EngineBench] = []

    def begin(self, *lies: dict[str, Any]) -> Details:
        """A connection that is passed to such a worker, which has tried everything; then it lies."""
        repeated = [(each.pop("times", 1), each) for each in map(dict, lies)]
        port = self._other.getsockname()[1]
        code = (
            f"import sys; sys.path[:0] = [{str(ROOT)!r}, *{{paths!r}}]; from tests.rig.sources import hostile_worker;"
            f"hostile_worker.install({port}, {str(self._log)!r}, LIES);"
            "from netsandbox_proxy.inspect.engine import main; main({arguments!r})"
        ).replace("LIES", repr(repeated).replace("{", "{{").replace("}", "}}"))
        self._patch.setattr(process, "START", code)
        bench = EngineBench(self._ca.cert, self._server.port)
        self._benches.append(bench)
        near, far = socket.create_server(("127.0.0.1", 0)), None
        with near:
            client = socket.create_connection(near.getsockname())
            far, _ = near.accept()
        far.setblocking(False)
        flow = Details(bench)
        upstream = bench.dialled()
        flow.sockets += [far, upstream, client]
        opened = ("allowed.test", self._server.port, b"", (far.fileno(), upstream.fileno()))
        flow.identity = bench.call(lambda: bench.client.open(flow, *opened))
        assert wait_for(lambda: LAST in flow.details)
        return flow

    def was_dialled(self) -> bool:
        try:
            self._other.accept()[0].close()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._other.close()
        for bench in self._benches:
            bench.close()


@pytest.fixture
def hostile(
    monkeypatch: pytest.MonkeyPatch, ca: CertificateAuthority, server: HttpsCanary, tmp_path: Path
) -> Iterator[Hostile]:
    log = tmp_path / "audit.jsonl"
    log.write_text("")
    made = Hostile(monkeypatch, ca, server, log)
    yield made
    made.close()
    assert log.read_text() == ""


def test_it_can_do_nothing_with_what_it_has(hostile: Hostile, server: HttpsCanary) -> None:
    flow = hostile.begin()
    outcomes = dict(detail.split(": ") for detail in flow.details[:-1])
    assert len(outcomes) > 40
    given = {name for name in outcomes if name.startswith("give ")}
    assert len(given) == 2
    assert {name: outcome for name, outcome in outcomes.items() if outcome != "EPERM" and name not in given} == {}
    data, extra, _, _ = flow.sockets[2].recvmsg(10, socket.CMSG_SPACE(64))
    assert (data, extra) == (b"x", [])  # a socket of TCP carries no descriptor
    assert not hostile.was_dialled()
    assert server.requests == []


ASK = {"kind": "ask", "n": 1, "method": "GET", "target": "/ok", "unclear": False}
END = {"kind": "request", "n": 1, "status": 200, "up": 0, "down": 0, "ms": 0}


@pytest.mark.parametrize(
    "lie",
    [
        {"kind": "write", "event": "egress", "verdict": "allow"},
        {"kind": "spawn"},
        {"kind": "open", "host": "other.test", "port": 443, "hello": ""},
        {"kind": "judged", "n": 1, "allow": True},
        {"kind": "authority", "pem": "-----BEGIN CERTIFICATE-----"},
        {**ASK, "n": -1},
        {**ASK, "n": 1 << 60},
        {**ASK, "n": "1"},
        {**ASK, "n": None},
        {**ASK, "method": "G" * 20000},
        {**ASK, "target": "/\u2028"},
        {**ASK, "target": None},
        {**ASK, "id": -1},
        {**ASK, "id": [1]},
        {**END, "down": 1 << 70},
        {**END, "down": 1.5},
        {**END, "status": True},
        {"kind": "refused", "reason": "rule", "detail": "x"},
        {"kind": "refused", "reason": "internal", "detail": "x" * 20000},
        {"kind": "ended", "up": 0, "down": 0, "outcome": "splice"},
        {"kind": "dial", "n": "other.test:443"},
        {"kind": ["ask"]},
    ],
    ids=str,
)  # fmt: skip
def test_a_lie_ends_it(hostile: Hostile, lie: dict[str, Any]) -> None:
    flow = hostile.begin(lie)
    assert wait_for(lambda: flow.is_lost)
    assert flow.asks == []
    assert flow.answers == []
    assert flow.end is None


def test_connections_that_are_not_its_own_are_not_touched(hostile: Hostile) -> None:
    """It may name any number; only those of connections that it serves mean something."""
    flow = hostile.begin({**ASK, "id": 999}, {**END, "id": 0}, {"kind": "ended", "id": 7, "up": 0, "down": 0,
                          "outcome": "http"}, {"kind": "dial", "id": 12, "n": 1}, ASK)  # fmt: skip
    assert wait_for(lambda: flow.asks)
    assert flow.asks == [HttpRequest("https", "GET", "/ok")]
    assert not flow.is_lost


def test_a_flood_of_messages_leaves_the_supervisor_alive(hostile: Hostile) -> None:
    long = {"kind": "refused", "reason": "internal", "detail": "x" * 1000}
    flow = hostile.begin({"kind": "pong", "times": 20000}, {**long, "times": 20000}, {**long, "detail": "the end"})
    assert wait_for(lambda: "the end" in flow.details, 30)
    assert not flow.is_lost
