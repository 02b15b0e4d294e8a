"""The door of a session on a Mac: the same gate, behind a token."""

from __future__ import annotations

import base64
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from netsandbox.audit.log import AuditLog
from netsandbox.host_resolver import HostResolver
from netsandbox.loop import Loop
from netsandbox.macos.door_sockets import DoorSockets
from netsandbox.macos.doors import MacDoors
from netsandbox.policy.policy import Policy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="plays a Mac on Linux; test_on_a_mac.py needs no play")

TOKEN = b"0123456789abcdef0123456789abcdef"


def open_doors(loop: Loop, log: Any, sockets: DoorSockets, token: bytes = TOKEN) -> MacDoors:
    return MacDoors(
        loop,
        Policy(allow_domains=["allowed.test"]),
        log,
        HostResolver(()),
        sockets.sockets,
        token=token,
        own=frozenset,
        parent=None,
    )


def test_a_door_without_a_token_is_not_opened(tmp_path: Path) -> None:
    """INV-1: on a loopback that everybody shares it would be everybody's proxy."""
    sockets = DoorSockets((), listens=True)
    with pytest.raises(ValueError, match="token"):
        open_doors(Loop(), None, sockets, token=b"")
    sockets.close()


@pytest.mark.attack(182)
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_with_the_token_the_gate_decides_and_without_it_nobody_is_asked(tmp_path: Path, address: str) -> None:
    loop, sockets = Loop(), DoorSockets((), listens=True)
    log = AuditLog.open(str(tmp_path / "audit.jsonl"), "20261116T000000000-0000000000000000", cap_bytes=None)
    doors = open_doors(loop, log, sockets)
    answers: list[bytes] = []

    def ask() -> None:
        for password in (TOKEN, b"1" * 32):
            with socket.create_connection((address, sockets.port), 5) as client:
                secret = base64.b64encode(b"x:" + password)
                client.sendall(
                    b"GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n"
                    b"Proxy-Authorization: Basic " + secret + b"\r\n\r\n"
                )
                answers.append(client.recv(4096).split(b" ")[1])
        loop.call_later(0, loop.stop)

    thread = threading.Thread(target=ask)
    thread.start()
    loop.call_later(10, loop.stop)
    loop.run()
    thread.join(5)
    doors.close()
    assert doors.flows == 0
    log.close()
    loop.close()
    assert answers == [b"403", b"407"]
    written = (tmp_path / "audit.jsonl").read_text()
    assert written.count("denied.test") >= 1
    assert TOKEN.decode() not in written
