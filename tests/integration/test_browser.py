"""What all this is for: two checkouts serve on port 3000 at once, and a browser has both open, each by its name."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.rig.browser import Browser, started
from tests.rig.localhost import eventually

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user, pytest.mark.closed_files]

SHOP = Path(__file__).parents[1] / "rig" / "sources" / "shop.py"
SOCKET = """new Promise((done, failed) => {
    const socket = new WebSocket('ws://' + location.host + '/live');
    socket.onopen = () => socket.send('hello');
    socket.onmessage = (event) => { done(event.data); socket.close(); };
    socket.onerror = () => failed('the WebSocket failed');
})"""


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser of its own for this test."""
    running = started()
    yield running
    running.close()


def shop(netsandbox: Any, name: str) -> Any:
    """A session that serves its name on port 3000."""
    program = netsandbox.home().work / "shop.py"
    program.write_bytes(SHOP.read_bytes())
    program.chmod(0o644)
    running = netsandbox.spawn("run", "--name", name, "--", netsandbox.python, program, name, "3000")
    running.read_until(b"serving\n")
    return running


def urls(netsandbox: Any, *names: str) -> dict[str, str]:
    """Where the sessions of these names serve, once each of them has told."""

    def listed() -> dict[str, str]:
        found = {entry["name"]: entry["url"] for entry in json.loads(netsandbox("ports", "--json").stdout)}
        return found if found.keys() >= set(names) else {}

    return dict(eventually(listed))


def test_two_sessions_on_one_port_are_two_sites_in_a_browser(netsandbox: Any, browser: Browser) -> None:
    """Each page is its own session's; cookies keep apart, since the names are two sites; a WebSocket connects."""
    names = ("red", "blue")
    for name in names:
        shop(netsandbox, name)
    found = urls(netsandbox, *names)
    assert {urlsplit(url).hostname for url in found.values()} == {f"{name}.localhost" for name in names}
    tabs = {name: browser.open(found[name]) for name in names}
    for name, tab in tabs.items():
        tab.wait_for("window.ready")
        assert tab.evaluate("document.body.innerText.trim()") == name
        assert tab.evaluate("document.title") == name
    for name, tab in tabs.items():  # both have set their cookie by now
        assert tab.evaluate("document.cookie") == f"owner={name}"
        assert tab.evaluate("fetch('/cookie').then(answer => answer.text())") == f"owner={name}"
        assert tab.evaluate("fetch('/host').then(answer => answer.text())") == urlsplit(found[name]).netloc
        assert tab.evaluate(SOCKET) == f"{name}:hello"


def test_a_page_cannot_read_another_session(netsandbox: Any, browser: Browser) -> None:
    """Two names are two origins: what red's page fetches of blue it may not see, and no cookie of blue goes along."""
    for name in ("red", "blue"):
        shop(netsandbox, name)
    found = urls(netsandbox, "red", "blue")
    tab = browser.open(found["red"])
    tab.wait_for("window.ready")
    fetch = "fetch('%s', {credentials: 'include'}).then(answer => answer.text(), () => 'kept from us')"
    assert tab.evaluate(fetch % found["blue"]) == "kept from us"
    assert tab.evaluate(fetch % found["red"]) != "kept from us"


@pytest.mark.attack(183)
def test_a_name_that_was_rebound_reaches_nothing(netsandbox: Any) -> None:
    """A foreign name that leads to loopback carries itself in Host: no session answers to it, nor to another's name."""
    for name in ("red", "blue"):
        shop(netsandbox, name)
    found = urls(netsandbox, "red", "blue")
    port = urlsplit(found["red"]).port
    assert port is not None
    foreign = ["evil.test", "localhost", f"127.0.0.1:{port}", "blue.localhost", "red.localhost.evil.test", "[::1]"]
    foreign += [
        "xred.localhost",
        "red.localhost@evil.test",
        "evil.test#.red.localhost",
        "",
        "3000.blue.localhost",
        "red",
    ]
    for host in foreign:
        assert ask(port, host) in ((421, False), (400, False)), host
    for host in (f"red.localhost:{port}", "red.localhost", "RED.localhost", "3000.red.localhost"):
        assert ask(port, host) == (200, True), host


def ask(port: int, host: str) -> tuple[int, bool]:
    """The status, and whether the answer is red's page."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    client.putrequest("GET", "/", skip_host=True)
    client.putheader("Host", host)
    client.endheaders()
    answer = client.getresponse()
    body = answer.read()
    client.close()
    return answer.status, b"<h1>red</h1>" in body
