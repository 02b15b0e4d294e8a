"""A session of a Mac while it runs: it is asked, stopped and signalled as on Linux."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig import ports
from tests.rig.leftovers import what_stays
from tests.rig.localhost import eventually
from tests.rig.processes import is_gone

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

ROOT = Path(__file__).parents[3]
PATHS = ":".join(str(ROOT / name) for name in ("", "proxy", "dns", "portmap", "interpose"))
SESSION = """
import os, sys
sys.path.insert(0, {root!r})
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox.runtime.loop import Loop
from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.policy.policy import Policy
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings
class PidfdExit:
    def __init__(self, pid): self.fd = os.pidfd_open(pid)
    def fileno(self): return self.fd
    def close(self): os.close(self.fd)
localhost = LocalhostSettings(strategy={strategy!r}, base={base}, count=3)
system = MacSystem({helper!r}, Loop, PidfdExit, lambda clock: frozenset)
policy = Policy(allow_domains=["allowed.test"])
settings = RunSettings(name="shop", localhost=localhost, mode=policy.mode)
owner = Session(settings, sealed=True, backend=lambda context: SeatbeltBackend(context, system))
status = owner.run(lambda: policy, Command({command!r}, os.environb, (0, 1, 2)))
sys.exit(os.waitstatus_to_exitcode(status) & 255)
"""
Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin(helper: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    begun: list[subprocess.Popen[str]] = []

    def begin(*command: str, strategy: str = "fail") -> subprocess.Popen[str]:
        base = ports.free_window(3)  # a window that no other session is given by itself
        text = SESSION.format(root=str(ROOT), helper=helper, command=list(command), strategy=strategy, base=base)
        begun.append(
            subprocess.Popen(
                [sys.executable, "-c", text],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": PATHS},
                start_new_session=True,
            )
        )
        return begun[-1]

    with tempfile.TemporaryDirectory(prefix="ns") as state:
        for variable in ("XDG_STATE_HOME", "TMPDIR"):  # a session that is killed leaves its temporary folder
            monkeypatch.setenv(variable, state)
        yield begin
        for process in begun:
            process.kill()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()


def ask(request: bytes) -> bytes:
    """The control socket is opened when there is time for it, and the command may be quicker."""
    (control,) = eventually(lambda: list(Path(os.environ["XDG_STATE_HOME"]).rglob("control")))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(control))
        client.sendall(request + b"\n")
        answer = b""
        while data := client.recv(65536):
            answer += data
    return answer


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_it_says_what_it_is_and_stops_when_it_is_asked(begin: Begin) -> None:
    process = begin("sh", "-c", "echo ready; exec sleep 60")
    assert line(process) == "ready"
    status: dict[str, Any] = json.loads(ask(b'{"op":"status"}'))
    assert (status["name"], status["strategy"], status["window"]["count"]) == ("shop", "fail", 3)
    assert status["pid"] == process.pid
    assert ask(b'{"op":"stop"}').startswith(b'{"ok":true}')
    assert process.wait(30) == (-signal.SIGTERM) & 255
    assert list(Path(os.environ["XDG_STATE_HOME"]).rglob("control")) == []


def test_a_mapped_port_that_is_listened_on_is_shown(begin: Begin) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    text = "import socket; s = socket.create_server(('127.0.0.1', 3000)); print('ready', flush=True); s.accept()"
    process = begin(sys.executable, "-c", text, strategy="rewire-port")
    assert line(process) == "ready"
    eventually(lambda: json.loads(ask(b'{"op":"status"}'))["ports"])
    status: dict[str, Any] = json.loads(ask(b'{"op":"status"}'))
    (shown,) = status["ports"]
    assert shown["port"] == 3000
    assert status["window"]["base"] <= shown["host_port"] < status["window"]["base"] + 3
    socket.create_connection(("127.0.0.1", shown["host_port"]), 30).close()
    assert process.wait(30) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_for_us_is_the_commands(begin: Begin, number: signal.Signals) -> None:
    process = begin("sh", "-c", f"trap 'echo heard; exit 3' {number.value}; echo ready; while :; do sleep 0.05; done")
    assert line(process) == "ready"
    process.send_signal(number)
    assert line(process) == "heard"
    assert process.wait(30) == 3


def test_when_it_is_killed_the_command_ends_and_the_window_is_free(begin: Begin) -> None:
    """INV-10."""
    process = begin("sh", "-c", "echo $$ $LISTENING_BASE_PORT; trap '' TERM HUP; while :; do sleep 0.05; done")
    pid, base = map(int, line(process).split())
    process.kill()
    process.wait(30)
    assert not what_stays(lambda: [pid] if not is_gone(pid) else [])
    with socket.socket() as free:
        free.bind(("127.0.0.1", base))


def test_without_a_control_socket_the_session_runs_all_the_same(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deep = tmp_path / "state"
    (deep / "netsandbox").mkdir(parents=True)
    (deep / "netsandbox" / "sessions").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(deep))
    process = begin("true")
    assert process.wait(20) == 0
