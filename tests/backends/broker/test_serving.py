"""Serving watches the channel, the relay and the doors; a fault is recorded, and the broker's end is the session's."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from netsandbox.backends.broker.serving import BrokerServing
from netsandbox.backends.linux.helper_process import Message
from tests.backends.namespaces.test_serving import Watching
from tests.rig.fake_log import FakeLog


class Scene:
    """A serving whose helper sends what the test says."""

    def __init__(self) -> None:
        pair = (socket.AF_UNIX, socket.SOCK_SEQPACKET)
        (self.channel, self.far_channel), (self.relay, self.far) = socket.socketpair(*pair), socket.socketpair(*pair)
        self.door, self.far_door = socket.socketpair(*pair)
        self.messages: list[Message | OSError] = []
        self.signals: list[int] = []
        self.log, self.loop, self.ended = FakeLog(), Watching(), list[int | None]()
        helper = SimpleNamespace(
            channel=self.channel, relay=self.relay, receive=self._receive, signal=self.signals.append
        )
        self.context = SimpleNamespace(log=self.log, started=None, stderr=2)
        self.backend: Any = SimpleNamespace(
            helper=helper, context=self.context, pins=(), localhost_doors={"host-1": self.door}
        )
        self.serving = BrokerServing(self.backend, self.loop, self.ended.append)  # type: ignore[arg-type]
        self.serving.begin()

    def _receive(self) -> Message:
        message = self.messages.pop(0)
        if isinstance(message, OSError):
            raise message
        return message

    def get(self, message: Message | OSError) -> None:
        self.messages.append(message)
        self.loop.callbacks[self.channel.fileno()](1)

    def close(self) -> None:
        self.serving.close()
        for sock in (self.channel, self.far_channel, self.relay, self.far, self.door, self.far_door):
            sock.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def number(kind: bytes, value: int, text: bytes = b"") -> Message:
    return Message(kind + value.to_bytes(4, "little", signed=True) + text, [])


def test_channel_relay_and_doors_are_watched_and_the_doors_closed(scene: Scene) -> None:
    assert scene.loop.watched == [scene.channel.fileno(), scene.relay.fileno(), scene.door.fileno()]
    assert not scene.serving.awaits_records(0)
    scene.serving.close()
    assert scene.door.fileno() == -1


def test_the_end_of_the_relay_kills_the_session(scene: Scene) -> None:
    """INV-1: without the broker's questions nothing is decided any more."""
    scene.far.close()
    scene.loop.callbacks[scene.relay.fileno()](1)
    assert scene.signals == [9]
    assert scene.relay.fileno() not in scene.loop.watched


def test_a_service_that_cannot_be_made_refuses_the_question(scene: Scene) -> None:
    from tests.backends.broker.test_questions import question

    scene.far.send(b"Q" + question("b"))
    scene.loop.callbacks[scene.relay.fileno()](1)  # the backend here has no reservation
    assert int.from_bytes(scene.far.recv(100)[8:12], "little") == errno.EACCES
    scene.far.send(b"Q" + question("b"))
    scene.loop.callbacks[scene.relay.fileno()](1)
    assert len(scene.log.records) == 1
    scene.serving.settle()
    assert len(scene.log.records) == 2
    scene.serving.close()
    assert scene.log.records[-1]["reason"] == "internal"


def test_a_call_at_localhost_is_passed_on(scene: Scene) -> None:
    from netsandbox.backends.linux.local_calls import CALL

    settings = SimpleNamespace(connect_host=(), gateway_port=7878)
    scene.backend.reservation = SimpleNamespace(settings=settings)
    for _ in range(2):
        scene.far.send(b"C" + CALL.pack(1, 1, 3000, ord("c")) + b"/bin/x\0")
    scene.loop.callbacks[scene.relay.fileno()](1)
    scene.serving.close()
    assert scene.log.records == []
