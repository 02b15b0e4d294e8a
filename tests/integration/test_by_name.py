"""Servers by their session's name: pages, streams, sockets and hot reload at NAME.localhost, and nobody else's."""

from __future__ import annotations

import http.client

import pytest

from tests.rig import clients
from tests.rig.servers_inside import Inside, split_url
from tests.rig.websocket import WebSocket

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]


def test_two_servers_of_a_session_have_two_names(shared: Inside) -> None:
    """The oldest is the session's name itself, the other has its port before it."""
    for port in (4200, 4201):
        shared.tell("listen", "127.0.0.1", port)
        shared.published(port)
    urls = {entry["port"]: entry["url"] for entry in shared.ports()}
    host, port = split_url(urls[4200])
    assert urls[4201] == f"http://4201.{host}/"
    for asked in (4200, 4201):
        assert clients.ask_http("127.0.0.1", port, split_url(urls[asked])[0])["own_port"] == asked
    shared.tell("close", 4200)
    shared.tell("close", 4201)


@pytest.mark.attack(183)
def test_a_foreign_name_reaches_nothing(shared: Inside) -> None:
    """DNS rebinding: a page of example.com whose name now leads to 127.0.0.1 is sent away with 421."""
    shared.tell("listen", "127.0.0.1", 4300)
    host, port = split_url(shared.published(4300)["url"])
    for foreign, status in {
        "example.com": 421,
        f"example.com:{port}": 421,
        f"127.0.0.1:{port}": 421,
        "localhost": 404,  # no other site's page has that name
        f"other.{host}": 404,
        f"x{host}": 404,
    }.items():
        answer = clients.ask_http("127.0.0.1", port, foreign)
        assert answer["status"] == status, foreign
        assert shared.page not in answer["page"]
        assert (shared.name in answer["page"]) is (status == 404)
    shared.tell("close", 4300)
    nothing = clients.ask_http("127.0.0.1", port, host)
    assert (nothing["status"], "Nothing" in nothing["page"]) == (502, True)


def test_server_sent_events_come_one_by_one(shared: Inside) -> None:
    """The second is sent after the first was read, so nothing waits for more to come."""
    shared.tell("listen", "127.0.0.1", 4400)
    host, port = split_url(shared.published(4400)["url"])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/events", headers={"Host": host})
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "text/event-stream"
    for text in ("first", "second"):
        assert shared.tell("tick", text) == {"streams": 1}
        assert answer.readline() + answer.readline() == f"data: {text}\n\n".encode()
    connection.close()
    shared.tell("close", 4400)


def test_a_websocket_is_passed_on_untouched(shared: Inside) -> None:
    shared.tell("listen", "127.0.0.1", 4500)
    host, port = split_url(shared.published(4500)["url"])
    with WebSocket("127.0.0.1", port, host) as websocket:
        for text in ("hello", "again"):
            websocket.send(text)
            assert websocket.receive() == text
    shared.tell("close", 4500)
