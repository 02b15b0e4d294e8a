"""What programs try by habit: name services, start-up files, logins. Everything else matters."""

from __future__ import annotations

from typing import Any

import pytest

from netsandbox.audit import record_line
from netsandbox.policy import habits
from netsandbox.policy.habits import did_well, is_habit

SOCKET: dict[str, Any] = {"event": "socket", "verdict": "deny", "reason": "unix-socket", "family": "unix"}
FILE: dict[str, Any] = {"event": "file", "verdict": "deny", "reason": "not-shown", "operation": "read"}


@pytest.mark.parametrize(
    "record",
    [
        SOCKET,  # nobody knows its path
        {**SOCKET, "path": "/run/nscd/socket", "call": "connect"},
        {**SOCKET, "path": "/run/systemd/userdb/io.systemd.NameServiceSwitch", "call": "connect"},
        {**SOCKET, "path": "/run/user/0/bus", "call": "connect", "detail": "No such file or directory"},
        {**SOCKET, "reason": "socket-family", "family": "netlink"},
        {**FILE, "path": "/h/.bashrc"},
        {**FILE, "path": "/h/data/x", "reason": "made-later"},
        {"event": "audit.fold", "of": "socket", "verdict": "deny", "reason": "unix-socket", "count": 9},
    ],
)
def test_a_habit_is_known_whether_or_not_the_command_succeeded(record: dict[str, Any]) -> None:
    assert is_habit(record, "/h")
    assert is_habit(record, "/h", succeeded=True)


@pytest.mark.parametrize(
    "record",
    [
        {**SOCKET, "path": "/run/user/0/bus", "call": "connect"},
        {**SOCKET, "path": "/run/nscd-of-mine/socket", "call": "connect"},
        {**SOCKET, "path": "/srv/shop/db.sock", "call": "bind", "detail": "bind"},
        {**SOCKET, "reason": "socket-family", "family": "inet", "type": "raw"},
        {**SOCKET, "reason": "socket-family", "family": "packet"},
        {**FILE, "path": "/h/.bashrc", "operation": "change"},
        {**FILE, "path": "/h/Documents/plan"},
        {**FILE, "path": "/other/.bashrc"},
        {"event": "egress", "verdict": "deny", "reason": "not-allowed", "host": "a.test"},
        {"event": "dns", "verdict": "deny", "reason": "offline", "host": "a.test", "path": "/h/.bashrc"},
        {"event": "audit.fold", "of": "dns", "verdict": "deny", "reason": "not-allowed", "count": 9},
    ],
)
def test_everything_else_matters(record: dict[str, Any]) -> None:
    assert not is_habit(record, "/h", succeeded=True)


def test_a_login_was_needed_only_by_a_command_that_failed() -> None:
    login = {**FILE, "path": "/h/.npmrc"}
    assert not is_habit(login, "/h")
    assert is_habit(login, "/h", succeeded=True)


@pytest.mark.parametrize(
    ("status", "expected"), [(0, True), (1, False), (-15, True), (130, True), (-9, False), (137, False)]
)
def test_a_server_that_its_user_stops_did_well(status: int, *, expected: bool) -> None:
    assert did_well(status) is expected


def test_the_names_of_events_are_those_of_the_log() -> None:
    assert habits.FILE_EVENTS == record_line.FILE_EVENTS
