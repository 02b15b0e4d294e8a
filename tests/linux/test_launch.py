"""The native helper, driven by hand: a plan it cannot carry out ends in an error, and without a go nothing runs."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netsandbox.errors import CommandError, HostError
from netsandbox.file_rules import MOST_WRITABLE
from netsandbox.linux import launch, plan, seccomp
from netsandbox.linux.inner import InnerSockets
from netsandbox.linux.syscalls import abi_of
from netsandbox.localhost.settings import MOST_HOST_PORTS

pytestmark = pytest.mark.usefixtures("user_namespaces")
Start = Callable[..., launch.Helper]


def good_plan() -> bytes:
    view = plan.View(uid=os.geteuid(), gid=os.getegid(), files=(), hidden=(), read_only=())
    return plan.build(view, seccomp.build(abi_of(os.uname().machine)))


def children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


@pytest.fixture
def start() -> Iterator[Start]:
    """start(*command) -> a helper; afterwards no child of ours may be left."""
    before, helpers = children(), []
    null = os.open(os.devnull, os.O_RDWR)

    def begin(*command: str) -> launch.Helper:
        helpers.append(launch.Helper(command or ("true",), dict(os.environb), (null, null, null)))
        return helpers[-1]

    yield begin
    for helper in helpers:
        helper.close()
    os.close(null)
    assert children() <= before


def refused(helper: launch.Helper, data: bytes) -> str:
    helper.send_plan(data)
    with pytest.raises(HostError) as error:
        helper.doors(plan.doors())
    helper.close()
    return str(error.value)


@pytest.mark.parametrize(
    "data",
    [
        b"I",
        b"I\x08\x00",
        b"I" + struct.pack("=I", 8) + b"\x00" * 4,
        b"I" + struct.pack("=I", 0xFFFFFFFF) + b"\x00" * 8,
        b"?" + struct.pack("=I", 0),
        b"\x00" * 64,
        b"I" + struct.pack("=II", 4, 0),
        b"M" + struct.pack("=II", 8, 0) + b"proc",
        b"M" + struct.pack("=II", 8, 0) + b"a\0b\0",
        b"K" + struct.pack("=II", 4, 0),
        b"D" + struct.pack("=II", 4, 2),
    ],
    ids=["cut-1", "cut-2", "short", "huge", "unknown", "zeros", "no-gid", "no-end", "no-type", "no-acks", "no-door"],
)
def test_a_broken_plan_is_refused(start: Start, data: bytes) -> None:
    text = refused(start("sh", "-c", "exit 0"), data)
    assert "reading the plan" in text
    assert "doctor" in text


def test_a_plan_that_is_too_long_is_refused(start: Start) -> None:
    assert "Argument list too long" in refused(start(), good_plan() + b"\0" * 131072)


def test_every_truncation_is_refused_or_lacks_its_doors(start: Start, tmp_path: Path) -> None:
    """Cut anywhere, the command never runs: either the helper complains or too few doors stand."""
    whole, mark = good_plan(), tmp_path / "ran"
    for length in (3, 20, 200, len(whole) // 3, len(whole) // 2, len(whole) * 3 // 4):
        refused(start("touch", str(mark)), whole[:length])
    assert not mark.exists()


@pytest.mark.parametrize("step", ["unknown mount", "bad netlink", "bad option", "missing read-only path"])
def test_a_step_that_fails_is_named(start: Start, step: str) -> None:
    identity = plan._step(b"I", plan._numbers(os.geteuid(), os.getegid()))
    broken = {
        "unknown mount": plan._mount(0, "none", "/proc", "no-such-file-system"),
        "bad netlink": plan._step(b"K", plan._numbers(0, 1) + struct.pack("=IHHII", 16, 0xFFF, 5, 1, 0)),
        "bad option": plan._step(b"D", plan._numbers(2, 1, 9, 0, 0)) + plan._step(b"O", plan._numbers(999, 999)),
        "missing read-only path": plan._mount(plan.BIND | plan.READ_ONLY, "/no/such/path", "/no/such/path"),
    }[step]
    named = {
        "unknown mount": "/proc",
        "bad netlink": "configuring loopback",
        "bad option": "option of a door",
        "missing read-only path": "/no/such/path",
    }[step]
    assert named in refused(start(), identity + broken)


@pytest.mark.attack(119)
def test_without_a_filter_the_command_never_runs(start: Start, tmp_path: Path) -> None:
    """119: no filter installed, no command: the missing step is reported instead."""
    view = plan.View(uid=os.geteuid(), gid=os.getegid(), files=(), hidden=(), read_only=())
    for program in (b"", b"\xff" * 8, struct.pack("<HBBI", 0x15, 200, 200, 0)):
        helper = start("touch", str(tmp_path / "ran"))
        helper.send_plan(plan.build(view, program))
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
    helper.send_plan(good_plan())
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
    helper.send_plan(good_plan())
    doors = helper.doors(plan.doors())
    assert set(doors) == {door.name for door in plan.doors()}
    helper.go()
    kinds = []
    while (message := helper.receive()).kind:
        kinds.append(message.kind)
        if message.kind == "S":
            assert os.WEXITSTATUS(message.number) == 7
        for fd in message.descriptors:
            os.close(fd)
    for sock in doors.values():
        sock.close()
    assert kinds == ["L", "S"]
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
    helper.send_plan(good_plan())
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
        launch.Helper(["true"], {}, (0, 1, 2))
    (tmp_path / "none").write_text("")
    with pytest.raises(HostError, match="doctor"):
        launch.Helper(["true"], {}, (0, 1, 2))


@pytest.mark.parametrize(("number", "status"), [(2, 127), (20, 127), (13, 126), (8, 126)])
def test_exec_errors_have_the_shells_statuses(number: int, status: int) -> None:
    error = launch.exec_failure("./cmd", number, "")
    assert isinstance(error, CommandError)
    assert error.status == status
    assert "cmd" in str(error)


def test_a_folder_of_the_path_that_cannot_be_entered_is_no_command(tmp_path: Path) -> None:
    """execvp(3) says EACCES for both; shells tell them apart."""
    assert launch.exec_failure("cmd", errno.EACCES, f"/nowhere:{tmp_path}").status == 127
    (tmp_path / "cmd").write_text("no program")
    assert launch.exec_failure("cmd", errno.EACCES, f"/nowhere:{tmp_path}").status == 126


SIOCGSKNS = 0x894C


@pytest.fixture
def standing(start: Start) -> Iterator[Callable[..., launch.Helper]]:
    """standing(*command) -> a helper whose command runs, with these further doors; its descriptors are closed."""
    opened: list[socket.socket | _socket.socket] = []

    def begin(*command: str, extra: tuple[plan.Door, ...] = (), view: plan.View | None = None) -> launch.Helper:
        helper = start(*command)
        seen = view or plan.View(uid=os.geteuid(), gid=os.getegid(), files=(), hidden=(), read_only=())
        helper.send_plan(plan.build(seen, seccomp.build(abi_of(os.uname().machine)), extra))
        doors = helper.doors(plan.doors() + extra)
        opened.extend(doors.values())
        helper.go()
        message = helper.receive()
        assert message.kind == "L"
        os.close(message.descriptors[0])
        helper.channel.settimeout(20)  # a helper that says nothing is a red test, not one that hangs
        return helper

    yield begin
    for sock in opened:
        sock.close()


def made_inside(helper: launch.Helper, family: int) -> _socket.socket:
    helper.ask_socket(family)
    message = helper.receive()
    assert (message.kind, len(message.descriptors)) == ("N", 1)
    return _socket.socket(fileno=message.descriptors[0])


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_socket_on_request_lives_in_the_sessions_network(standing: Callable[..., launch.Helper], family: int) -> None:
    helper = standing("sleep", "60")
    sock = made_inside(helper, family)
    try:
        assert (sock.family, sock.type & 0xF) == (family, socket.SOCK_STREAM)
        assert not os.get_blocking(sock.fileno())
        assert fcntl.fcntl(sock.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        network = fcntl.ioctl(sock.fileno(), SIOCGSKNS)
        assert os.fstat(network).st_ino != os.stat("/proc/self/ns/net").st_ino  # which it is, the next test shows
        os.close(network)
    finally:
        sock.close()


def test_a_socket_on_request_reaches_what_listens_inside_and_not_the_host(
    standing: Callable[..., launch.Helper],
) -> None:
    helper = standing("sleep", "60", extra=plan.localhost_doors((3000,), asking=False))
    with socket.create_server(("127.0.0.1", 0)) as host:
        found = []
        for port in (3000, host.getsockname()[1]):
            sock = made_inside(helper, socket.AF_INET)
            sock.settimeout(10)
            found.append(sock.connect_ex(("127.0.0.1", port)))
            sock.close()
    assert found == [0, errno.ECONNREFUSED]


def test_a_socket_that_cannot_be_made_is_an_error_number(standing: Callable[..., launch.Helper]) -> None:
    """And PID 1 goes on."""
    helper = standing("sleep", "60")
    for family in (0x7FFFFFFF, 45, socket.AF_PACKET):
        helper.ask_socket(family)
        message = helper.receive()
        assert (message.kind, message.descriptors) == ("N", [])
        assert message.number in (errno.EAFNOSUPPORT, errno.EPERM, errno.EINVAL, errno.ESOCKTNOSUPPORT)
    made_inside(helper, socket.AF_INET).close()


def test_hundreds_of_sockets_are_made_while_nobody_reads(standing: Callable[..., launch.Helper]) -> None:
    """A burst of connections must not make both ends of the channel wait for each other."""
    helper = standing("sleep", "60")
    sockets = InnerSockets(helper)
    given: list[_socket.socket | None] = []
    for _ in range(600):
        sockets.take(socket.AF_INET, given.append)
    while len(given) < 600:
        sockets.arrived(helper.receive())
    sockets.close()
    assert None not in given
    for sock in given:
        assert sock is not None
        sock.close()


@pytest.mark.parametrize("wish", [b"", b"N", b"N\2\0\0", b"?\2\0\0\0", b"N\2\0\0\0\0", b"G", b"N" * 64])
def test_a_wish_that_is_none_ends_the_session(standing: Callable[..., launch.Helper], wish: bytes) -> None:
    """INV-1: nothing is guessed from a broken record. One that is too long is cut by the kernel, and is no harm."""
    helper = standing("sleep", "60")
    helper.channel.send(wish)
    if len(wish) > 5:
        for descriptor in helper.receive().descriptors:
            os.close(descriptor)
        return
    assert helper.receive().kind == ""


def test_signals_and_wishes_are_told_apart(standing: Callable[..., launch.Helper]) -> None:
    helper = standing("sleep", "60")
    made_inside(helper, socket.AF_INET).close()
    helper.signal(signal.SIGTERM)
    message = helper.receive()
    assert (message.kind, os.WTERMSIG(message.number)) == ("S", signal.SIGTERM)


def test_as_many_doors_as_the_settings_allow_all_arrive_in_order(standing: Callable[..., launch.Helper]) -> None:
    extra = plan.localhost_doors(range(2000, 2000 + MOST_HOST_PORTS), asking=True)
    helper = standing("sleep", "60", extra=extra)
    for port in (2000, 2000 + MOST_HOST_PORTS - 1, 1011):
        sock = made_inside(helper, socket.AF_INET)
        sock.settimeout(10)
        assert sock.connect_ex(("127.0.0.1", port)) == 0
        sock.close()


def test_a_door_is_bound_where_its_name_says(start: Start) -> None:
    extra = plan.localhost_doors((2000, 2001), asking=True)
    helper = start("true")
    view = plan.View(uid=os.geteuid(), gid=os.getegid(), files=(), hidden=(), read_only=())
    helper.send_plan(plan.build(view, seccomp.build(abi_of(os.uname().machine)), extra))
    doors = helper.doors(plan.doors() + extra)
    found = {name: sock.getsockname()[:2] for name, sock in doors.items()}
    for sock in doors.values():
        sock.close()
    assert {name: found[name] for name in ("asking", "host-2000", "host6-2000", "host6-2001")} == {
        "asking": ("127.0.0.1", 1011),
        "host-2000": ("127.0.0.1", 2000),
        "host6-2000": ("::1", 2000),
        "host6-2001": ("::1", 2001),
    }


def test_too_few_doors_are_an_error(start: Start) -> None:
    """INV-1: a session lacks none of the doors that it was promised."""
    helper = start("true")
    helper.send_plan(good_plan())
    with pytest.raises(HostError):
        helper.doors(plan.doors() + plan.localhost_doors((2000,), asking=False))


def test_a_cover_hides_a_file_and_cannot_be_written_moved_or_removed(
    standing: Callable[..., launch.Helper], tmp_path: Path
) -> None:
    """INV-8: the host's lock file, and the map of ports."""
    theirs, ours = tmp_path / "locks", tmp_path / "nothing"
    theirs.write_text("secret")
    ours.write_text("cover")
    view = plan.View(uid=os.geteuid(), gid=os.getegid(), files=((str(ours), str(theirs)),), hidden=(), read_only=())
    script = (
        f'test "$(cat {theirs})" = cover || exit 11; (echo x > {theirs}) 2>/dev/null && exit 12;'
        f"mv {theirs} {theirs}.x 2>/dev/null && exit 13; rm -f {theirs} 2>/dev/null && exit 14; exit 0"
    )
    message = standing("sh", "-c", script, view=view).receive()
    assert (message.kind, os.WEXITSTATUS(message.number)) == ("S", 0)
    assert theirs.read_text() == "secret"


def writable(*targets: Path) -> plan.View:
    paths = ("/dev", "/proc", *map(str, targets))
    return plan.View(os.geteuid(), os.getegid(), files=(), hidden=(), read_only=(), writable=paths)


def confined(*targets: Path) -> bytes:
    return plan.build(writable(*targets), seccomp.build(abi_of(os.uname().machine)))


def test_only_what_is_writable_is_written(standing: Callable[..., launch.Helper], tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    script = f"touch {tmp_path}/open/x || exit 11; touch {tmp_path}/x 2>/dev/null && exit 12; exit 0"
    message = standing("sh", "-c", script, view=writable(tmp_path / "open")).receive()
    assert (message.kind, os.WEXITSTATUS(message.number)) == ("S", 0)
    assert [path.name for path in tmp_path.rglob("x")] == ["x"]


@pytest.mark.attack(146)
def test_146_a_link_that_was_put_on_the_way_is_not_followed(start: Start, tmp_path: Path) -> None:
    """Another session may write where this one's paths are; the supervisor has resolved them."""
    (tmp_path / "true" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "true")
    for path in (tmp_path / "link" / "sub", tmp_path / "link", tmp_path / "absent"):
        assert str(path) in refused(start("true"), confined(path))


def test_more_writable_paths_than_there_is_room_for_are_refused(start: Start, tmp_path: Path) -> None:
    many = []
    for number in range(MOST_WRITABLE + 1):
        many.append(tmp_path / str(number))
        many[-1].mkdir()
    assert "confining writing" in refused(start("true"), confined(*many))


def test_a_plan_that_is_too_long_for_one_message_is_an_error_and_leaves_nothing_behind(start: Start) -> None:
    helper = start("true")
    with pytest.raises(HostError, match="hide or protect fewer paths"):
        helper.send_plan(bytes(64 << 20))


def test_a_plan_whose_paths_do_not_end_is_refused(start: Start) -> None:
    identity = plan._step(b"I", plan._numbers(os.geteuid(), os.getegid()))
    assert "reading the plan" in refused(start("true"), identity + plan._step(b"W", b"/tmp"))
