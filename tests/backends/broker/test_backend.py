"""The broker backend names the modules that a running session needs, and holds nothing before it starts."""

from __future__ import annotations

import importlib
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from netsandbox.backends.broker import plan
from netsandbox.backends.broker.backend import BrokerBackend
from netsandbox.backends.broker.launch import Helper
from netsandbox.errors import BackendUnavailable
from netsandbox.policy.file_rules import FileRules
from tests.rig import processes


def made(**settings: Any) -> BrokerBackend:
    fields = {"name": "mine", "limits": (), "no_debug": False, "files": FileRules(), "verbose": False, **settings}
    command = SimpleNamespace(words=("missing",), environment={b"PATH": b"/bin"})
    localhost = SimpleNamespace(connect_host=(SimpleNamespace(inside=5432),))
    context: Any = SimpleNamespace(settings=SimpleNamespace(localhost=localhost, **fields), command=command, stderr=2)
    return BrokerBackend(context)


def test_every_needed_module_can_be_imported() -> None:
    for name in BrokerBackend.needed_modules:
        importlib.import_module(name)


def test_a_session_that_has_not_started_has_no_process_and_ends_quietly() -> None:
    backend = made()
    assert (backend.pid, backend.recorded_name, backend.name) == (0, "mine", "broker")
    backend.signal(15)
    backend.kill()
    backend.raise_failure()
    assert backend.kept_files() == ()
    backend.stop()
    backend.close()


def test_the_doors_are_those_of_the_plan_and_are_given_once() -> None:
    before = processes.own_descriptors()
    backend = made()
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(len(plan.DOORS) + 1)]
    backend.helper = SimpleNamespace(  # type: ignore[assignment]
        pid=7, set_up=lambda expected: [far.detach() for _, far in pairs[:expected]], close=lambda: None
    )
    backend.wait_ready()
    doors = backend.doors()
    given = (*doors.mixed, *doors.transparent, *doors.dns_tcp, *doors.dns, *doors.datagrams)
    for (near, _), door in zip(pairs, given, strict=False):
        near.send(b"x")
        assert door.recv(1) == b"x"
    assert doors.mixed[0].getsockname()[1] == 1008
    assert list(backend.localhost_doors) == ["host-5432"]
    assert backend.localhost_doors["host-5432"].getsockname() == ("127.0.0.1", 5432)
    with pytest.raises(KeyError):
        backend.doors()
    for door in (*given, *backend.localhost_doors.values(), *(near for near, _ in pairs)):
        door.close()
    backend.stop()
    backend.close()
    assert processes.own_descriptors() == before


def test_doors_that_nobody_took_are_closed() -> None:
    before = processes.own_descriptors()
    backend = made()
    pairs = [socket.socketpair() for _ in range(len(plan.DOORS))]
    backend.context.settings.localhost.connect_host = ()
    backend.helper = SimpleNamespace(  # type: ignore[assignment]
        pid=7, set_up=lambda expected: [far.detach() for _, far in pairs], close=lambda: None
    )
    backend.wait_ready()
    backend.stop()
    backend.close()
    for near, _ in pairs:
        near.close()
    assert processes.own_descriptors() == before


def test_a_command_that_was_not_executed_is_named() -> None:
    backend = made()
    backend._serving = SimpleNamespace(exec_errno=2, failure=None)  # type: ignore[assignment]
    with pytest.raises(Exception, match="missing"):
        backend.raise_failure()
    backend.helper = object.__new__(Helper)
    backend._serving = SimpleNamespace(exec_errno=0, failure=("Landlock", 38))  # type: ignore[assignment]
    with pytest.raises(BackendUnavailable, match="Landlock failed"):
        backend.raise_failure()
    backend._serving = SimpleNamespace(exec_errno=0, failure=None)  # type: ignore[assignment]
    backend.raise_failure()


def test_most_sessions_need_no_rules_for_processes() -> None:
    assert made()._process_rules() is None
    assert made(no_debug=True)._process_rules() is not None
