"""Servers that run in a session, seen from the host: where `netsandbox ports` says they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.rig import ports
from tests.rig.command import CommandLine, Run, Spawned, read_log
from tests.rig.localhost import status_of
from tests.rig.patience import WaitedInVain
from tests.rig.workshop import ROOT

PATIENCE = 30.0
CLOSING = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
WAYS = [  # every strategy, by every engine that it has
    ("isolate", "kernel"),
    ("fail", "kernel"),
    ("fail", "preload"),
    ("rewire-device", "kernel"),
    ("rewire-device", "preload"),
    ("rewire-port", "kernel"),
    ("rewire-port", "preload"),
]
ACCOUNTS = ["caller", "ordinary_user"] if os.geteuid() == 0 else ["caller"]
Entry = dict[str, Any]
Value = TypeVar("Value")


def wait_for(
    look: Callable[[], Value | None],
    what: str,
    within: float = PATIENCE,
    pause: float = 0.01,
    seen: Callable[[], object] = lambda: "",
) -> Value:
    """The first answer of LOOK that is not None and not empty. SEEN tells what there is instead when the wait ends."""
    deadline = time.monotonic() + within
    while not (found := look()):
        if time.monotonic() > deadline:
            raise WaitedInVain(f"{what}: not within {within} s {seen()}".rstrip())
        time.sleep(pause)
    return found


class Inside:
    """A running session with a name of its own and a script in it that talks by lines of JSON."""

    def __init__(self, line: CommandLine, options: tuple[str, ...], script: Path, *words: str, **more: Any) -> None:
        self.line = line
        self.name = f"t{uuid.uuid4().hex[:8]}"
        self.errors = line.home().path / f"{self.name}.err"
        command = ("run", "--name", self.name, *options, "--", line.python, "-u", str(script), *words)
        with self.errors.open("wb") as errors:
            self.spawned: Spawned = line.spawn(*command, stdin=subprocess.PIPE, stderr=errors.fileno(), **more)

    @property
    def page(self) -> str:
        """What its puppet answers, before the port."""
        return f"page {self.name}"

    @property
    def stderr(self) -> str:
        return self.errors.read_text()

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The records of this session, told from others of the same home by its name."""
        for path in self.line.home().logs():
            records = read_log(path, growing=True)
            if records and records[0].get("name") == self.name:
                return records
        return []

    def events(self, event: str, **fields: object) -> list[dict[str, Any]]:
        return [r for r in self.audit if r["event"] == event and all(r.get(k) == v for k, v in fields.items())]

    def hear(self, timeout: float = 60) -> Any:
        """The next line of the script."""
        return json.loads(self.spawned.read_until(b"\n", timeout))

    def tell(self, op: str, *words: object) -> Any:
        """Have the script do something, and its answer."""
        stdin = self.spawned.process.stdin
        assert stdin is not None
        stdin.write(json.dumps([op, *words]).encode() + b"\n")
        stdin.flush()
        return self.hear()

    def ports(self) -> list[Entry]:
        """What is published, as soon as the session answers: on a busy machine that may take more than its second."""
        run = wait_for(self._ask_for_ports, f"an answer of {self.name}")
        entries: list[Entry] = json.loads(run.stdout)
        return entries

    def _ask_for_ports(self) -> Run | None:
        run = self.line("ports", self.name, "--json")
        return run if run.returncode == 0 else None

    def status(self) -> Entry:
        return status_of(self.line, self.name)

    def published(self, port: int) -> Entry:
        """The entry of PORT, once there is one."""
        return wait_for(
            lambda: next((entry for entry in self.ports() if entry["port"] == port), None),
            f"port {port} of {self.name} published",
            seen=lambda: [self.stderr, *(r for r in self.audit if r.get("port") == port), ports.listening()],
        )

    def close(self) -> None:
        self.spawned.close()


def split_url(url: str) -> tuple[str, int]:
    """Host header and port of a URL by name."""
    place = url.removeprefix("http://").rstrip("/")
    return place, int(place.rpartition(":")[2])


def faces(entry: Entry) -> list[tuple[str, int]]:
    """Every address of an entry of `netsandbox ports`."""
    found = [(entry["host_address"], entry["host_port"])]
    if entry["device_address"] not in (None, entry["host_address"]):
        found.append((entry["device_address"], entry["port"]))
    return found


Puppets = Callable[..., Inside]


def start_puppet(line: CommandLine, *options: str) -> Inside:
    """A session with OPTIONS whose servers are opened and closed by `tell` (`puppet.py`)."""
    script = line.home().work / "puppet.py"
    shutil.copy(ROOT / "tests/rig/puppet.py", script)
    script.chmod(0o644)
    session = Inside(line, options, script)
    assert session.hear() == "ready", session.stderr
    assert session.status()["name"] == session.name  # from now on it can be asked
    session.tell("name", session.page)
    return session


@pytest.fixture
def puppet(netsandbox: CommandLine) -> Puppets:
    """puppet(option…) -> a session of this test's account."""
    return lambda *options: start_puppet(netsandbox, *options)


@pytest.fixture(scope="module", params=ACCOUNTS)
def shared(request: pytest.FixtureRequest) -> Iterator[Inside]:
    """One session with the default strategy, for all tests of a file that leave it as it was."""
    line = CommandLine(request.getfixturevalue(request.param), request)
    try:
        yield start_puppet(line)
    finally:
        line.close()
