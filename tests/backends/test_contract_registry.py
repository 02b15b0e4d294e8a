"""Every backend that is registered has the shape of the protocol; a new one needs a folder and a line, nothing else."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox_portmap.reservation import Reservation

from netsandbox import backends, system
from netsandbox.backends.broker.backend import BrokerBackend
from netsandbox.backends.contract import SessionContext
from netsandbox.backends.namespaces.backend import NamespacesBackend
from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.errors import HostError
from netsandbox.policy.policy import Policy
from netsandbox.runtime.loop import Loop
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings

if TYPE_CHECKING:
    from netsandbox.backends.contract import Backend

# A type checker compares each class with the protocol here.
KNOWN: dict[str, Callable[[SessionContext], Backend]] = {
    "namespaces": NamespacesBackend,
    "broker": BrokerBackend,
    "seatbelt": SeatbeltBackend,
}
CALLS = ("prepare", "confine", "seal_imports", "wait_ready", "start", "serve", "doors", "signal", "kill")
ENDS = ("raise_failure", "kept_files", "stop", "close", "open_loop")


def context() -> SessionContext:
    return Session(RunSettings(), sealed=False).context(Command(["true"], {}, (0, 1, 2)))


def test_each_name_leads_to_its_folder() -> None:
    assert KNOWN.keys() == backends.BACKENDS.keys()
    for name, made in KNOWN.items():
        backend = backends.open_backend(name, context())
        assert type(backend) is made
        assert backend.name == name
        assert [call for call in (*CALLS, *ENDS) if not callable(getattr(backend, call))] == []
        folder = Path(backends.__file__).parent / name
        assert (folder / "backend.py").is_file()


def test_this_system_has_a_default() -> None:
    assert backends.default_backend() in backends.BACKENDS


def test_the_strongest_backend_is_tried_first_and_a_chosen_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "DEFAULT_BACKEND", "namespaces")
    assert backends.candidates(None) == backends.candidates("auto") == ("namespaces", "broker")
    assert backends.candidates("broker") == ("broker",)
    monkeypatch.setattr(system, "DEFAULT_BACKEND", "seatbelt")
    assert backends.candidates(None) == ("seatbelt",)


def test_a_name_that_is_not_registered_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostError, match="unknown backend 'jail'; use one of namespaces, broker, seatbelt"):
        backends.open_backend("jail", context())
    monkeypatch.setattr(system, "DEFAULT_BACKEND", None)
    with pytest.raises(HostError, match="runs on Linux and macOS only"):
        backends.default_backend()


def test_what_is_held_can_be_freed_after_any_step_and_twice() -> None:
    for name in backends.BACKENDS:
        backend = backends.open_backend(name, context())
        for _ in range(2):
            backend.stop()
            backend.close()


class PlainBackend:
    """Confines nothing: it shows that a session needs no more than the protocol."""

    name = "plain"
    serves_first = False
    needed_modules: tuple[str, ...] = ()
    recorded_name = None
    localhost = None

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self.steps: list[str] = []
        self.pid = 0

    def __getattr__(self, step: str) -> Callable[..., None]:
        if step not in (*CALLS, *ENDS, "begin"):
            raise AttributeError(step)
        return lambda *_: self.steps.append(step)

    def prepare(self) -> None:
        self.steps.append("prepare")
        self.reservation = Reservation(LocalhostSettings(publish=()), str(Path(os.environ["XDG_STATE_HOME"])))

    def start(self) -> None:
        self.steps.append("start")
        self.pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], {})

    def open_loop(self, on_error: Callable[[BaseException], None]) -> Loop:
        return Loop(on_error)

    def serve(self, loop: Loop, ended: Callable[[int | None], None]) -> PlainBackend:
        self.steps.append("serve")
        loop.call_later(0, lambda: ended(os.waitpid(self.pid, 0)[1]))
        return self

    def awaits_records(self, status: int) -> bool:
        return False


def test_a_session_of_a_new_backend_needs_a_module_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe of netsandbox/backends/README.md, and the order of steps of `contract`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made: list[PlainBackend] = []

    def open_backend(context: SessionContext) -> PlainBackend:
        made.append(PlainBackend(context))
        return made[-1]

    module = types.ModuleType("netsandbox.backends.plain.backend")
    module.open_backend = open_backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "netsandbox.backends.plain", types.ModuleType("netsandbox.backends.plain"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(backends.BACKENDS, "plain", "Linux")
    session = Session(RunSettings(backend="plain"), sealed=False)
    status = session.run(Policy, Command(["sh"], {}, (0, 1, 2)))
    assert os.waitstatus_to_exitcode(status) == 7
    made[0].reservation.close()
    before = ["prepare", "confine", "seal_imports", "wait_ready", "start", "serve", "begin", "doors"]
    assert made[0].steps == [*before, "close", "raise_failure", "kept_files", "stop", "close"]
    events = [line.split('"event":"')[1].split('"')[0] for line in Path(session.log.path).read_text().splitlines()]
    assert events == ["session.start", "session.end", "audit.seal"]


def test_the_hosts_addresses_come_from_the_backend_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "127.0.0.1" in [address.text for address in backends.own_addresses()]
    module = types.ModuleType("netsandbox.backends.plain.backend")
    module.own_addresses = lambda clock: lambda: ("those of plain",)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "netsandbox.backends.plain", types.ModuleType("netsandbox.backends.plain"))
    monkeypatch.setitem(sys.modules, "netsandbox.backends.plain.backend", module)
    monkeypatch.setattr(system, "DEFAULT_BACKEND", "plain")
    assert list(backends.own_addresses()) == ["those of plain"]
