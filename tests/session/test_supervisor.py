"""The supervisor serves until the command has ended, and notices that end after any earlier error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from netsandbox import LocalhostSettings, Policy, RunSettings, Sandbox
from netsandbox.backends.namespaces.inside_sockets import InsideSockets
from netsandbox.backends.namespaces.launch import Helper, Message

# Listens, so that a socket arrives from inside over the channel; continues once the file exists that reports this.
LISTEN = """
import os, socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
until = time.monotonic() + 30
while not os.path.exists(sys.argv[1]) and time.monotonic() < until:
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def private_state(workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with Sandbox(Policy()) as box:
        result = box.run(["python3", "-c", LISTEN, str(short_tmp / "arrived")])
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
    settings = RunSettings(localhost=LocalhostSettings(connect_host=(server.port,)))
    with Sandbox(Policy(), settings) as box:
        patience = "60" if broken else "0"
        result = box.run(["python3", "-c", LATER, str(short_tmp / "arrived"), patience, str(server.port)])
    assert (result.returncode, server.accepts) == ((-9, 0) if broken else (0, 1))
