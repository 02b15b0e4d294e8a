"""Servers by their session's name: pages, streams, sockets and hot reload at NAME.localhost, and nobody else's."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rig import clients
from tests.rig.command import CommandLine
from tests.rig.servers_inside import Inside, split_url, wait_for
from tests.rig.websocket import WebSocket
from tests.rig.world import need

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
    for foreign in (
        "example.com",
        f"example.com:{port}",
        "localhost",
        f"127.0.0.1:{port}",
        f"other.{host}",
        f"x{host}",
    ):
        answer = clients.ask_http("127.0.0.1", port, foreign)
        assert answer["status"] == 421, foreign
        assert shared.page not in answer["page"]
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


@pytest.mark.closed_files
def test_vite_reloads_the_page_when_a_file_changes(netsandbox: CommandLine, vite: Path) -> None:
    """The dev server's page and its WebSocket are both reached by the session's name."""
    home = netsandbox.home()
    folder = home.work
    shutil.copytree(vite, folder / "node_modules", symlinks=True)
    (folder / "index.html").write_text('<script type="module" src="/main.js"></script>')
    (folder / "main.js").write_text("console.log(1); import.meta.hot.accept();")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, home.identity.uid, home.identity.gid, follow_symlinks=False)
    command = (need("node", "nodejs"), "node_modules/vite/bin/vite.js", "--port", "5173", "--strictPort")
    netsandbox.spawn("run", "--name", "shop", "--", *command, stdout=subprocess.DEVNULL)
    entries = wait_for(lambda: json.loads(netsandbox("ports", "--json").stdout), "the dev server")
    assert entries[0]["port"] == 5173
    host, port = split_url(entries[0]["url"])
    assert 'src="/main.js"' in get(port, host, "/")
    assert "console.log(1)" in get(port, host, "/main.js")
    token = re.search(r'wsToken = "([^"]+)"', get(port, host, "/@vite/client"))
    assert token
    with WebSocket("127.0.0.1", port, host, f"/?token={token[1]}", "vite-hmr") as websocket:
        assert json.loads(websocket.receive())["type"] == "connected"
        (folder / "main.js").write_text("console.log(2); import.meta.hot.accept();")
        update = json.loads(websocket.receive())
        assert (update["type"], update["updates"][0]["path"]) == ("update", "/main.js")
    assert "console.log(2)" in get(port, host, "/main.js")


def get(port: int, host: str, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status == 200, text
    return text
