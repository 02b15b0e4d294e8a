"""The requests of an inspected connection, with mitmproxy's flows and no sockets."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mitmproxy")

from mitmproxy.connection import Client, Server
from mitmproxy.http import HTTPFlow, Request, Response
from mitmproxy.proxy.layers.http import HttpRequestHeadersHook
from netsandbox_proxy.inspect.connection_requests import ConnectionRequests

HOST = "allowed.test"


class Scene:
    """The worker: it keeps the messages to the supervisor."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.captured = None
        self.loop = SimpleNamespace(now=lambda: 7.0)
        self.requests = ConnectionRequests(self, 3, (HOST, 443), None, count(5))

    def tell(self, message: dict[str, Any]) -> None:
        self.told.append(message)

    def hook(self, host: str = HOST) -> HttpRequestHeadersHook:
        client = Client(peername=("client", 0), sockname=("door", 0))
        flow = HTTPFlow(client, Server(address=(HOST, 443)))
        flow.request = Request.make("GET", f"https://{HOST}/a?b")
        flow.request.headers["Host"] = host
        return HttpRequestHeadersHook(flow)


def test_an_allowed_request_goes_on_and_is_told_once_when_it_ends() -> None:
    scene = Scene()
    hook = scene.hook()
    assert scene.requests.begin(hook)
    assert [(each["kind"], each["id"], each["n"], each["target"]) for each in scene.told] == [("ask", 3, 5, "/a?b")]
    assert scene.requests.judged(5, {"allow": True}, None) is hook
    assert (scene.requests.waiting, hook.flow.response) == ({}, None)
    hook.flow.response = Response.make(204)
    scene.requests.respond(hook.flow)
    for _ in range(2):
        scene.requests.end(hook.flow)
    ended = {"kind": "request", "id": 3, "n": 5, "status": 204, "up": 0, "down": 0, "ms": 0}
    assert scene.told[1:] == [ended]


@pytest.mark.parametrize("allow", [False, None, 1, "yes"])
def test_only_a_plain_yes_allows(allow: object) -> None:
    scene = Scene()
    hook = scene.hook()
    scene.requests.begin(hook)
    assert scene.requests.judged(5, {"allow": allow, "reason": "request-denied", "text": "no"}, None) is hook
    assert hook.flow.response is not None
    assert hook.flow.response.status_code == 403
    scene.requests.end(hook.flow)
    assert [each["kind"] for each in scene.told] == ["ask"]


def test_a_request_for_another_host_is_refused_without_a_question() -> None:
    scene = Scene()
    hook = scene.hook("other.test")
    assert not scene.requests.begin(hook)
    assert [each["kind"] for each in scene.told] == ["refused"]
    assert scene.requests.waiting == {}
    assert hook.flow.response is not None


def test_an_allowed_request_whose_server_failed_gets_502() -> None:
    scene = Scene()
    hook = scene.hook()
    scene.requests.begin(hook)
    hook.flow.server_conn.error = "sslv3 alert"
    scene.requests.judged(5, {"allow": True}, hook.flow.server_conn)
    assert hook.flow.response is not None
    assert hook.flow.response.status_code == 502


def test_a_decision_that_nobody_waits_for_changes_nothing() -> None:
    scene = Scene()
    assert scene.requests.judged(9, {"allow": True}, None) is None
