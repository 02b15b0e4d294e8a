"""Ports are given out only where the session and the host leave them free, and an error gives out nothing."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from netsandbox_portmap import bind_service
from netsandbox_portmap.bind_service import BindService

from netsandbox.policy import reasons


@pytest.fixture
def service() -> BindService:
    reservation: Any = SimpleNamespace(window=SimpleNamespace(base=20000, count=4))
    nothing: Any = None
    return BindService(nothing, nothing, reservation, nothing)


def test_a_port_that_the_session_or_the_host_uses_is_not_free(
    service: BindService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert not service._is_free(taken)
    monkeypatch.setattr(bind_service, "is_free_on_host", lambda port: True)
    service.used.add(20001)
    assert (service._is_free(20000), service._is_free(20001)) == (True, False)


def test_an_error_is_a_refusal_on_record(service: BindService, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[dict[str, Any]] = []
    monkeypatch.setattr(service.repeats, "note", lambda _key, **fields: noted.append(fields))
    service._failed(ValueError("no"))
    assert [(fields["event"], fields["verdict"], fields["reason"]) for fields in noted] == [
        ("bind", "deny", reasons.INTERNAL)
    ]
