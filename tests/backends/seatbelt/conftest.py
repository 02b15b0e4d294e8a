"""A Mac as far as Linux can be one: the real helper, linked with a kernel boundary of Linux in Seatbelt's place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.backends.seatbelt.mac_system import MacSystem, this_mac
from netsandbox.policy.policy import Policy
from netsandbox.runtime.loop import Loop
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings

HERE = Path(__file__).parent
SOURCES = HERE.parents[2] / "netsandbox" / "backends" / "seatbelt" / "native"
ON_A_MAC = sys.platform == "darwin"
HOME = "/Users/tester"  # no folder of this machine: what the profile says of it concerns nobody here


@pytest.fixture(scope="session", autouse=True)
def no_home_left() -> Iterator[None]:
    """Sessions of root make the home on Linux; another user could not read it."""
    yield
    if not ON_A_MAC:
        shutil.rmtree(HOME, ignore_errors=True)
        with contextlib.suppress(OSError):  # it is missing, or holds others
            os.rmdir(os.path.dirname(HOME))


class PidfdExit:
    """Linux' own way to wait for a process."""

    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@pytest.fixture(scope="session")
def helper(tmp_path_factory: pytest.TempPathFactory) -> str:
    """netsandbox-apply: on a Mac as it is installed, elsewhere with Landlock, whose ports came with Linux 6.7."""
    if ON_A_MAC:
        return this_mac().helper
    made = tmp_path_factory.mktemp("apply") / "netsandbox-apply"
    return compiled(made, *SOURCES.glob("*.c"))


def compiled(made: Path, *sources: Path) -> str:
    """On Linux with what stands in for Seatbelt."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    parts = sorted(map(str, sources)) + ([] if ON_A_MAC else [str(HERE / "landlock_seatbelt.c")])
    subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", made, *parts], check=True)
    return str(made)


@pytest.fixture
def system(helper: str, place: Path) -> MacSystem:
    if ON_A_MAC:
        return this_mac()  # signed in the state folder of *place*
    return MacSystem(helper, Loop, PidfdExit, lambda clock: frozenset)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of loopback that we hold and nobody listens on: a profile must forbid it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def origin() -> Iterator[int]:
    """An HTTP server of the host on loopback; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client, contextlib.suppress(OSError):  # who asked may be gone
                    client.recv(4096)
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        with contextlib.suppress(OSError):  # a Mac says that nobody is connected
            server.shutdown(socket.SHUT_RDWR)
    thread.join(20)


class Ended:
    """A session that is over."""

    def __init__(self, status: int, stdout: str, stderr: str, records: list[dict[str, Any]], state: Path) -> None:
        self.returncode = os.waitstatus_to_exitcode(status)
        self.stdout = stdout
        self.stderr = stderr
        self.records = records
        self.state = state

    def of(self, event: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["event"] == event]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NETSANDBOX_SESSION", raising=False)
    return tmp_path


Run = Callable[..., Ended]


@pytest.fixture
def mac(system: MacSystem, place: Path) -> Run:
    """Run a command as a Mac would; what the session wrote and recorded."""

    def run(*command: str, policy: Policy | None = None, env: dict[str, str] | None = None, **settings: Any) -> Ended:
        localhost = settings.pop("localhost", LocalhostSettings(strategy="fail", count=4))
        wanted = RunSettings(localhost=localhost, mode=(policy or Policy()).mode, **settings)
        owner = Session(wanted, sealed=False, backend=lambda context: SeatbeltBackend(context, system))
        outer = {os.fsencode(name): os.fsencode(value) for name, value in {**os.environ, **(env or {})}.items()}
        out, err = place / "stdout", place / "stderr"
        with open(os.devnull) as nothing, open(out, "wb") as stdout, open(err, "wb") as stderr:
            stdio = (nothing.fileno(), stdout.fileno(), stderr.fileno())
            try:
                status = owner.run(lambda: policy or Policy(), Command(command, outer, stdio))
            finally:
                owner.log.close()
        lines = Path(owner.log.path).read_text().splitlines()
        return Ended(status, out.read_text(), err.read_text(), [json.loads(line) for line in lines], place / "state")

    return run


@pytest.fixture
def python() -> Callable[[str], tuple[str, str, str]]:
    return lambda text: (sys.executable, "-c", text)
