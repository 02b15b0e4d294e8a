"""Serving watches the helper's channel and the doors, and closes what it holds."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

from netsandbox.backends.namespaces.serving import NamespaceServing


class Watching:
    """A loop that only notes what is watched."""

    def __init__(self) -> None:
        self.watched: list[int] = []

    def watch(self, fd: int, _events: int, _callback: object) -> None:
        self.watched.append(fd)


def test_the_channel_and_every_door_are_watched_and_the_doors_closed() -> None:
    channel, other = socket.socketpair()
    door = socket.create_server(("127.0.0.1", 0))
    backend: Any = SimpleNamespace(
        helper=SimpleNamespace(channel=channel), context=SimpleNamespace(log=None), localhost_doors={"door": door}
    )
    loop: Any = Watching()
    with channel, other:
        serving = NamespaceServing(backend, loop, lambda status: None)
        serving.begin()
        assert loop.watched == [channel.fileno(), door.fileno()]
        assert not serving.awaits_records(0)
        serving.close()
        assert door.fileno() == -1
