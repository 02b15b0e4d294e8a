"""A port of this session for another one: this session's own rule decides, and its record comes first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox_portmap.session_dial import ANOTHER_NAME, NOT_LISTENING, NOT_PUBLISHED, REACHED, PortRequest

from netsandbox.paths import new_session_id
from netsandbox.session.offered_port import offer
from tests.rig.fake_log import FakeLog

CALLER = new_session_id()


class Localhost:
    """Something listens at 5432, and its connection is made at once, or fails."""

    def __init__(self, *, answers: bool = True) -> None:
        self.dialled: list[int] = []
        self._answers = answers

    def dial(self, port: int, done: Any) -> object:
        if port != 5432:
            return None
        self.dialled.append(port)
        done("socket" if self._answers else None, "" if self._answers else "refused")
        return self


def ask(localhost: Any, log: Any, name: str = "db", port: int = 5432, publish: Any = None) -> tuple[object, bytes]:
    given: list[tuple[object, bytes]] = []
    reservation: Any = SimpleNamespace(name="db", settings=LocalhostSettings(publish=publish))
    offer(PortRequest(name, port, CALLER), reservation, localhost, log, lambda *reply: given.append(reply))
    (reply,) = given
    return reply


@pytest.mark.parametrize("publish", [None, ((5432, None),), ((5432, 9000),)])
def test_a_published_port_is_handed_out_and_recorded(publish: Any) -> None:
    log, localhost = FakeLog(), Localhost()
    assert ask(localhost, log, publish=publish) == ("socket", REACHED)
    assert log.records == [
        {"event": "ingress", "verdict": "allow", "reason": "loopback", "port": 5432, "caller": CALLER}
    ]


@pytest.mark.parametrize("publish", [(), ((3000, None),)])
def test_a_port_that_is_not_published_is_refused_and_recorded(publish: Any) -> None:
    """INV-1: nothing is dialled."""
    log, localhost = FakeLog(), Localhost()
    assert ask(localhost, log, publish=publish) == (None, NOT_PUBLISHED)
    assert localhost.dialled == []
    (record,) = log.of("ingress")
    assert (record["verdict"], record["reason"], record["hint"]) == ("deny", "not-published", "--publish 5432")


def test_no_record_no_connection() -> None:
    """INV-5."""
    log, localhost = FakeLog(), Localhost()
    log.failed = "disk full"
    assert ask(localhost, log) == (None, NOT_PUBLISHED)
    assert localhost.dialled == []


def test_a_session_of_another_name_neither_dials_nor_records() -> None:
    log, localhost = FakeLog(), Localhost()
    assert ask(localhost, log, name="shop") == (None, ANOTHER_NAME)
    assert (log.records, localhost.dialled) == ([], [])


@pytest.mark.parametrize("localhost", [None, Localhost(answers=False)])
def test_nothing_that_listens_is_told(localhost: Any) -> None:
    assert ask(localhost, FakeLog()) == (None, NOT_LISTENING)
    assert ask(localhost, FakeLog(), port=99) == (None, NOT_LISTENING)
