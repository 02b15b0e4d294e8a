"""Messages of a native helper, spoken here by a few lines of Python at its place."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netsandbox.backends.linux import helper_process
from netsandbox.backends.linux.helper_process import HelperProcess, Message
from netsandbox.errors import HostError
from tests.rig import processes

PRELUDE = """
import array, os, socket, sys
channel = socket.socket(fileno=3)
def number(kind, value, text=b""):
    channel.send(kind + value.to_bytes(4, sys.byteorder, signed=True) + text)
"""
SET_UP = """
plan = b""
while True:
    part = channel.recv(1 << 17)
    plan += part[1:]
    if not part[:1] or part[0] == 0:
        break
"""


class Helper(HelperProcess):
    def set_up_failure(self, step: str, number: int) -> HostError:
        return HostError(f"{step}: {number}")


Speak = Callable[..., Helper]


@pytest.fixture
def speak() -> Iterator[Speak]:
    """speak(code) -> a helper that runs this code; afterwards it is gone, and so are all descriptors."""
    made: list[Helper] = []
    before = processes.own_descriptors()
    null = os.open(os.devnull, os.O_RDWR)

    def start(code: str, first: bytes = b"", stdout: int | None = None) -> Helper:
        stdio = (null, null if stdout is None else stdout, 2)
        command = ("-c", PRELUDE + SET_UP + code)
        made.append(Helper(sys.executable, command, dict(os.environb), stdio, first))
        return made[-1]

    yield start
    for helper in made:
        helper.close()
        helper.close()  # it may be closed twice
        with pytest.raises(ChildProcessError):
            os.waitpid(helper.spawned, 0)
    os.close(null)
    assert processes.own_descriptors() == before


def test_a_record_has_a_kind_a_number_and_a_text() -> None:
    message = Message(b"E" + (-7).to_bytes(4, sys.byteorder, signed=True) + b"a \xff step", [5])
    assert (message.kind, message.number, message.text, message.descriptors) == ("E", -7, "a \ufffd step", [5])
    assert (Message(b"", []).kind, Message(b"\xff", []).kind) == ("", "\ufffd")


def test_the_helper_has_the_plan_the_channel_the_relay_and_the_standard_descriptors(speak: Speak) -> None:
    reading, writing = os.pipe()
    code = """
relay = socket.socket(fileno=4)
os.write(1, b"%d %d %s" % (len(plan), sum(plan) % 251, relay.recv(10)))
"""
    helper = speak(code, b"first", writing)
    os.close(writing)
    plan = bytes(range(250)) * 700  # of several parts
    helper.send_plan(plan)
    with open(reading, "rb") as output:
        length, total, first = output.read().split(b" ")
    assert (int(length), int(total), first) == (len(plan), sum(plan) % 251, b"first")


def test_doors_and_pid_may_come_in_either_order(speak: Speak) -> None:
    doors = "socket.send_fds(channel, [b'D'], [0, 1, 2])"
    for code in (f"number(b'P', 77)\n{doors}", f"{doors}\nnumber(b'P', 77)"):
        helper = speak(code)
        helper.send_plan(b"")
        made = helper.set_up(3)
        assert (len(made), helper.pid) == (3, 77)
        for descriptor in made:
            os.close(descriptor)
        helper.pid = 0  # no child of ours


@pytest.mark.parametrize("count", [0, 2, 4])
def test_doors_that_did_not_all_arrive_are_closed_and_said(speak: Speak, count: int) -> None:
    helper = speak(f"number(b'P', 77)\nsocket.send_fds(channel, [b'D'], [0] * {count})")
    helper.send_plan(b"")
    with pytest.raises(HostError, match="ulimit -n 1024"):
        helper.set_up(3)
    helper.pid = 0


def test_a_step_that_failed_is_the_reason(speak: Speak) -> None:
    helper = speak(f"number(b'E', {errno.EPERM}, b'opening a door')")
    helper.send_plan(b"")
    with pytest.raises(HostError, match=f"opening a door: {errno.EPERM}"):
        helper.set_up(3)


def test_a_helper_that_ends_without_a_word_has_failed(speak: Speak) -> None:
    helper = speak("")
    helper.send_plan(b"")
    with pytest.raises(HostError, match=r"^: 0"):
        helper.set_up(3)


def test_last_words_are_heard_of_a_helper_that_did_not_read(speak: Speak) -> None:
    """The kernel tells of the reset first."""
    helper = Helper(sys.executable, ("-c", PRELUDE + "number(b'E', 5, b'early')"), dict(os.environb), (0, 1, 2))
    os.waitid(os.P_PID, helper.spawned, os.WEXITED | os.WNOWAIT)
    helper.send_plan(b"unheard")
    assert helper.receive().text == "early"
    assert helper.receive().kind == ""
    helper.close()


def test_go_and_signals_are_sent_as_they_are(speak: Speak, tmp_path: Path) -> None:
    helper = speak(f"open({str(tmp_path / 'heard')!r}, 'wb').write(channel.recv(9) + channel.recv(9)); number(b'S', 0)")
    helper.send_plan(b"")
    helper.go()
    helper.signal(signal.SIGTERM)
    assert helper.receive().kind == "S"
    assert (tmp_path / "heard").read_bytes() == b"GK" + signal.SIGTERM.to_bytes(4, sys.byteorder)
    os.waitid(os.P_PID, helper.spawned, os.WEXITED | os.WNOWAIT)
    helper.signal(signal.SIGTERM)  # the session has ended: nothing to say


def test_closing_before_the_doors_exist_reaps_the_first_process_too(speak: Speak) -> None:
    """Its pid is still in the channel."""
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    helper = speak(f"socket.send_fds(channel, [b'D'], [0]); number(b'P', {child})")
    helper.send_plan(b"")
    os.waitid(os.P_PID, helper.spawned, os.WEXITED | os.WNOWAIT)
    os.kill(child, signal.SIGKILL)
    helper.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(child, 0)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOENT, "reinstall netsandbox with a C compiler"),
        (errno.E2BIG, "arguments and environment are too long"),
        (errno.EACCES, "Permission denied; see `netsandbox doctor`"),
    ],
)
def test_a_helper_that_cannot_start_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(helper_process.os, "posix_spawn", refuse)
    before = processes.own_descriptors()
    with pytest.raises(HostError, match=words):
        Helper("/nonexistent", (), {}, (0, 1, 2))
    assert processes.own_descriptors() == before


def test_a_plan_that_no_message_can_hold_is_an_error(speak: Speak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_process, "PLAN_PART", 1 << 30)
    helper = speak("")
    with pytest.raises(HostError, match="hide or protect fewer paths"):
        helper.send_plan(bytes(1 << 22))


def test_the_base_class_explains_nothing(speak: Speak) -> None:
    with pytest.raises(NotImplementedError):
        HelperProcess.set_up_failure(speak(""), "", 0)
