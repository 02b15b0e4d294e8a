"""Flows: the end of a grant is recorded exactly once, CONNECT heads are cached, and the table of stages is true."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from typing import Any

import netsandbox_proxy
import pytest
from netsandbox_proxy import door
from netsandbox_proxy.contract import Attempt, Grant
from netsandbox_proxy.flow import (
    FIRST_STAGES,
    STAGES,
    ActiveGrant,
    stage_diagram,
    stage_table,
)


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time


class FoldedQueries:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def ended(self, *call: Any) -> None:
        self.calls.append(call)


def test_the_first_end_counts_and_carries_bytes_and_milliseconds() -> None:
    clock, ledger = Clock(), FoldedQueries()
    grant = Grant(Attempt("connect", b"a.test", 443, ("127.0.0.1", 1)), "a.test", [], named=True)
    active = ActiveGrant(clock, ledger, grant)  # type: ignore[arg-type]
    active.address = "192.0.2.1"
    clock.time += 1.5
    active.end(1, 2, "tls")
    active.end(3, 4, "reset")
    assert ledger.calls == [(grant, "192.0.2.1", 1, 2, 1500, "tls")]


# Remembered CONNECT heads save reading, never asking.

CONNECT = b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n%s\r\n"


def test_the_gate_is_asked_for_every_repetition(rig: Any, speak: Any) -> None:
    """INV-3: a policy that changes in between changes the answer."""
    canary = rig.canary()
    port = rig.mixed()
    for _ in range(3):
        rig.tunnel(port)
    del rig.gate.routes["allowed.test"]
    client = rig.client(port)
    client.sendall(CONNECT % b"")
    assert speak.read_all(client).startswith(b"HTTP/1.1 403 ")
    assert len(rig.gate.named("admit")) == 4
    assert canary.accepts == 3


@pytest.mark.attack(53)
def test_a_remembered_head_is_of_no_use_without_its_token(rig: Any, speak: Any) -> None:
    rig.canary()
    port = rig.mixed(token=b"token")
    right = CONNECT % b"Proxy-Authorization: Basic c2Vzc2lvbjp0b2tlbg==\r\n"
    for _ in range(2):
        client = rig.client(port)
        client.sendall(right)
        assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    for wrong in (CONNECT % b"", right.replace(b"b2tlbg", b"b2tlbW")):
        for _ in range(2):
            client = rig.client(port)
            client.sendall(wrong)
            assert speak.read_all(client).startswith(b"HTTP/1.1 407 ")
    assert len(rig.gate.named("admit")) == 2


@pytest.mark.attack(31)
def test_a_remembered_head_with_bytes_behind_it_is_read_as_ever(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    port = rig.mixed()
    rig.tunnel(port).close()
    client = rig.client(port)
    client.sendall(CONNECT % b"" + speak.client_hello("denied.test"))
    speak.read_all(client)
    assert canary.everything() == b""
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "sni-mismatch")]


# The table of stages is the code's.


def stage_classes() -> dict[str, type]:
    """Every concrete stage of the package, by name."""
    found = {}
    for info in pkgutil.iter_modules(netsandbox_proxy.__path__, "netsandbox_proxy."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            own = isinstance(value, type) and value.__module__ == info.name
            if (
                own
                and not name.startswith("_")
                and callable(getattr(value, "expired", None))
                and hasattr(value, "close")
            ):
                found[name] = value
    abstract = {base.__name__ for value in found.values() for base in value.__mro__[1:]}
    return {name: value for name, value in found.items() if name not in abstract | {"Dial", "Stage", "GateClient"}}


def stages_made_by(cls: type, names: set[str]) -> set[str]:
    """The stages that the methods of *cls*, inherited ones included, make."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("netsandbox_proxy.")]
    trees = [ast.parse(textwrap.dedent(inspect.getsource(base))) for base in bases]
    calls = [node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {func.id for func in calls if isinstance(func, ast.Name)} & names


def test_every_stage_is_in_the_table_with_its_module() -> None:
    assert {name: value.__module__ for name, value in stage_classes().items()} == {
        row.name: f"netsandbox_proxy.{row.module}" for row in STAGES
    }


@pytest.mark.parametrize("row", STAGES, ids=[row.name for row in STAGES])
def test_a_stage_is_followed_by_the_stages_of_its_row(row: Any) -> None:
    classes = stage_classes()
    assert stages_made_by(classes[row.name], set(classes)) == set(row.following)


def test_a_door_starts_with_the_stage_of_the_table() -> None:
    names = set(stage_classes())
    doors = {name: getattr(door, name) for name in FIRST_STAGES}
    assert {value for value in vars(door).values() if isinstance(value, type) and issubclass(value, door.Door)} == {
        door.Door,
        *doors.values(),
    }
    for name, value in doors.items():
        assert stages_made_by(value, names) == {FIRST_STAGES[name]}


def test_only_stages_that_name_the_gate_request_grants() -> None:
    asking = {name for name, value in stage_classes().items() if hasattr(value, "granted")}
    assert asking == {row.name for row in STAGES if "the gate decides" in row.decides}


def test_the_diagram_and_the_text_show_every_transition() -> None:
    diagram, table = stage_diagram(), stage_table()
    for row in STAGES:
        assert f"| `{row.name}` |" in table
        for name in row.following:
            assert f"    {row.name} --> {name}\n" in diagram
    assert "    [*] --> DetectProtocol: MixedDoor\n" in diagram
    assert "    RelayStage --> [*]\n" in diagram
