"""A live session as `ps` and its sisters see one: a real control socket on a real loop, without a sandbox around it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from netsandbox.paths import new_session_id, session_dir
from netsandbox.runtime.control_socket import CONTROL_NAME
from netsandbox.runtime.loop import IN, Loop
from netsandbox.session.control import Control

DYING = """\
import sys
from netsandbox.session.control import Control
from netsandbox.runtime.loop import Loop
loop = Loop()
control = Control(loop, sys.argv[1], dict, lambda: None)
print("up", flush=True)
loop.run()
"""


def port(number: int = 3000, host_port: int = 20000, **changes: object) -> dict[str, object]:
    return {
        "port": number,
        "address": "127.0.0.1",
        "host_address": "127.0.0.1",
        "host_port": host_port,
        "device_address": None,
        "url": f"http://{number}.shop.localhost:20099/",
        "pid": 4711,
        "exe": "/usr/bin/node",
        "since": 1_700_000_000,
        **changes,
    }


def status_of(session: str, **changes: object) -> dict[str, object]:
    return {
        "v": 1,
        "session": session,
        "name": "shop",
        "pid": os.getpid(),
        "init": 4700,
        "command": ["npm", "run", "dev"],
        "folder": "/srv/shop",
        "started": int(time.time()) - 125,
        "mode": "filtered",
        "strategy": "isolate",
        "engine": "kernel",
        "window": {"base": 20000, "count": 100},
        "device": "127.78.32.1",
        "publishes": True,
        "allowed": 7,
        "denied": 2,
        "flows": 1,
        "processes": 2,
        "cpu_seconds": 1.5,
        "memory_bytes": 4096,
        "limits": None,
        "audit_log": "/srv/log",
        "ports": [port()],
        "pending": [],
        **changes,
    }


def question(number: int = 4711, host: str = "asked.test", **changes: object) -> dict[str, object]:
    return {
        "id": number,
        "host": host,
        "port": 443,
        "until": int(time.time()) + 3600,
        "pid": 4712,
        "exe": "/usr/bin/node",
        "waiting": 1,
        **changes,
    }


class LiveSession:
    """Answers until `end`, or until it is asked to stop, unless it is *stubborn*. Other requests are `heard`, and it
    `says` that to them; None: that it knows none such."""

    def __init__(self, *, stubborn: bool = False, **changes: object) -> None:
        self.id = new_session_id()
        self.path = os.path.join(session_dir(self.id), CONTROL_NAME)
        self.status = status_of(self.id, **changes)
        self.stops = 0
        self.heard: list[tuple[bytes, int, int]] = []
        self.says: bytes | None = None
        self.errors: list[BaseException] = []
        self._stubborn = stubborn
        self._loop = Loop(self.errors.append)
        self._wake = os.pipe()
        self._loop.watch(self._wake[0], IN, lambda events: self._loop.stop())
        self.control = Control(self._loop, self.path, lambda: self.status, self._stop, self._hear)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _hear(self, line: bytes, pid: int, uid: int) -> bytes | None:
        self.heard.append((line, pid, uid))
        return self.says

    def _stop(self) -> None:
        self.stops += 1
        if not self._stubborn:
            self._loop.call_later(0.1, self._loop.stop)

    def _run(self) -> None:
        try:
            self._loop.run()
        finally:
            self.control.close()
            self._loop.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        if self._wake[1] >= 0:
            os.write(self._wake[1], b".")
            self._thread.join(20)
            for fd in self._wake:
                os.close(fd)
            self._wake = (-1, -1)


@contextmanager
def sessions(*wanted: dict[str, object]) -> Iterator[list[LiveSession]]:
    """One session for each set of changes, ended at the end."""
    started: list[LiveSession] = []
    try:
        for changes in wanted:
            started.append(LiveSession(**changes))  # type: ignore[arg-type]
        yield started
    finally:
        for session in started:
            session.end()


def killed_session() -> str:
    """The control socket of a session whose supervisor was killed: nobody could remove it."""
    path = os.path.join(session_dir(new_session_id()), CONTROL_NAME)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", DYING, path], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert os.path.exists(path)
    return path
