"""Which mechanism holds which rule, and the steps of the plan for it."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import Any

import pytest

from netsandbox.backends.contract import SessionContext
from netsandbox.backends.linux import process_rules
from netsandbox.backends.linux.cgroup import Cgroup
from netsandbox.backends.linux.process_rules import ProcessRules
from netsandbox.errors import HostError
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.policy.limits import parse_limits
from netsandbox.settings import Command, RunSettings


def rules(**settings: Any) -> ProcessRules:
    command = Command(("sh",), {b"PATH": b"/usr/bin:/bin"}, (0, 1, 2))
    return ProcessRules(SessionContext("id", RunSettings(**settings), command, sealed=False, open_log=_no_log))


def _no_log() -> Any:
    raise AssertionError("no log is needed")


def limits(text: str) -> tuple[tuple[str, int], ...]:
    return parse_limits([(text, "test")])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def choose(*, cgroup: bool, root: bool) -> None:
        monkeypatch.setattr(
            process_rules, "find_cgroup", lambda session, wanted: Cgroup(session, wanted, "/x") if cgroup else None
        )
        monkeypatch.setattr(process_rules, "is_exempt", lambda: root)

    return choose


def steps(data: bytes) -> list[tuple[str, list[int], bytes]]:
    """Operation, the first number, and the rest of each step."""
    found = []
    while data:
        length = int.from_bytes(data[1:5], "little")
        payload, rest = data[5 : 5 + length], data[5 + length :]
        found.append((data[:1].decode(), [int.from_bytes(payload[:4], "little")], payload[4:]))
        data = rest
    return found


def test_a_cgroup_holds_what_it_can_and_resource_limits_the_rest(machine: Any) -> None:
    machine(cgroup=True, root=True)
    found = rules(limits=limits("memory=1G,processes=9,cpu=150%,files=64"))
    assert found.held == {
        "memory": "cgroup, all processes together",
        "processes": "cgroup, all processes together",
        "cpu": "cgroup, all processes together",
        "files": "rlimit, each process",
    }
    assert steps(found.steps) == [("Z", [resource.RLIMIT_NOFILE], (64).to_bytes(8, "little"))]
    assert found.lines[0] == "limit memory=1G: cgroup, all processes together"


def test_without_a_cgroup_resource_limits_hold_what_they_can(machine: Any) -> None:
    machine(cgroup=False, root=False)
    found = rules(limits=limits("memory=1G,processes=9"))
    assert found.cgroup is None
    assert [(number, int.from_bytes(rest, "little")) for _, (number,), rest in steps(found.steps)] == [
        (resource.RLIMIT_DATA, 1 << 30),
        (resource.RLIMIT_NPROC, 11),  # with PID 1 and the spawner
    ]


@pytest.mark.parametrize(("text", "root"), [("cpu=200%", False), ("cpu=200%", True), ("processes=9", True)])
def test_what_nothing_holds_is_an_error_that_names_the_way(machine: Any, text: str, root: bool) -> None:
    machine(cgroup=False, root=root)
    with pytest.raises(HostError, match=r"loginctl enable-linger.*, or run as root"):
        rules(limits=limits(text))


def test_a_hard_limit_of_the_caller_stays(machine: Any) -> None:
    machine(cgroup=False, root=False)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    ((_, _, value),) = steps(rules(limits=limits("files=1000000000")).steps)
    assert int.from_bytes(value, "little") == min(hard, 10**9) if hard != resource.RLIM_INFINITY else 10**9


def test_no_core_means_none_for_a_program_that_gets_cores_either(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of 0 the kernel still gives a core to a program that core_pattern names; with 1 it does not."""
    machine(cgroup=False, root=False)
    monkeypatch.setattr(process_rules.resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY,) * 2)
    for text, value in (("core=0", 1), ("core=4K", 4096)):
        assert steps(rules(limits=limits(text)).steps) == [("Z", [resource.RLIMIT_CORE], value.to_bytes(8, "little"))]


def test_no_debugging_closes_reading_and_writing_but_for_all_else() -> None:
    found = rules(no_debug=True)
    assert steps(found.steps) == [("H", [6], b""), ("P", [6], b"")]
    assert len(found.refused_calls) == 6
    assert set(found.refused_calls.values()) == {0}
    assert rules().refused_calls == {}
    assert rules().steps == b""


def test_programs_by_list_are_the_command_the_listed_and_the_loader() -> None:
    found = rules(files=FileRules(allow_execute=(PathRule("/usr/bin/env", "test"),), listed_only=True))
    assert found.programs[:2] == (os.path.realpath("/bin/sh"), os.path.realpath("/usr/bin/env"))
    (handled, permitted) = steps(found.steps)
    assert handled[:2] == ("H", [1])
    assert permitted[:2] == ("P", [1])
    assert permitted[2].split(b"\0")[:-1] == [os.fsencode(path) for path in found.programs]
    assert list(found.refused_calls.values()) == [8]
    twin = rules(files=FileRules(allow_execute=(PathRule("/usr/bin/env", "test"),)))
    assert (twin.programs, twin.steps) == ((), b"")


def test_the_end_names_a_limit_that_was_reached(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(cgroup=True, root=True)
    found = rules(limits=limits("memory=1G"))
    monkeypatch.setattr(Cgroup, "breaches", lambda self: ["memory"])
    assert found.close() == ["the session reached --limit memory=1G; raise it, or leave it out"]
    assert found.close() == []
    assert rules(no_debug=True).close() == []
