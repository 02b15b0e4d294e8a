"""An engine without a session: real sockets, a real server, and a flow that decides as the test says."""

from __future__ import annotations

import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netsandbox_proxy.inspect.client import EngineClient, WorkerSettings
from netsandbox_proxy.inspect.process import EngineProcess

from netsandbox.backends.linux.engine_filter import engine_filter
from netsandbox.policy.budgets import Budgets, Meter, parse_budget
from netsandbox.policy.inspection import HttpRequest
from netsandbox.runtime.imports import ROOT, search_path
from netsandbox.runtime.loop import Loop
from netsandbox.runtime.session_secrets import SessionSecrets
from netsandbox.runtime.stream import reset_on_close

HOST = "allowed.test"


def import_folders() -> list[str]:
    return list(dict.fromkeys([*search_path(ROOT, sys.executable), *filter(os.path.isdir, sys.path)]))


class ScriptedFlow:
    """What the supervisor would be: remembers what the engine says, and allows targets that begin with /ok."""

    def __init__(self, bench: EngineBench) -> None:
        self._bench = bench
        self.asks: list[HttpRequest] = []
        self.answers: list[tuple[int, int]] = []
        self.heads: list[tuple[int, str, dict[str, str], str]] = []
        self.copied = {"up": b"", "down": b""}
        self.refusals: list[str] = []
        self.end: tuple[int, int, str] | None = None
        self.is_lost = False
        self.is_cut = False
        self.overdraws = False
        self.spends: list[tuple[int, int, int, int]] = []
        self.meter: Meter | None = None
        self.identity = 0
        self.sockets: list[socket.socket] = []

    def asked(self, n: int, request: HttpRequest) -> dict[str, object]:
        self.asks.append(request)
        if request.target.startswith("/ok"):
            return {"allow": True}
        return {"allow": False, "status": 403, "reason": "request-denied", "text": "not this one"}

    def answered(self, n: int, status: int, sizes: tuple[int, int], milliseconds: int) -> None:
        self.answers.append((status, sizes[1]))

    def head(self, n: int, version: str, headers: list[tuple[str, str]], side: str) -> None:
        self.heads.append((n, version, {name.lower(): value for name, value in headers}, side))

    def body(self, n: int, data: bytes, side: str) -> None:
        self.copied[side] += data

    def dial(self, n: int) -> None:
        server = self._bench.dialled()
        self.sockets.append(server)
        self._bench.client.dialled(self.identity, n, server.fileno())

    def spend(self, wanted: tuple[int, int], passed: tuple[int, int]) -> tuple[int, int] | None:
        """As the supervisor does it."""
        assert self.meter is not None
        self.spends.append((*wanted, *passed))
        up, down = min(wanted[0], self.meter.left_up()), min(wanted[1], self.meter.left_down())
        if not (up or down):
            self._bench.client.forget(self.identity)
            self.is_cut = True
            for sock in self.sockets:
                reset_on_close(sock)
            self.close()
            return None
        self.meter.charge_up(up)
        self.meter.charge_down(down)
        return up, down

    def is_overdrawn(self) -> bool:
        return self.overdraws

    def refused(self, reason: str, detail: str) -> None:
        self.refusals.append(reason)

    def ended(self, up: int, down: int, outcome: str) -> None:
        self.end = up, down, outcome
        self.close()

    def lost(self) -> None:
        self.is_lost = True
        self.close()

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


class EngineBench:
    """One engine. `connect` gives the client's end of an inspected connection to *server*."""

    def __init__(
        self, trust: Path, port: int, captured: int | None = None, secrets: SessionSecrets | None = None
    ) -> None:
        self.port = port
        self.process = EngineProcess("bench", import_folders())
        self.pem = self.process.authority()
        self.process.proceed()
        self.loop = Loop()
        self._trust = os.open(trust, os.O_RDONLY)
        filtered = engine_filter(os.uname().machine)
        settings = WorkerSettings(filtered, self._trust, 60, captured=captured, secrets=secrets)
        self.client = EngineClient(self.loop, self.process, settings)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._calls: list[Callable[[], None]] = []
        self._running = True
        self._near: list[socket.socket] = []
        self._thread.start()

    def _run(self) -> None:
        while self._running:
            self.loop.call_later(0.01, self.loop.stop)
            self.loop.run()
            while self._calls:
                self._calls.pop(0)()

    def call(self, function: Callable[[], Any]) -> Any:
        """Run *function* in the thread of the loop."""
        done = threading.Event()
        found: list[Any] = []

        def run() -> None:
            found.append(function())
            done.set()

        self._calls.append(run)
        assert done.wait(20)
        return found[0]

    def dialled(self) -> socket.socket:
        server = socket.create_connection(("127.0.0.1", self.port))
        server.setblocking(False)
        return server

    def connect(self, budget: str | None = None) -> tuple[socket.socket, ScriptedFlow]:
        near, far = socket.socketpair()
        far.setblocking(False)
        flow = ScriptedFlow(self)
        flow.meter = None if budget is None else Budgets([parse_budget(budget, "--budget")]).meter(HOST, self.port)
        server = self.dialled()
        flow.sockets += [far, server]
        sockets, metered = (far.fileno(), server.fileno()), budget is not None
        flow.identity = self.call(lambda: self.client.open(flow, HOST, self.port, b"", sockets, metered=metered))
        near.settimeout(20)
        self._near.append(near)
        return near, flow

    def secured(
        self, protocols: tuple[str, ...] = ("http/1.1",), budget: str | None = None
    ) -> tuple[ssl.SSLSocket, ScriptedFlow]:
        near, flow = self.connect(budget)
        context = ssl.create_default_context(cadata=self.pem)
        context.set_alpn_protocols(list(protocols))
        secured = context.wrap_socket(near, server_hostname=HOST)
        self._near.append(secured)
        return secured, flow

    def worker(self) -> int:
        """The process that serves."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[-1])

    def close(self) -> None:
        self._running = False
        self._thread.join()
        self.client.close()
        self.loop.close()
        os.close(self._trust)
        for sock in self._near:
            sock.close()


def wait_for(condition: Callable[[], object], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def resident(pid: int) -> int:
    """Bytes of memory that the process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def all_of(sock: socket.socket) -> bytes:
    """What comes until the end, or until nothing comes any more; ` [reset]` is put behind what was cut."""
    answer = b""
    try:
        while part := sock.recv(65536):
            answer += part
    except TimeoutError:
        answer += b" [waiting]"
    except OSError:
        answer += b" [reset]"
    return answer
