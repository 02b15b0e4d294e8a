"""Serving watches the helper's channel and the doors, and closes what it holds."""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from netsandbox.backends.linux.helper_process import Message
from netsandbox.backends.namespaces.serving import NamespaceServing
from netsandbox.errors import HostError
from netsandbox.policy.file_rules import FileRules
from tests.rig.fake_log import FakeLog


class Watching:
    """A loop that only notes what is watched."""

    now = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.watched: list[int] = []
        self.callbacks: dict[int, Callable[[int], None]] = {}
        self.refuses = False

    def watch(self, fd: int, _events: int, callback: Callable[[int], None]) -> None:
        if self.refuses:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.watched.append(fd)
        self.callbacks[fd] = callback

    def unwatch(self, fd: int) -> None:
        if fd in self.watched:  # as the loop itself
            self.watched.remove(fd)

    def call_later(self, _seconds: float, callback: Callable[[], None]) -> None:
        callback()


def test_the_channel_and_every_door_are_watched_and_the_doors_closed() -> None:
    channel, other = socket.socketpair()
    door = socket.create_server(("127.0.0.1", 0))
    backend: Any = SimpleNamespace(
        helper=SimpleNamespace(channel=channel),
        context=SimpleNamespace(log=None),
        localhost_doors={"door": door},
    )
    loop: Any = Watching()
    with channel, other:
        serving = NamespaceServing(backend, loop, lambda status: None)
        serving.begin()
        assert loop.watched == [channel.fileno(), door.fileno()]
        assert not serving.awaits_records(0)
        serving.close()
        assert door.fileno() == -1


class Scene:
    """A serving whose helper has sent these messages, with a log and the status that it ended with."""

    def __init__(self, relay: socket.socket) -> None:
        self.channel, self.other = socket.socketpair()
        self.messages: list[Message | OSError] = []
        self.signals: list[int] = []
        helper = SimpleNamespace(channel=self.channel, receive=self._receive, relay=relay, signal=self.signals.append)
        self.log, self.loop, self.ended = FakeLog(), Watching(), list[int | None]()
        backend: Any = SimpleNamespace(
            helper=helper,
            context=SimpleNamespace(log=self.log, started=None),
            localhost_doors={},
        )
        self.serving = NamespaceServing(backend, self.loop, self.ended.append)  # type: ignore[arg-type]
        self.serving.begin()

    def _receive(self) -> Message:
        message = self.messages.pop(0)
        if isinstance(message, OSError):
            raise message
        return message

    def get(self, message: Message | OSError) -> None:
        self.messages.append(message)
        self.loop.callbacks[self.channel.fileno()](1)


@pytest.fixture
def scene() -> Iterator[Scene]:
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made = Scene(ours)
    with ours, far:
        yield made
        made.serving.close()
    made.channel.close()
    made.other.close()


@pytest.fixture
def observed() -> Iterator[tuple[Scene, socket.socket]]:
    """A scene whose files are observed, and the observer's end of the socket."""
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made = Scene(ours)
    with ours, far:
        yield made, far
        made.serving.close()
    made.channel.close()
    made.other.close()


def listener() -> tuple[int, int]:
    """Something that stands for a seccomp listener, and the end that shows whether it is open."""
    return os.pipe()


def report() -> int:
    """The reading end of a report about a command that was executed."""
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def is_closed(shown: int) -> bool:
    """Whether nobody reads the pipe *shown* any more."""
    try:
        os.write(shown, b"x")
    except BrokenPipeError:
        return True
    return False


def test_a_listener_is_kept_and_watched(scene: Scene) -> None:
    """The twin of the faults below."""
    fd, shown = listener()
    scene.get(Message(b"L", [fd, report()]))
    assert scene.loop.watched == [scene.channel.fileno(), scene.serving._helper.relay.fileno()]
    assert not is_closed(shown)
    scene.serving.close()
    assert is_closed(shown)
    scene.serving._unserved = None
    os.close(shown)


def test_a_listener_that_cannot_be_watched_is_closed_so_that_no_trapped_call_waits(scene: Scene) -> None:
    fd, shown = listener()
    scene.loop.refuses = True
    scene.get(Message(b"L", [fd, report()]))
    assert is_closed(shown)
    assert scene.log.records[-1]["reason"] == "internal"
    assert scene.ended == []
    os.close(shown)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_listener_that_is_none_or_does_not_come_with_its_report_is_closed(scene: Scene, count: int) -> None:
    pairs = [listener() for _ in range(count)]
    scene.get(Message(b"L", [fd for fd, _ in pairs]))
    assert all(is_closed(shown) for _, shown in pairs)
    assert scene.loop.watched == [scene.channel.fileno()]
    assert scene.log.records[-1]["reason"] == "internal"
    for _, shown in pairs:
        os.close(shown)


def test_a_second_listener_is_closed_and_the_first_kept(scene: Scene) -> None:
    (first, shown_first), (second, shown_second) = listener(), listener()
    scene.get(Message(b"L", [first, report()]))
    scene.get(Message(b"L", [second, report()]))
    assert (is_closed(shown_first), is_closed(shown_second)) == (False, True)
    os.close(shown_first)
    os.close(shown_second)


def test_a_broken_channel_is_the_end_without_a_status(scene: Scene) -> None:
    scene.get(OSError(errno.EIO, "broken"))
    assert scene.ended == [None]
    assert scene.loop.watched == []


def test_after_a_message_that_failed_the_end_is_still_noticed(scene: Scene) -> None:
    scene.get(Message(b"L", []))
    scene.get(Message(b"S" + (7).to_bytes(4, "little"), []))
    assert scene.ended == [7]


def refusal(path: bytes) -> bytes:
    return b"F" + struct.pack("=ccHiI", b"h", b"r", 257, os.getpid(), 1) + b"/bin/cat\0" + path + b"\0"


def settled(scene: Scene) -> Scene:
    """With the settings that opening a listener reads."""
    settings = SimpleNamespace(localhost=SimpleNamespace(guarded=False, publishes=False), files=FileRules())
    scene.serving._backend = SimpleNamespace(  # type: ignore[assignment]
        context=SimpleNamespace(settings=settings, command=SimpleNamespace(environment={}), started=None),
        secrets=(),
        learned_changes=None,
        pins=(),
        localhost_doors={},
    )
    return scene


def test_an_observer_is_watched_instead_of_the_listener(observed: tuple[Scene, socket.socket]) -> None:
    scene, far = observed
    settled(scene)
    fd, shown = listener()
    scene.get(Message(b"L", [fd, report()]))
    relay = scene.loop.watched[-1]
    assert relay != fd
    far.send(refusal(b"/srv/shop/x"))
    scene.loop.callbacks[relay](1)
    assert [record["path"] for record in scene.log.of("file")] == ["/srv/shop/x"]
    assert not is_closed(shown)
    os.close(shown)


def test_the_end_of_an_observer_kills_and_no_call_goes_on_before(observed: tuple[Scene, socket.socket]) -> None:
    scene, far = observed
    settled(scene)
    fd, shown = listener()
    scene.get(Message(b"L", [fd, report()]))
    far.close()
    scene.loop.callbacks[scene.loop.watched[-1]](1)
    assert scene.signals == [9]
    assert not is_closed(shown)  # a closed listener lets a program go on, with calls that fail
    assert [record["reason"] for record in scene.log.of("policy")] == ["internal"]
    os.close(shown)


def test_an_observed_session_that_cannot_be_served_is_killed(observed: tuple[Scene, socket.socket]) -> None:
    scene, _ = observed
    scene.loop.refuses = True
    scene.get(Message(b"L", []))
    assert scene.signals == [9]


def test_a_listener_that_is_lost_for_want_of_descriptors_is_the_reason_of_the_end(
    observed: tuple[Scene, socket.socket],
) -> None:
    """The kernel drops a descriptor that would exceed our limit, and delivers the message without it."""
    scene, _ = observed
    scene.get(Message(b"L", []))
    assert (scene.signals, scene.serving.failure) == ([9], ("serving trapped calls", errno.EMFILE))


def _our_text_about(error: OSError) -> HostError:
    try:
        try:
            raise error
        except OSError:
            raise HostError("cannot keep the names of sessions") from None
    except HostError as made:
        return made


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (OSError(errno.EMFILE, "x"), errno.EMFILE),
        (_our_text_about(OSError(errno.ENFILE, "x")), errno.ENFILE),
        (OSError("no number"), 0),
        (RuntimeError("a fault"), 0),
    ],
)
def test_an_error_at_the_first_trapped_call_is_the_reason_of_the_end(
    observed: tuple[Scene, socket.socket], monkeypatch: pytest.MonkeyPatch, error: Exception, number: int
) -> None:
    def fail(_: int) -> None:
        raise error

    scene, _ = observed
    fd, shown = listener()
    scene.get(Message(b"L", [fd, report()]))
    monkeypatch.setattr(scene.serving, "_open_listener", fail)
    with pytest.raises(type(error)):
        scene.loop.callbacks[scene.loop.watched[-1]](1)
    assert is_closed(shown)
    assert (scene.signals, scene.serving.failure) == ([9], ("serving trapped calls", number))
    os.close(shown)


def test_what_was_reported_in_the_last_moment_is_recorded(observed: tuple[Scene, socket.socket]) -> None:
    scene, far = observed
    settled(scene)
    fd, shown = listener()
    scene.get(Message(b"L", [fd, report()]))
    far.send(refusal(b"/srv/shop/x"))
    scene.serving.close()
    scene.serving._listener = None
    assert [record["path"] for record in scene.log.of("file")] == ["/srv/shop/x"]
    assert is_closed(shown)
    os.close(shown)


@pytest.mark.parametrize(
    ("written", "failure", "starts"),
    [(b"", None, 1), ((2).to_bytes(4, "little"), None, 0), (b"", ("setting the limits", 1), 0)],
)
def test_the_start_is_told_only_of_a_command_that_was_executed(
    scene: Scene, written: bytes, failure: tuple[str, int] | None, starts: int
) -> None:
    told: list[bool] = []
    scene.serving._backend.context.started = lambda: told.append(True)  # type: ignore[misc]
    fd, shown = listener()
    reading, writing = os.pipe()
    os.write(writing, written)
    os.close(writing)
    scene.get(Message(b"L", [fd, reading]))
    if failure is not None:
        scene.get(Message(b"E" + failure[1].to_bytes(4, "little") + failure[0].encode(), []))
    scene.loop.callbacks[reading](1)
    assert len(told) == starts
    assert scene.serving.exec_errno == int.from_bytes(written, "little")
    os.close(shown)
