"""A descriptor that tells of a process's end, by a kqueue of its own; the kernel's part is a stand-in here."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import Any

import pytest

from netsandbox.backends.seatbelt import exit_watch
from netsandbox.backends.seatbelt.exit_watch import ADD, AT_EXIT, FILTER_PROCESS, ONCE, KqueueExit


class Queue:
    made: list[Queue] = []  # noqa: RUF012 (emptied by the fixture)
    error: OSError | None = None

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.closed = 0
        Queue.made.append(self)

    def control(self, told: list[Any], most: int, timeout: float) -> list[Any]:
        if Queue.error is not None:
            raise Queue.error
        self.told += told
        return []

    def fileno(self) -> int:
        return 99

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> type[Queue]:
    monkeypatch.setattr(Queue, "made", [])
    monkeypatch.setattr(Queue, "error", None)
    monkeypatch.setattr(exit_watch.select, "kqueue", Queue, raising=False)
    monkeypatch.setattr(exit_watch.select, "kevent", lambda *words: words, raising=False)
    return Queue


def test_the_kernel_is_asked_for_the_end_of_that_process_once(queue: type[Queue]) -> None:
    notice = KqueueExit(4711)
    assert queue.made[0].told == [(4711, FILTER_PROCESS, ADD | ONCE, AT_EXIT)]
    assert notice.fileno() == 99
    notice.close()
    notice.close()
    assert queue.made[0].closed == 1


def test_a_process_that_has_ended_already_is_told_at_once(queue: type[Queue], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Queue, "error", ProcessLookupError())
    notice = KqueueExit(4711)
    assert select.select([notice.fileno()], [], [], 5)[0]
    number = notice.fileno()
    notice.close()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(number)


@pytest.mark.macos
@pytest.mark.skipif(sys.platform != "darwin", reason="kqueue is a Mac's")
def test_on_a_mac_the_end_of_a_process_is_told() -> None:
    with subprocess.Popen(["/bin/sleep", "0.2"]) as process:
        notice = KqueueExit(process.pid)
        assert select.select([notice.fileno()], [], [], 0)[0] == []
        assert select.select([notice.fileno()], [], [], 5)[0]
        late = KqueueExit(process.pid)  # ended, not yet waited for
        assert select.select([late.fileno()], [], [], 5)[0]
        notice.close()
        late.close()
