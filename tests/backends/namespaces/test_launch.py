"""The native helper, driven by hand: without its doors, its filter and a go nothing runs."""

from __future__ import annotations

import os
import signal
import struct
import time
from pathlib import Path

import pytest

from netsandbox.backends.namespaces import launch, plan
from netsandbox.backends.namespaces.file_calls import call_rows, observed_calls
from netsandbox.errors import HostError
from tests.rig.planned import Start, planned, view

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.mark.attack(119)
def test_without_a_filter_the_command_never_runs(start: Start, tmp_path: Path) -> None:
    """119: no filter installed, no command: the missing step is reported instead."""
    for program in (b"", b"\xff" * 8, struct.pack("<HBBI", 0x15, 200, 200, 0)):
        helper = start("touch", str(tmp_path / "ran"))
        helper.send_plan(plan.build(view(), program))
        for sock in helper.doors(plan.doors()).values():
            sock.close()
        helper.go()
        message = helper.receive()
        assert (message.kind, message.text) == ("E", "installing the seccomp filter")
        helper.close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.attack(119)
@pytest.mark.parametrize("answer", [None, b"", b"N", b"\0"])
def test_no_go_no_command(start: Start, tmp_path: Path, answer: bytes | None) -> None:
    """119: never acknowledged, closed, or answered with something else."""
    helper = start("touch", str(tmp_path / "ran"))
    helper.send_plan(planned())
    for sock in helper.doors(plan.doors()).values():
        sock.close()
    if answer is not None:
        helper.channel.send(answer)
    helper.close()
    assert not (tmp_path / "ran").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(helper.pid, 0)


def test_a_go_runs_it_and_its_status_comes_back(start: Start, tmp_path: Path) -> None:
    """The twin of all the refusals above."""
    helper = start("sh", "-c", f"touch {tmp_path}/ran; exit 7")
    helper.send_plan(planned())
    doors = helper.doors(plan.doors())
    assert set(doors) == {door.name for door in plan.doors()}
    helper.go()
    kinds = []
    while (message := helper.receive()).kind:
        kinds.append(message.kind)  # R, the spawner's, comes at any time
        if message.kind == "S":
            assert os.WEXITSTATUS(message.number) == 7
        for fd in message.descriptors:
            os.close(fd)
    for sock in doors.values():
        sock.close()
    assert [kind for kind in kinds if kind != "R"] == ["L", "S"]
    assert (tmp_path / "ran").exists()


def test_a_channel_that_closes_at_once_leaves_nothing(start: Start) -> None:
    """The supervisor gave up before it sent a plan; the fixture looks for what is left."""
    began = time.monotonic()
    start("sleep", "60").close()
    assert time.monotonic() - began < 30  # not the sixty of the command


@pytest.mark.attack(203)
def test_the_session_dies_with_the_channel(start: Start) -> None:
    """INV-10: a command that ignores every signal ends when the supervisor's end of the channel closes."""
    helper = start("sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done")
    helper.send_plan(planned())
    doors = helper.doors(plan.doors())
    helper.go()
    for fd in helper.receive().descriptors:
        os.close(fd)
    os.kill(helper.pid, signal.SIGTERM)
    began = time.monotonic()
    helper.close()
    assert time.monotonic() - began < 30
    for sock in doors.values():
        sock.close()


def test_a_helper_that_is_missing_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "HELPER", str(tmp_path / "none"))
    with pytest.raises(HostError, match="reinstall"):
        launch.Helper(["true"], {}, (0, 1, 2), bytes(8))
    (tmp_path / "none").write_text("")
    with pytest.raises(HostError, match="doctor"):
        launch.Helper(["true"], {}, (0, 1, 2), bytes(8))


def test_a_door_is_bound_where_its_name_says(start: Start) -> None:
    extra = plan.localhost_doors((2000, 2001), requests=True)
    helper = start("true")
    helper.send_plan(planned(extra=extra))
    doors = helper.doors(plan.doors() + extra)
    found = {name: sock.getsockname()[:2] for name, sock in doors.items()}
    for sock in doors.values():
        sock.close()
    assert {name: found[name] for name in ("requests", "host-2000", "host6-2000", "host6-2001")} == {
        "requests": ("127.0.0.1", 1011),
        "host-2000": ("127.0.0.1", 2000),
        "host6-2000": ("::1", 2000),
        "host6-2001": ("::1", 2001),
    }


def test_too_few_doors_are_an_error(start: Start) -> None:
    """INV-1: a session lacks none of the doors that it was promised."""
    helper = start("true")
    helper.send_plan(planned())
    with pytest.raises(HostError):
        helper.doors(plan.doors() + plan.localhost_doors((2000,), requests=False))


def test_a_plan_that_is_too_long_is_an_error_that_says_what_to_do(start: Start) -> None:
    helper = start("true")
    helper.send_plan(bytes(4 << 20))
    with pytest.raises(HostError, match="too many repositories or rules for one session; start it in a smaller"):
        helper.doors(plan.doors())


@pytest.mark.parametrize("told", [False, True])
def test_an_observer_that_is_given_up_leaves_nothing(told: bool) -> None:
    """Before its hidden paths, or before its listener."""
    rows = call_rows(observed_calls(os.uname().machine))
    null = os.open(os.devnull, os.O_RDWR)
    helper = launch.Helper(["sleep", "60"], dict(os.environb), (null, null, null), rows)
    os.close(null)
    if told:
        helper.hide(["/srv/a", "/srv/b"])
    helper.close()
    for pid in (helper.pid, helper.spawned):
        assert pid
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_more_hidden_paths_than_fit_end_the_session() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    helper = launch.Helper(["true"], dict(os.environb), (null, null, null), b"\0" * 8)
    os.close(null)
    with pytest.raises(HostError, match=r"the hidden paths .* fewer paths"):
        helper.hide(["/" + "x" * 4000] * 1000)
    with pytest.raises(ProcessLookupError):
        os.kill(helper.pid, 0)
