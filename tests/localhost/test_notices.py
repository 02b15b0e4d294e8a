"""The lines for the user: each said once, few, and never waited for."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

import pytest
from netsandbox_portmap.window import Window

from netsandbox.localhost.bind_rule import rule_for
from netsandbox.localhost.notices import MOST_LINES, Notices

WINDOW = Window(30000, 100, "127.117.48.1")
RULE = rule_for("fail", WINDOW, device_given=False)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield reading, writing
    os.close(reading)
    os.close(writing)


def lines(reading: int) -> list[str]:
    try:
        return os.read(reading, 1 << 20).decode().splitlines()
    except BlockingIOError:
        return []


def test_a_refused_bind_is_told_once_with_what_would_do(pipe: tuple[int, int]) -> None:
    notices = Notices(pipe[1])
    for _ in range(3):
        notices.refused(RULE, "127.0.0.1", 80)
    notices.refused(RULE, "2001:db8::1", 3000)
    first, second = lines(pipe[0])
    assert first.startswith("netsandbox: bind to 127.0.0.1:80 refused: this session may listen on ports 30000-30099")
    assert "; " in first
    assert "bind to [2001:db8::1]:3000 refused" in second


def test_a_privileged_port_of_a_device_is_explained(pipe: tuple[int, int]) -> None:
    Notices(pipe[1]).refused(rule_for("rewire-device", WINDOW, device_given=False), "127.0.0.1", 80)
    assert "below 1024" in lines(pipe[0])[0]


def test_a_port_that_cannot_be_shown_is_named_with_the_reason(pipe: tuple[int, int]) -> None:
    Notices(pipe[1]).hidden(3000, "it is taken")
    (line,) = lines(pipe[0])
    assert line.startswith("netsandbox: port 3000 listens, but the host cannot show it: it is taken; ")


def test_a_storm_does_not_flood_the_terminal(pipe: tuple[int, int]) -> None:
    notices = Notices(pipe[1])
    for port in range(300):
        notices.refused(RULE, "127.0.0.1", port)
    assert len(lines(pipe[0])) == MOST_LINES


def test_a_reader_that_sleeps_is_not_waited_for(pipe: tuple[int, int]) -> None:
    """The descriptor blocks, and the pipe is full: whoever wrote now would stand still with every door."""
    size = fcntl.fcntl(pipe[1], fcntl.F_GETPIPE_SZ)
    os.write(pipe[1], b"x" * size)
    assert os.get_blocking(pipe[1])
    Notices(pipe[1]).refused(RULE, "127.0.0.1", 80)
    assert lines(pipe[0]) == ["x" * size]


def test_a_terminal_that_is_gone_is_no_error() -> None:
    Notices(1 << 20).refused(RULE, "127.0.0.1", 80)
