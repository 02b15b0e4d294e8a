"""The broker's helper, driven by hand: without its filter, Landlock and a go nothing runs, and nothing is left."""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from netsandbox.backends.broker import filter, launch, plan
from netsandbox.backends.linux.plan_steps import numbers, step
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.errors import BackendUnavailable
from tests.rig import processes
from tests.rig.leftovers import what_stays

READ, ALL = 0xC, 0x1FFF
FILTERS = filter.build_all(os.uname().machine, syscall_table(os.uname().machine))
BASE = 50000 + os.getpid() % 10000  # no session has a window there
Start = Callable[..., launch.Helper]
Stand = Callable[..., None]


def planned(**changed: Any) -> bytes:
    """A plan that can be carried out: every file may be used."""
    given: dict[str, Any] = {"filters": FILTERS, "handled": ALL, "permits": [(ALL, "/")], "ports": (), "sockets": "/"}
    given.update(changed)
    network = (*plan.addresses(BASE, f"127.{BASE >> 8}.{BASE & 255}.1"), 0)
    return plan.build(network, given.pop("ports"), given.pop("filters"), **given)


@pytest.fixture
def start() -> Iterator[Start]:
    """start(*command) -> a helper; afterwards no process of it may be left."""
    helpers: list[launch.Helper] = []
    null = os.open(os.devnull, os.O_RDWR)

    def begin(*command: str) -> launch.Helper:
        helpers.append(launch.Helper(launch.HELPER, command or ("true",), dict(os.environb), (null, null, null)))
        helpers[-1].channel.settimeout(20)
        return helpers[-1]

    yield begin
    for helper in helpers:
        helper.close()
        with pytest.raises(ChildProcessError):
            os.waitpid(helper.spawned, 0)
        assert not what_stays(lambda pid=helper.pid: bool(pid) and not processes.is_gone(pid), 20)  # type: ignore[misc]
    os.close(null)


@pytest.fixture
def stand() -> Iterator[Callable[..., None]]:
    """stand(helper, plan, doors) sets a session up; its doors stay open."""
    opened: list[int] = []

    def begin(helper: launch.Helper, made: bytes, doors: int = len(plan.DOORS)) -> None:
        helper.send_plan(made)
        opened.extend(helper.set_up(doors))

    yield begin
    for descriptor in opened:
        os.close(descriptor)


def rest(helper: launch.Helper) -> list[tuple[str, int, str]]:
    """Every later message but the spawner's, which comes at any time."""
    found = []
    while (message := helper.receive()).kind:
        for descriptor in message.descriptors:
            os.close(descriptor)
        if message.kind != "R":
            found.append((message.kind, message.number, message.text))
    return found


def test_a_go_runs_it_and_its_status_comes_back(start: Start, stand: Stand, tmp_path: Path) -> None:
    """The twin of all the refusals below."""
    helper = start("sh", "-c", f"touch {tmp_path}/ran; exit 7")
    stand(helper, planned(ports=(5432, 6379)), len(plan.DOORS) + 2)
    helper.go()
    told = rest(helper)
    assert [kind for kind, _, _ in told] == ["L", "S"]
    assert os.WEXITSTATUS(told[1][1]) == 7
    assert (tmp_path / "ran").exists()


@pytest.mark.attack(119)
@pytest.mark.parametrize("answer", [None, b"", b"N", b"\0"])
def test_no_go_no_command(start: Start, stand: Stand, tmp_path: Path, answer: bytes | None) -> None:
    helper = start("touch", str(tmp_path / "ran"))
    stand(helper, planned())
    if answer is not None:
        helper.channel.send(answer)
    helper.close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.attack(119)
@pytest.mark.parametrize("program", [b"", b"\xff" * 8, struct.pack("<HBBI", 0x15, 200, 200, 0)])
def test_without_a_filter_the_command_never_runs(start: Start, stand: Stand, tmp_path: Path, program: bytes) -> None:
    helper = start("touch", str(tmp_path / "ran"))
    stand(helper, planned(filters=(program,) * 3))
    helper.go()
    assert ("E", errno.EINVAL, "installing the seccomp filter") in rest(helper)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("made", "number"),
    [
        (step(b"?", b""), errno.EBADMSG),
        (b"N\xff\xff\xff\xff", errno.EBADMSG),
        (step(b"N", b"\1"), errno.EBADMSG),
        (step(b"F", b"") * 4, errno.E2BIG),
        (step(b"O", numbers(1)) * 25, errno.E2BIG),
        (step(b"Z", numbers(7, 1, 0)) * 100, errno.E2BIG),
    ],
    ids=["unknown-step", "cut", "short", "filters", "ports", "limits"],
)
def test_a_plan_that_cannot_be_read_is_no_session(start: Start, made: bytes, number: int) -> None:
    helper = start("true")
    helper.send_plan(made)
    with pytest.raises(BackendUnavailable, match=os.strerror(number)):
        helper.set_up(len(plan.DOORS))


def test_rights_that_no_landlock_knows_are_left_out(start: Start, stand: Stand) -> None:
    helper = start("true")
    stand(helper, planned(handled=0xFFFFFFFF, permits=[(0xFFFFFFFF, "/")]))
    helper.go()
    assert [kind for kind, _, _ in rest(helper)] == ["L", "S"]


def test_a_folder_that_cannot_be_entered_is_replaced_by_the_root(start: Start, stand: Stand, tmp_path: Path) -> None:
    helper = start("sh", "-c", f"pwd > {tmp_path}/where")
    stand(helper, planned(working=str(tmp_path / "missing")))
    helper.go()
    assert rest(helper)[-1][0] == "S"
    assert (tmp_path / "where").read_text() == "/\n"


def test_a_command_that_cannot_be_executed_says_so_on_its_report(start: Start, stand: Stand, tmp_path: Path) -> None:
    helper = start(str(tmp_path / "missing"))
    stand(helper, planned())
    helper.go()
    message = helper.receive()
    while message.kind != "L":
        message = helper.receive()
    (report,) = message.descriptors
    assert os.WEXITSTATUS(rest(helper)[-1][1]) == 127
    assert int.from_bytes(os.read(report, 4), "little") == errno.ENOENT
    os.close(report)


@pytest.mark.attack(204)
def test_the_session_dies_with_the_channel(start: Start, stand: Stand, tmp_path: Path) -> None:
    """Whatever it left in other sessions and groups."""
    script = f"(setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' &); exec sleep 60"
    helper = start("sh", "-c", script)
    stand(helper, planned())
    helper.go()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        pass
    helper.close()
    assert processes.is_gone(int((tmp_path / "pid").read_text()))


def test_the_end_of_a_door_is_the_end_of_the_session(start: Start) -> None:
    """The supervisor is gone, or has no use for it any more."""
    helper = start("sleep", "60")
    helper.send_plan(planned())
    for descriptor in helper.set_up(len(plan.DOORS)):
        os.close(descriptor)
    helper.go()
    kinds = [kind for kind, _, _ in rest(helper)]
    assert kinds in (["L"], ["L", "S"])  # the broker may see the command's end before it ends itself


def test_a_keeper_that_is_stopped_is_killed(start: Start, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "PATIENCE", 10)
    helper = start("sleep", "60")
    stand(helper, planned())
    helper.go()
    os.kill(helper.spawned, signal.SIGSTOP)
    helper.close()


def test_a_failure_of_the_set_up_makes_the_backend_unavailable(start: Start) -> None:
    assert isinstance(start("true").set_up_failure("Landlock", errno.ENOSYS), BackendUnavailable)


def test_the_helper_without_a_command_does_nothing() -> None:
    assert subprocess.run([launch.HELPER], check=False).returncode == 1
