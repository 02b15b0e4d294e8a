"""One port for the names of all sessions: its life is that of the sessions together, and no session reaches it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.rig import clients, ports
from tests.rig.command import CommandLine, Spawned
from tests.rig.localhost import eventually
from tests.rig.servers_inside import Inside, Puppets, split_url, start_puppet

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

SERVER = """
import http.server
def listen():
    return http.server.ThreadingHTTPServer(("127.0.0.1", 3000), http.server.BaseHTTPRequestHandler)
first = listen()
__import__("threading").Thread(target=first.serve_forever, args=(0.05,), daemon=True).start()
input()
first.shutdown()
first.server_close()
print("closed", flush=True)
input()
second = listen()
input()
print("ended", flush=True)
"""


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def page(session: Inside, port: int = 3000) -> str:
    host, gateway = split_url(session.published(port)["url"])
    answer = clients.ask_http("127.0.0.1", gateway, host)
    assert answer["status"] == 200, answer
    return str(answer["page"])


@pytest.fixture
def three(netsandbox: CommandLine) -> list[Inside]:
    """Three sessions that were started at once and listen at once, each on its port 3000."""
    netsandbox.home()
    with ThreadPoolExecutor(3) as pool:
        sessions = list(pool.map(lambda _: start_puppet(netsandbox), range(3)))
        list(pool.map(lambda session: session.tell("listen", "127.0.0.1", 3000), sessions))
    return sessions


def test_sessions_that_start_at_once_share_the_port(three: list[Inside]) -> None:
    gateway = three[0].line.home().gateway_port
    for session in three:
        assert session.published(3000)["url"] == f"http://{session.name}.localhost:{gateway}/"
        assert page(session) == session.page
        assert ("127.0.0.1", gateway) in ports.listeners_of(session.spawned.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_a_session_breaks_nothing_of_the_others(three: list[Inside], number: signal.Signals) -> None:
    """Whichever of them had bound the port, and whichever had accepted the connections that go on."""
    last = three[2]
    host, gateway = split_url(last.published(3000)["url"])
    streams = []
    for _ in range(6):
        connection = http.client.HTTPConnection("127.0.0.1", gateway, timeout=20)
        connection.request("GET", "/events", headers={"Host": host})
        streams.append((connection, connection.getresponse()))
    for session in three[:2]:
        os.kill(session.status()["pid"], number)
        session.spawned.wait()
        assert page(last) == last.page
    assert last.tell("tick", "still") == {"streams": 6}
    for connection, answer in streams:
        assert answer.readline() == b"data: still\n"
        connection.close()
    gone = clients.ask_http("127.0.0.1", gateway, f"{three[0].name}.localhost")
    assert gone["status"] == 404
    assert (three[0].name in gone["page"], last.name in gone["page"]) == (True, True)
    again = start_puppet(last.line)
    again.tell("listen", "127.0.0.1", 3000)
    assert page(again) == again.page
    last.close()
    assert page(again) == again.page


def test_a_suspended_session_keeps_no_connection_of_another(three: list[Inside]) -> None:
    """The kernel wakes a process that waits, and a stopped one does not."""
    stopped = [session.status()["pid"] for session in three[:2]]
    for session in three:
        assert page(session) == session.page
    entry = three[2].published(3000)
    host, gateway = split_url(entry["url"])
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: all(map(is_stopped, stopped)))  # until it runs once more, the kernel may still wake it
        for _ in range(6):
            assert clients.ask_http("127.0.0.1", gateway, host)["page"] == three[2].page
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert page(three[0]) == three[0].page


@pytest.mark.attack(108)
def test_no_session_reaches_another_by_the_gateway(three: list[Inside]) -> None:
    """Not at its own localhost, nor by name through the proxy, which even an online policy does not open."""
    line, blue = three[0].line, three[1]
    gateway = line.home().gateway_port
    host = f"{blue.name}.localhost:{gateway}"
    script = f"""
for url in http://127.0.0.1:{gateway}/ http://{host}/; do
    for proxy in "--noproxy *" ""; do curl -s -m 5 -H "Host: {host}" $proxy $url; done
done; true"""
    run = line("run", "--online", "--", "sh", "-c", script)
    assert (run.returncode, blue.page in run.stdout) == (0, False), run.stdout
    assert blue.tell("count") == {"clients": 0}
    assert page(blue) == blue.page
    assert blue.tell("count") == {"clients": 1}


def spawn_server(line: CommandLine, *options: str) -> Spawned:
    return line.spawn("run", "--name", "shop", *options, "--", line.python, "-c", SERVER, terminal=True)


def test_a_terminal_is_told_the_url_once(netsandbox: CommandLine) -> None:
    """A server that listens again is at the same URL, and there is no second line."""
    session = spawn_server(netsandbox)
    assert session.terminal is not None
    url = f"http://shop.localhost:{netsandbox.home().gateway_port}/"
    said = session.read_until(f"netsandbox: {url} is port 3000 of this session".encode())
    os.write(session.terminal, b"close\n")
    said += session.read_until(b"closed")
    eventually(lambda: json.loads(netsandbox("ports", "--json").stdout) == [])
    os.write(session.terminal, b"again\n")
    eventually(lambda: [entry["url"] for entry in json.loads(netsandbox("ports", "--json").stdout)] == [url])
    os.write(session.terminal, b"end\n")
    said += session.read_until(b"ended")
    assert said.count(b" of this session") == 1


def test_a_quiet_session_and_a_pipe_are_told_nothing(netsandbox: CommandLine) -> None:
    session = spawn_server(netsandbox, "-q")
    assert session.terminal is not None
    session.wait_for("publish", port=3000)
    os.write(session.terminal, b"\n\n\n")
    assert b"netsandbox:" not in session.read_until(b"ended")
    piped = netsandbox.spawn("run", "--", netsandbox.python, "-c", SERVER, stdin=subprocess.PIPE)
    piped.wait_for("publish", port=3000)
    _, stderr = piped.process.communicate(b"\n\n\n", 30)
    assert (piped.process.returncode, stderr) == (0, b"")


def test_a_port_that_another_program_has_is_named_once_with_the_way_out(netsandbox: CommandLine, canary: Any) -> None:
    taken = canary.http("127.0.0.1")
    session = spawn_server(netsandbox, f"--gateway-port={taken.port}")
    line = session.read_until(b"choose with --gateway-port PORT")
    assert (
        f"netsandbox: port {taken.port} is taken by another program, so names of this session are at ".encode() in line
    )
    url = session.read_until(b" is port 3000 of this session").split()[1].decode()
    host, port = split_url(url)
    assert clients.ask_http("127.0.0.1", port, host)["status"] == 501  # that server knows no method
    assert taken.accepts == 0


def test_a_name_that_two_sessions_want_is_one_clear_line(puppet: Puppets, netsandbox: CommandLine) -> None:
    session = puppet()
    run = netsandbox("run", "--name", session.name, "--", "true")
    advice = f"choose another --name or `netsandbox stop {session.name}`"
    assert run.stderr == f"netsandbox: {session.name} is running already; {advice}\n"
    assert run.returncode == 1


HOSTS = """
import http.server
class Hosts(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("Host:", self.headers["Host"], flush=True)
http.server.HTTPServer(("127.0.0.1", 3000), Hosts).serve_forever()
"""


@pytest.mark.parametrize(("options", "seen"), [((), "localhost:3000"), (("--keep-host",), "shop.localhost:{}")])
def test_a_server_sees_its_own_address_or_what_was_opened(
    netsandbox: CommandLine, options: tuple[str, ...], seen: str
) -> None:
    session = netsandbox.spawn("run", "--name", "shop", *options, "--", netsandbox.python, "-c", HOSTS)
    session.wait_for("publish", port=3000)
    gateway = netsandbox.home().gateway_port
    with socket.create_connection(("127.0.0.1", gateway), 20) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: shop.localhost:{gateway}\r\n\r\n".encode())
        assert seen.format(gateway).encode() in session.read_until(b"\n")
