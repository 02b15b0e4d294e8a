"""What all this is for: two checkouts serve on port 3000 at once, and a browser has both open, each by its name."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.rig.browser import Browser, started
from tests.rig.certificates import CertificateAuthority
from tests.rig.localhost import eventually
from tests.rig.world import need

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

SHOP = Path(__file__).parents[1] / "rig" / "sources" / "shop.py"
SOCKET = """new Promise((done) => {
    const socket = new WebSocket('%s');
    socket.onopen = () => socket.send('hello');
    socket.onmessage = (event) => { done(event.data); socket.close(); };
    socket.onerror = () => done('refused');
})"""


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser of its own for this test."""
    running = started()
    yield running
    running.close()


def shop(netsandbox: Any, name: str, *certificate: Path) -> Any:
    """A session that serves its name on port 3000, with TLS if there is a certificate."""
    folder = netsandbox.home().work
    for file in (SHOP, *certificate):
        copied = folder / file.name
        copied.write_bytes(file.read_bytes())
        copied.chmod(0o644)
    words = ("shop.py", name, "3000", *(file.name for file in certificate))
    running = netsandbox.spawn("run", "--name", name, "--", netsandbox.python, *words)
    running.read_until(b"serving\n")
    return running


def urls(netsandbox: Any, *names: str) -> dict[str, str]:
    """Where the sessions of these names serve, once each of them has told."""

    def listed() -> dict[str, str]:
        found = {entry["name"]: entry["url"] for entry in json.loads(netsandbox("ports", "--json").stdout)}
        return found if found.keys() >= set(names) else {}

    return dict(eventually(listed))


def socket_url(url: str) -> str:
    return f"{url.replace('http', 'ws', 1)}live"


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
        assert tab.evaluate("fetch('/host').then(answer => answer.text())") == "localhost:3000"
        assert tab.evaluate(SOCKET % socket_url(found[name])) == f"{name}:hello"


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


FORM = """fetch('%s', {method: 'POST', body: 'x', credentials: 'include'})
    .then(answer => answer.status + ' ' + answer.url, () => 'kept from us')"""


def test_a_server_that_checks_host_and_origin_takes_forms_of_its_own_pages_only(
    netsandbox: Any, browser: Browser
) -> None:
    """Its redirect to localhost:3000 leads back to the name. The twin: a form of another session's page."""
    for name in ("red", "blue"):
        shop(netsandbox, name)
    found = urls(netsandbox, "red", "blue")
    tab = browser.open(found["red"])
    tab.wait_for("window.ready")
    assert tab.evaluate(FORM % "/form") == f"200 {found['red']}thanks"
    assert tab.evaluate(FORM % f"{found['blue']}form") == "kept from us"
    assert tab.evaluate(SOCKET % socket_url(found["blue"])) == "refused"


def test_a_server_with_tls_opens_by_name_and_its_url_says_so(
    netsandbox: Any, browser: Browser, ca: CertificateAuthority
) -> None:
    """A browser that was given the http URL is sent on; a WebSocket goes through TLS as well."""
    leaf = ca.issue("localhost")
    shop(netsandbox, "red", leaf.cert, leaf.key)
    plain = urls(netsandbox, "red")["red"]
    assert plain.startswith("http://red.localhost:")
    tab = browser.open(plain)
    tab.wait_for("window.ready")
    secure = plain.replace("http", "https", 1)
    assert tab.evaluate("location.href") == secure
    assert tab.evaluate(SOCKET % socket_url(secure)) == "red:hello"
    assert urls(netsandbox, "red")["red"] == netsandbox("open", "red", "--print").stdout.strip() == secure


def test_vite_replaces_a_module_in_the_open_page(netsandbox: Any, browser: Browser, vite: Path) -> None:
    """Hot reload of a real project: the page is not loaded again."""
    home = netsandbox.home()
    folder = home.work
    shutil.copytree(vite, folder / "node_modules", symlinks=True)
    (folder / "index.html").write_text('<script type="module" src="/main.js"></script>')
    program = "window.value = %d; import.meta.hot.accept();"
    (folder / "main.js").write_text(program % 1)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, home.identity.uid, home.identity.gid, follow_symlinks=False)
    command = (need("node", "nodejs"), "node_modules/vite/bin/vite.js", "--port", "5173", "--strictPort")
    netsandbox.spawn("run", "--name", "shop", "--", *command, stdout=subprocess.DEVNULL)
    tab = browser.open(urls(netsandbox, "shop")["shop"])
    tab.wait_for("window.value === 1 && (window.kept = true)")
    numbers = itertools.count(2)

    def changed() -> bool:
        """Written again and again: the page connects its socket, and vite watches the file, in their own time."""
        (folder / "main.js").write_text(program % next(numbers))
        return bool(tab.evaluate("new Promise(done => setTimeout(() => done(window.value > 1), 500))"))

    assert eventually(changed)
    assert tab.evaluate("window.kept")


@pytest.mark.attack(183)
def test_a_name_that_was_rebound_reaches_nothing(netsandbox: Any) -> None:
    """A foreign name that leads to loopback carries itself in Host: no session answers to it, nor to another's name."""
    for name in ("red", "blue"):
        shop(netsandbox, name)
    found = urls(netsandbox, "red", "blue")
    port = urlsplit(found["red"]).port
    assert port is not None
    foreign = ["evil.test", f"127.0.0.1:{port}", "red.localhost.evil.test", "[::1]", "red", ""]
    foreign += ["red.localhost@evil.test", "evil.test#.red.localhost"]
    for host in foreign:
        assert ask(port, host) in ((421, False), (400, False)), host
    for host in ("localhost", "xred.localhost", "x.red.localhost", "3001.red.localhost"):
        assert ask(port, host) in ((404, False), (502, False)), host
    assert ask(port, "blue.localhost") == ask(port, "3000.blue.localhost") == (200, False)
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
