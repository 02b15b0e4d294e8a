"""Runs the real command line: privately (own home, own state, clean environment), with a time limit, as any account."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.rig import ports, processes
from tests.rig.account import Identity
from tests.rig.patience import WaitedInVain
from tests.rig.warm_home import StoredCache
from tests.rig.workshop import make_home, remove_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

Environment = Mapping[str, str | None]
MARK = "NETSANDBOX_TEST_MARK"
DEFAULT = "namespaces"


def read_log(path: Path | None, *, growing: bool = False) -> list[dict[str, Any]]:
    """The records of a log, those of rotated files first; a line that is no JSON fails the test.

    Of a log that is GROWING the last line may be half there: the kernel shows what is written page by page.
    """
    if path is None:
        return []
    rotated = sorted(path.parent.glob(f"{path.name}.*"), key=lambda file: file.stat().st_mtime)
    lines = [line for file in (*rotated, path) if file.exists() for line in file.read_text().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n") or not growing]


@dataclass(frozen=True)
class Run:
    """A finished run."""

    returncode: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    seconds: float
    log_path: Path | None

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode(errors="surrogateescape")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode(errors="surrogateescape")

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The records of this session's log, in order."""
        return read_log(self.log_path)

    def events(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """The records of one kind whose fields have these values."""
        return [r for r in self.audit if r["event"] == event and all(r.get(k) == v for k, v in fields.items())]


class Spawned:
    """A run that goes on. `process` is the Popen; `terminal` the master side of its terminal, if it has one."""

    def __init__(self, process: subprocess.Popen[bytes], home: Home, before: set[Path], terminal: int | None) -> None:
        self.process = process
        self.pid = process.pid
        self.home = home
        self.terminal = terminal
        self._before = before
        self._unread = b""
        self._arguments = list(process.args) if isinstance(process.args, list) else []

    @property
    def log_path(self) -> Path | None:
        return self.home.log_of(self._arguments, self._before)

    @property
    def audit(self) -> list[dict[str, Any]]:
        return read_log(self.log_path, growing=self.process.poll() is None)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 30) -> int:
        return self.process.wait(timeout)

    def read_until(self, wanted: bytes, timeout: float = 30) -> bytes:
        """Standard output (or the terminal's) up to and with WANTED, the rest kept; fails if it never comes."""
        source = self.terminal if self.terminal is not None else self._stdout()
        deadline, seen = time.monotonic() + timeout, self._unread
        while wanted not in seen:
            if not select.select([source], [], [], max(0, deadline - time.monotonic()))[0]:
                raise WaitedInVain(f"{wanted!r} did not come within {timeout} s; seen: {seen!r}")
            try:
                data = os.read(source, 65536)
            except OSError:  # the other side of a terminal is gone
                data = b""
            if not data:
                pytest.fail(f"output ended before {wanted!r}; seen: {seen!r}")
            seen += data
        before, found, self._unread = seen.partition(wanted)
        return before + found

    def wait_for(self, event: str, timeout: float = 30, **fields: object) -> dict[str, Any]:
        """Waits for a record of this kind in the log."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for record in self.audit:
                if record["event"] == event and all(record.get(k) == v for k, v in fields.items()):
                    return record
            time.sleep(0.02)
        raise WaitedInVain(f"no {event} record with {fields} within {timeout} s; log: {self.audit}")

    def family(self) -> set[processes.Process]:
        return processes.descendants(self.pid)

    def close(self) -> None:
        if self.process.poll() is None:
            processes.end(self.family())
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self.terminal is not None:
            os.close(self.terminal)
        self.process.wait(30)

    def _stdout(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()


class Home:
    """An account's private place in one test: home, state, configuration, and the environment that points there."""

    def __init__(self, identity: Identity, *, warm: bool = True) -> None:
        self.identity = identity
        self.path = make_home(identity.uid, identity.gid)
        self.work = self.path / "work"
        self.state = self.path / "state"
        self.mark = f"{MARK}={uuid.uuid4().hex}"
        if warm:
            _cache_of_a_session(identity).copy_to(self)

    @cached_property
    def gateway_port(self) -> int:
        return ports.free_port()

    def environment(self, extra: Environment | None) -> dict[str, str]:
        values: dict[str, str | None] = {
            "HOME": str(self.path),
            "USER": self.identity.name,
            "PATH": self.identity.path,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "SHELL": "/bin/sh",
            "TMPDIR": str(self.path / "tmp"),
            "XDG_STATE_HOME": str(self.state),
            "XDG_CONFIG_HOME": str(self.path / "config"),
            "XDG_RUNTIME_DIR": str(self.path / "run"),
            "PYTHONPATH": self.identity.pythonpath,
            "PYTHONDONTWRITEBYTECODE": "1",
            MARK: self.mark.partition("=")[2],
            **(extra or {}),
        }
        return {name: value for name, value in values.items() if value is not None}

    def plainly(self, command: Sequence[str | Path], *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Any program, as this account runs it; if it is to be netsandbox, something stands before it."""
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command,
            env=self.environment(None),
            cwd=cwd or self.work,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            **self.identity.popen,  # type: ignore[call-overload]
        )
        return done

    def logs(self) -> set[Path]:
        return set((self.state / "netsandbox" / "sessions").glob("*/audit.jsonl"))

    def log_of(self, arguments: list[str], before: set[Path]) -> Path | None:
        """The log that a run has written: the one it was told to write, or the one that is new."""
        for number, argument in enumerate(arguments):
            if argument == "--":
                break
            if argument == "--audit-log":
                return Path(arguments[number + 1])
            if argument.startswith("--audit-log="):
                return Path(argument.partition("=")[2])
        return max(self.logs() - before, key=lambda path: path.stat().st_mtime, default=None)

    def close(self) -> None:
        processes.end(processes.marked(self.mark))
        remove_folder(self.path)


@cache
def _cache_of_a_session(identity: Identity) -> StoredCache:
    home = Home(identity, warm=False)
    try:
        home.plainly([*identity.command, "run", "-q", "--files", "open", "--", "true"])
        return StoredCache(home)
    finally:
        home.close()


def with_gateway_port(arguments: list[str], home: Home) -> list[str]:
    """The names of each home are served at a port of its own: tests run side by side."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if arguments[:1] not in (["run"], ["learn"]) or any(word.startswith("--gateway-port") for word in options):
        return arguments
    return [arguments[0], f"--gateway-port={home.gateway_port}", *arguments[1:]]


class CommandLine:
    """`netsandbox(*arguments)` runs the command to its end; `netsandbox.spawn(*arguments)` starts it."""

    def __init__(self, identity: Identity, request: pytest.FixtureRequest, backend: str | None = None) -> None:
        self.identity = identity
        self._request = request
        self._open_files = request.node.get_closest_marker("open_files") is not None
        self.backend = backend or os.environ.get("NETSANDBOX_TEST_BACKEND")
        self._homes: dict[str, Home] = {}
        self._spawned: list[Spawned] = []

    @property
    def python(self) -> str:
        """A Python that this account can run inside a session."""
        return self.identity.python

    def home(self, *, as_user: bool = False, warm: bool = True) -> Home:
        """The home of this test; one that is not *warm* has never been used."""
        identity = self._request.getfixturevalue("ordinary_user") if as_user else self.identity
        if identity.name not in self._homes:
            self._homes[identity.name] = Home(identity, warm=warm)
        return self._homes[identity.name]

    def __call__(
        self,
        *arguments: str | Path,
        input: bytes | str | None = None,
        env: Environment | None = None,
        timeout: float = 60,
        as_user: bool = False,
        cwd: str | Path | None = None,
    ) -> Run:
        started = time.monotonic()
        spawned = self.spawn(*arguments, env=env, as_user=as_user, cwd=cwd, stdin=subprocess.PIPE)
        data = input.encode() if isinstance(input, str) else input
        try:
            out, err = spawned.process.communicate(data or b"", timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(spawned.pid, signal.SIGKILL)
            out, err = spawned.process.communicate(timeout=30)
            text = f"{arguments} ran longer than {timeout} s\nstdout: {out!r}\nstderr: {err!r}"
            raise WaitedInVain(text) from None
        return Run(spawned.process.returncode, out, err, time.monotonic() - started, spawned.log_path)

    def spawn(
        self,
        *arguments: str | Path,
        env: Environment | None = None,
        as_user: bool = False,
        cwd: str | Path | None = None,
        terminal: bool = False,
        stdin: int | None = subprocess.DEVNULL,
        stdout: int | None = subprocess.PIPE,
        stderr: int | None = subprocess.PIPE,
    ) -> Spawned:
        """Starts the command in a session (process group) of its own, with TERMINAL on a pseudo-terminal of its own."""
        home = self.home(as_user=as_user)
        before = home.logs()
        start = home.identity.command
        if any(name.startswith("PYTHON") for name in env or ()):  # the launcher ignores them, a module does not
            start = [home.identity.python, "-m", "netsandbox"]
        words = self._with_files(list(map(str, arguments)), env or {})
        words = with_gateway_port(self._with_backend(words), home)
        command = [*home.identity.prefix, *start, *words]
        master, slave = pty.openpty() if terminal else (None, None)
        if slave is not None:
            command = ["setsid", "--ctty", *command]
            stdin = stdout = stderr = slave
            os.fchown(slave, home.identity.uid, home.identity.gid)
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd or home.work,
            env=home.environment(env),
            start_new_session=not terminal,
        )
        if slave is not None:
            os.close(slave)
        spawned = Spawned(process, home, before, master)
        self._spawned.append(spawned)
        return spawned

    def _with_files(self, arguments: list[str], environment: Environment) -> list[str]:
        """As users have them by default, unless the mark `open_files` says otherwise, and the test itself nothing.
        What a command or a variable names of the rig's own files (a certificate, a script) is shown to the session."""
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        names = {word.partition("=")[0] for word in options}
        if arguments[:1] not in (["run"], ["learn"]) or "--files" in names:
            return arguments
        if self._open_files:
            return [arguments[0], "--files", "readable" if "--allow-write" in names else "open", *arguments[1:]]
        named = f"{re.escape(str(self._request.getfixturevalue('workshop')))}/[\\w.-]+"
        words = (*arguments[len(options) + 2 :], *(value or "" for value in environment.values()))
        shown = sorted({path for word in words for path in re.findall(named, word)})
        return [arguments[0], *(f"--allow-read={path}" for path in shown), *arguments[1:]]

    def _with_backend(self, arguments: list[str]) -> list[str]:
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        is_given = self.backend in (None, DEFAULT) or "--backend" in options
        if arguments[:1] not in (["run"], ["learn"]) or is_given:
            return arguments
        return [arguments[0], "--backend", str(self.backend), *arguments[1:]]

    def close(self) -> None:
        for spawned in self._spawned:
            spawned.close()
        for home in self._homes.values():
            home.close()


@pytest.fixture
def session_backend(request: pytest.FixtureRequest) -> str | None:
    """The backend of the sessions: one of those that the test's mark names. NETSANDBOX_TEST_BACKEND sets it for tests
    without a mark."""
    name: str | None = getattr(request, "param", os.environ.get("NETSANDBOX_TEST_BACKEND"))
    return name


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("backend")
    if mark is not None and "session_backend" in metafunc.fixturenames:
        metafunc.parametrize("session_backend", mark.args, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A session of the broker is the ordinary user's in any case, so a test for both accounts needs it once."""
    items[:] = [item for item in items if not _is_twice(getattr(getattr(item, "callspec", None), "params", {}))]


def _is_twice(parameters: Mapping[str, object]) -> bool:
    return parameters.get("session_backend") == "broker" and parameters.get("identity") == "caller"


@pytest.fixture
def netsandbox(
    identity: Identity, request: pytest.FixtureRequest, session_backend: str | None
) -> Iterator[CommandLine]:
    """The command line, run as this test's account."""
    if session_backend == "broker" and identity.uid == 0 and request.node.get_closest_marker("broker_as_root") is None:
        # With the host's own mounts, root's attacks would hit the machine.
        identity = request.getfixturevalue("ordinary_user")
    line = CommandLine(identity, request, session_backend)
    yield line
    line.close()


@pytest.fixture
def spawn(netsandbox: CommandLine) -> Any:
    """Starts the command line and leaves it running; ended with the test."""
    return netsandbox.spawn
