"""The helper's messages while the command runs, as the broker's serving gets them; the other backend has the same."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

import pytest

from netsandbox.backends.linux import helper_serving
from netsandbox.backends.linux.helper_process import Message
from tests.backends.broker.test_serving import Scene, number
from tests.backends.namespaces.test_serving import report


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


@pytest.mark.parametrize(("message", "status"), [(number(b"S", 7), 7), (Message(b"", []), None)])
def test_the_end_comes_once_with_its_status(scene: Scene, message: Message, status: int | None) -> None:
    scene.get(message)
    assert scene.ended == [status]
    assert scene.channel.fileno() not in scene.loop.watched


def test_a_broken_channel_is_the_end_without_a_status(scene: Scene) -> None:
    scene.get(OSError(errno.EIO, "broken"))
    assert scene.ended == [None]


def test_a_failure_is_kept_and_the_end_still_noticed(scene: Scene) -> None:
    scene.get(number(b"E", errno.EPERM, b"setting the limits"))
    assert (scene.serving.failure, scene.ended) == (("setting the limits", errno.EPERM), [])
    scene.get(number(b"S", 1))
    assert scene.ended == [1]


def test_a_message_without_its_descriptor_is_recorded_and_the_end_still_noticed(scene: Scene) -> None:
    """The kernel drops a descriptor that would exceed our limit."""
    scene.get(Message(b"R", []))
    assert scene.serving.spawner is None
    scene.get(Message(b"L", []))
    assert scene.log.records[-1]["reason"] == "internal"
    scene.get(number(b"S", 0))
    assert scene.ended == [0]


def test_a_request_waits_for_the_spawner_of_a_session_that_begins(scene: Scene) -> None:
    """`ps` lists a session before its command runs."""
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    scene.messages += [number(b"E", errno.EPERM, b"a step"), Message(b"R", [ours.detach()]), number(b"S", 0)]
    scene.far_channel.send(b"readable")
    spawner = scene.serving.await_spawner()
    assert spawner is not None
    assert (spawner, scene.ended) == (scene.serving.await_spawner(), [])
    far.close()


@pytest.mark.parametrize("message", [Message(b"R", []), number(b"S", 0), Message(b"", [])])
def test_a_request_waits_for_no_spawner_that_cannot_come(scene: Scene, message: Message) -> None:
    scene.messages.append(message)
    scene.far_channel.send(b"readable")
    assert scene.serving.await_spawner() is None
    assert not scene.messages


def test_a_spawner_that_does_not_come_is_waited_for_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_serving, "PATIENCE", 0.05)
    assert scene.serving.await_spawner() is None
    monkeypatch.setattr(helper_serving, "PATIENCE", 3600.0)
    assert scene.serving.await_spawner() is None
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    scene.get(Message(b"R", [ours.detach()]))
    assert scene.serving.await_spawner() is not None  # late, and taken all the same
    far.close()


def test_the_spawner_is_kept_until_the_end(scene: Scene) -> None:
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    scene.get(Message(b"R", [ours.detach()]))
    assert scene.serving.spawner is not None
    assert scene.serving.spawner.gettimeout() == 0
    scene.serving.close()
    assert scene.serving.spawner is None
    assert far.recv(1) == b""
    far.close()


@pytest.mark.parametrize(
    ("written", "failure", "starts"),
    [(b"", None, 1), ((2).to_bytes(4, "little"), None, 0), (b"", ("setting the limits", 1), 0)],
)
def test_the_start_is_told_only_of_a_command_that_was_executed(
    scene: Scene, written: bytes, failure: tuple[str, int] | None, starts: int
) -> None:
    told: list[bool] = []
    scene.context.started = lambda: told.append(True)
    reading, writing = os.pipe()
    os.write(writing, written)
    os.close(writing)
    scene.get(Message(b"L", [reading]))
    if failure is not None:
        scene.get(number(b"E", failure[1], failure[0].encode()))
    scene.loop.callbacks[reading](1)
    assert len(told) == starts
    assert scene.serving.exec_errno == int.from_bytes(written, "little")


def test_a_report_that_is_not_closed_yet_says_nothing(scene: Scene) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    scene.get(Message(b"L", [reading]))
    scene.serving.close()
    assert scene.serving.exec_errno == 0
    os.close(writing)


def test_a_report_is_read_at_the_end_if_nobody_waits_for_the_start(scene: Scene) -> None:
    scene.get(Message(b"L", [report()]))
    scene.serving.close()
    assert scene.serving.exec_errno == 0
