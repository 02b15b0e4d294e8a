"""The lines for the user: each said once, few, and never waited for."""

from __future__ import annotations

import fcntl
import os

from netsandbox_portmap.bind_rule import rule_for
from netsandbox_portmap.localhost_settings import HostPort
from netsandbox_portmap.notices import MAX_ANNOUNCED, MAX_LINES, Notices
from netsandbox_portmap.session_dial import NOBODY, UNHEARD
from netsandbox_portmap.window import Window

from tests.rig.pipe import Pipe

WINDOW = Window(30000, 100, "127.117.48.1")
RULE = rule_for("fail", WINDOW, device_given=False)


def test_a_refused_bind_is_told_once_with_what_would_do(pipe: Pipe) -> None:
    notices = Notices(pipe.writing)
    for _ in range(3):
        notices.refused(RULE, "127.0.0.1", 80)
    notices.refused(RULE, "2001:db8::1", 3000)
    first, second = pipe.lines()
    assert first.startswith("netsandbox: bind to 127.0.0.1:80 refused: this session may listen on ports 30000-30099")
    assert "; " in first
    assert "bind to [2001:db8::1]:3000 refused" in second


def test_a_privileged_port_of_a_device_is_explained(pipe: Pipe) -> None:
    Notices(pipe.writing).refused(rule_for("rewire-device", WINDOW, device_given=False), "127.0.0.1", 80)
    assert "below 1024" in pipe.lines()[0]


def test_a_port_that_cannot_be_shown_is_named_with_the_reason(pipe: Pipe) -> None:
    notices = Notices(pipe.writing)
    for port in (3000, 3001):
        notices.hidden(port, None)
    first, second = pipe.lines()
    assert first.startswith("netsandbox: port 3000 listens, but the host cannot show it: it is taken; ")
    assert second.startswith("netsandbox: port 3001 listens")


def test_a_lack_of_room_is_named_once(pipe: Pipe) -> None:
    notices = Notices(pipe.writing)
    for port in range(3000, 3100):
        notices.hidden(port, "1024 ports are published already")
    (line,) = pipe.lines()
    assert line.startswith(
        "netsandbox: port 3000 listens, but the host cannot show it: 1024 ports are published already; "
    )


def test_a_storm_does_not_flood_the_terminal(pipe: Pipe) -> None:
    notices = Notices(pipe.writing)
    for port in range(300):
        notices.refused(RULE, "127.0.0.1", port)
    assert len(pipe.lines()) == MAX_LINES


def test_a_reader_that_sleeps_is_not_waited_for(pipe: Pipe) -> None:
    """The descriptor blocks, and the pipe is full: whoever wrote now would stand still with every door."""
    size = fcntl.fcntl(pipe.writing, fcntl.F_GETPIPE_SZ)
    os.write(pipe.writing, b"x" * size)
    assert os.get_blocking(pipe.writing)
    Notices(pipe.writing).refused(RULE, "127.0.0.1", 80)
    assert pipe.lines() == ["x" * size]


def test_a_terminal_that_is_gone_is_no_error() -> None:
    Notices(1 << 20).refused(RULE, "127.0.0.1", 80)


def test_the_first_servers_are_announced_and_not_each_of_a_test_suite(pipe: Pipe) -> None:
    notices = Notices(pipe.writing)
    for port in range(3000, 3100):
        notices.served(f"http://{port}.shop.localhost:7878/", port, "http://127.0.0.1:20000/")
    lines = pipe.lines()
    assert len(lines) == MAX_ANNOUNCED
    assert (
        lines[0]
        == "netsandbox: http://3000.shop.localhost:7878/ is port 3000 of this session, as is http://127.0.0.1:20000/"
    )


def test_a_gateway_port_that_is_taken_is_named_with_where_names_are_instead(pipe: Pipe) -> None:
    Notices(pipe.writing).not_shared(7878, 20099)
    Notices(pipe.writing).not_shared(7878, None)
    advice = "choose with --gateway-port PORT"
    assert pipe.lines() == [
        f"netsandbox: port 7878 is taken by another program, so names of this session are at port 20099; {advice}",
        f"netsandbox: port 7878 is taken by another program, so this session has no names; {advice}",
    ]


def test_what_was_reported_before_the_start_is_not_repeated(pipe: Pipe) -> None:
    notices = Notices(pipe.writing)
    door = HostPort(5432, session="db", reported=NOBODY)
    notices.unheard(door, NOBODY)
    notices.unheard(door, UNHEARD)
    (line,) = pipe.lines()
    assert line.startswith("netsandbox: --connect-host db:5432: nothing listens at port 5432 in the session db; ")
