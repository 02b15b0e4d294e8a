"""The supervisor serves until the command has ended, and notices that end after any earlier error."""

from __future__ import annotations

import json
import select
import time
from pathlib import Path
from typing import Any

import pytest

from netsandbox import HostPort, LocalhostSettings, Policy, RunSettings
from netsandbox.backends.contract import DoorSockets
from netsandbox.backends.linux.helper_process import Message
from netsandbox.backends.namespaces.inside_sockets import InsideSockets
from netsandbox.backends.namespaces.launch import Helper
from netsandbox.policy.file_rules import FileRules
from netsandbox.runtime.loop import HUP, Loop
from netsandbox.session.doors import Doors
from netsandbox.session.supervisor import Supervisor
from tests.rig.in_process import run_here

SHARED = FileRules(share_tmp=True)  # so that the command sees the mark that a socket has arrived
# Listens, so that a socket arrives from inside over the channel; continues once the file exists that reports this.
LISTEN = """
import os, socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
until = time.monotonic() + 30
while not os.path.exists(sys.argv[1]) and time.monotonic() < until:
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def private_state(workshop: Path, private_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_fault_while_a_socket_arrives_from_inside_is_recorded_and_the_end_is_heard(
    monkeypatch: pytest.MonkeyPatch, short_tmp: Path
) -> None:
    """INV-1, INV-10: an exception in the loop would end the watch of the channel, and the session would never end."""
    arrived = InsideSockets.arrived

    def fail(self: InsideSockets, message: Any) -> None:
        arrived(self, message)
        (short_tmp / "arrived").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(InsideSockets, "arrived", fail)
    command = ["python3", "-c", LISTEN, str(short_tmp / "arrived")]
    result = run_here(Policy(), command, RunSettings(files=SHARED))
    assert result.returncode == 0
    records = [json.loads(line) for line in Path(result.audit_log).read_text().splitlines()]
    assert "No space left" in next(record["detail"] for record in records if record.get("reason") == "internal")
    assert [record["event"] for record in records][-2:] == ["session.end", "audit.seal"]


LATER = f"""{LISTEN}
time.sleep(float(sys.argv[2]))
socket.create_connection(("127.0.0.1", int(sys.argv[3])), 20).close()
"""


@pytest.mark.parametrize("broken", [False, True])
def test_a_channel_that_cannot_be_read_ends_the_session(
    monkeypatch: pytest.MonkeyPatch, canary: Any, short_tmp: Path, broken: bool
) -> None:
    """INV-1, INV-10: the command is no longer supervised, so it is ended before it does anything further."""
    server = canary.tcp()
    receive = Helper.receive

    def fail(self: Helper) -> Message:
        message = receive(self)
        if message.kind == "N":
            (short_tmp / "arrived").touch()
            if broken:
                raise OSError(5, "Input/output error")
        return message

    monkeypatch.setattr(Helper, "receive", fail)
    settings = RunSettings(localhost=LocalhostSettings(connect_host=(HostPort(server.port),)), files=SHARED)
    patience = "60" if broken else "0"
    command = ["python3", "-c", LATER, str(short_tmp / "arrived"), patience, str(server.port)]
    result = run_here(Policy(), command, settings)
    assert (result.returncode, server.accepts) == ((-9, 0) if broken else (0, 1))


class EndsFirst:
    """epoll for a busy supervisor: it looks late, and sees the sockets first whose other end is gone."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._is_late = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        if self._is_late:
            time.sleep(0.4)
        self._is_late = False
        return sorted(self._epoll.poll(timeout, maxevents), key=lambda event: not event[1] & HUP)


@pytest.mark.parametrize("backend", ["namespaces", "broker"])
@pytest.mark.parametrize("reaches_out", [False, True])
def test_doors_open_for_a_packet_and_not_for_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, backend: str, reaches_out: bool
) -> None:
    """The end of all sockets comes with the last message, or before it. A connection that was tried before is recorded
    still."""
    opened: list[DoorSockets] = []
    open_doors = Supervisor._open_doors

    def count(self: Supervisor, sockets: DoorSockets) -> Doors:
        opened.append(sockets)
        return open_doors(self, sockets)

    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(Supervisor, "_open_doors", count)
    monkeypatch.setattr(Loop, "_open_poll", lambda self: EndsFirst())
    command = ["curl", "-sS", "-m", "5", "http://10.1.2.3/"] if reaches_out else ["true"]
    result = run_here(Policy(["example.com"]), command, RunSettings(backend=backend))
    assert len(opened) == reaches_out
    assert [denial.host for denial in result.denied] == (["10.1.2.3"] if reaches_out else [])
