"""Section K of the catalogue: variables are convenience. Cleared, forged or broken, they open nothing.

Real clients run where the machine has them; what they do not obey, the kernel hands to the doors.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.inside import attack, program

pytestmark = pytest.mark.usefixtures("user_namespaces")

PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture
def scene(canary: Any, authority: Any) -> tuple[Any, Any, list[str]]:
    """An allowed origin, a forbidden one at the same name server, and the options."""
    good, bad = canary.http(body=b"reached"), canary.http(body=b"stolen")
    authority.answer("*.test", "127.0.0.1")
    options = ["--allow-domain", f"allowed.test:{good.port}", "--allow-address", f"127.0.0.1:{good.port}"]
    return good, bad, [*options, "--allow-address", f"127.0.0.1:{bad.port}", "--upstream-dns", authority.address]


def curl(netsandbox: Any, options: list[str], *arguments: str, env: dict[str, str | None] | None = None) -> Any:
    if shutil.which("curl") is None:
        pytest.skip("curl is missing (package curl)")
    return netsandbox("run", "-q", *options, "--", "env", *arguments, env=env)


def fetches(good: Any, bad: Any) -> str:
    """Shell that fetches the allowed page and then the forbidden one; prints both."""
    ask = "curl -s --max-time 10 -o /dev/stdout"
    return f"{ask} http://allowed.test:{good.port}/; {ask} http://denied.test:{bad.port}/; true"


UNSET = [word for name in PROXY_NAMES for word in ("-u", name, "-u", name.upper())]
TRICKS = {
    "as they are": [],
    "unset": UNSET,
    "no_proxy=*": ["no_proxy=*", "NO_PROXY=*"],
    "no_proxy=.test": ["no_proxy=.test", "NO_PROXY=.test"],
    "no_proxy=0.0.0.0/0": ["no_proxy=0.0.0.0/0,::/0", "NO_PROXY=0.0.0.0/0"],
    "mixed case": ["No_Proxy=*", "Http_Proxy=http://192.0.2.1:3128"],
}


@pytest.mark.attack(156)
@pytest.mark.attack(157)
@pytest.mark.parametrize("trick", TRICKS)
def test_156_157_proxy_variables_change_the_way_not_the_verdict(netsandbox: Any, scene: Any, trick: str) -> None:
    good, bad, options = scene
    run = curl(netsandbox, options, *TRICKS[trick], "sh", "-c", fetches(good, bad))
    assert run.stdout.startswith("reached")
    assert "stolen" not in run.stdout
    assert (good.accepts, bad.accepts) == (1, 0)


@pytest.mark.attack(156)
def test_156_a_static_program_that_knows_no_variables_is_filtered_too(
    netsandbox: Any, scene: Any, go_static: Path
) -> None:
    good, bad, options = scene
    allowed = netsandbox("run", "-q", *options, "--", go_static, f"http://allowed.test:{good.port}/")
    denied = netsandbox("run", "-q", *options, "--", go_static, f"http://denied.test:{bad.port}/")
    assert allowed.stdout == "200\nreached"
    assert denied.returncode == 1
    assert (good.accepts, bad.accepts) == (1, 0)


@pytest.mark.attack(158)
def test_158_a_child_that_forges_the_variables_for_its_children_gains_nothing(netsandbox: Any, scene: Any) -> None:
    good, bad, options = scene
    script = r"""
import subprocess
listener = socket.create_server(("127.0.0.1", 0))
def relay():
    for _ in range(2):
        client, _ = listener.accept()
        with client, dial() as door:
            door.sendall(client.recv(65536).replace(b"decoy.test:%d" % good, b"denied.test:%d" % bad))
            client.sendall(rest(door))
threading.Thread(target=relay, daemon=True).start()
proxy = "http://127.0.0.1:%d" % listener.getsockname()[1]
child = "import urllib.request as u\ntry: print(u.urlopen('http://decoy.test:%d/').status)\n"
child += "except Exception as e: print(getattr(e, 'code', e))"
env = dict(os.environ, http_proxy=proxy, HTTP_PROXY=proxy, no_proxy="", NO_PROXY="")
out["child"] = subprocess.run([sys.executable, "-c", child % good], env=env, capture_output=True, text=True).stdout
"""
    ports = {"good": good.port, "bad": bad.port}
    tried = attack(netsandbox, ["-q", *options], script, arguments=ports)
    assert tried.out["child"].strip() in ("403", "421")
    assert bad.accepts == 0


def inside(netsandbox: Any, *options: str, env: dict[str, str | None]) -> dict[bytes, bytes]:
    run = netsandbox("run", *options, "--", "env", "-0", env=env)
    entries = [entry.partition(b"=") for entry in run.stdout_bytes.split(b"\0") if entry]
    return {name: value for name, _, value in entries}


@pytest.mark.attack(157)
def test_157_what_the_caller_had_set_is_never_inherited(netsandbox: Any) -> None:
    forged: dict[str, str | None] = dict.fromkeys(PROXY_NAMES, "http://secret@192.0.2.1:3128")
    forged |= {name.upper(): "http://secret@192.0.2.1:3128" for name in PROXY_NAMES}
    forged |= {"Http_Proxy": "http://192.0.2.1:1", "FTP_PROXY": "http://192.0.2.1:1", "KEPT": "yes"}
    seen = inside(netsandbox, env=forged)
    door = b"http://127.0.0.1:1008"
    assert {seen[name.encode()] for name in PROXY_NAMES[:3]} == {door}
    assert {seen[name.upper().encode()] for name in PROXY_NAMES[:3]} == {door}
    assert b"*" not in seen[b"no_proxy"]
    assert b"192.0.2.1" not in b"".join(seen.values())
    assert seen[b"KEPT"] == b"yes"
    without = inside(netsandbox, "--no-proxy-env", env=forged)
    assert [name for name in without if name.lower().endswith(b"_proxy")] == []


@pytest.mark.attack(160)
def test_160_odd_variables_arrive_as_they_were(netsandbox: Any) -> None:
    odd: dict[str, str | None] = {
        "BYTES": "\udcff\udcfe\x01",
        "\udcff": "name",
        "LINES": "a\nb",
        "EMPTY": "",
        "EQUALS": "a=b=c",
    }
    odd["HUGE"] = "x" * 120_000
    seen = inside(netsandbox, env=odd)
    assert seen[b"BYTES"] == b"\xff\xfe\x01"
    assert seen[b"\xff"] == b"name"
    assert seen[b"LINES"] == b"a\nb"
    assert seen[b"EMPTY"] == b""
    assert seen[b"EQUALS"] == b"a=b=c"
    assert len(seen[b"HUGE"]) == 120_000


@pytest.mark.attack(161)
@pytest.mark.attack(163)
def test_161_163_secrets_of_the_caller_are_in_no_log_and_on_no_command_line(netsandbox: Any, scene: Any) -> None:
    _, _, options = scene
    secret = "canary-5e2f7c"
    script = """
out["seen"] = os.environ.get("API_TOKEN")
print("ready", flush=True)
sys.stdin.read()
"""
    command = program(netsandbox, script)
    running = netsandbox.spawn("run", *options, "--", *command, env={"API_TOKEN": secret}, stdin=subprocess.PIPE)
    running.read_until(b"ready")
    lines = [Path(f"/proc/{process.pid}/cmdline").read_bytes() for process in running.family()]
    assert not any(secret.encode() in line for line in lines)
    running.process.stdin.close()
    assert running.wait() == 0
    assert secret not in running.log_path.read_text()


def test_the_session_is_named_to_the_command(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "sh", "-c", 'printf %s "$NETSANDBOX_SESSION"')
    assert run.stdout == run.audit[0]["session"] == run.log_path.parent.name


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ((), "offline"),
        (("--localhost",), "localhost"),
        (("--allow-domain", "example.com"), "filtered"),
        (("--allow-address", "192.0.2.7"), "filtered"),
        (("--online",), "online"),
    ],
)
def test_the_mode_and_the_given_name_are_told_to_the_command(netsandbox: Any, options: Any, mode: str) -> None:
    told = 'printf "%s %s" "$SANDBOX_MODE" "$NETSANDBOX_NAME"'
    run = netsandbox("run", "--name", "shop", *options, "--", "sh", "-c", told, env={"SANDBOX_MODE": "forged"})
    assert run.stdout == f"{run.audit[0]['mode']} shop" == f"{mode} shop"


# The parent proxy: named by the user, never by the environment.


def parent_proxy(canary: Any, origin: Any) -> Any:
    """A proxy that keeps what it is asked and carries it to ORIGIN, whatever the name."""

    def speak(stream: Any, visit: Any) -> None:
        while b"\r\n\r\n" not in visit.data:
            data = stream.recv(65536)
            if not data:
                return
            visit.data += data
        with socket.create_connection((origin.host, origin.port)) as onward:
            if visit.data.startswith(b"CONNECT "):
                stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while data := stream.recv(65536):
                    visit.data += data
                    onward.sendall(data)
                    stream.sendall(onward.recv(65536))
            else:
                onward.sendall(bytes(visit.data))
                stream.sendall(onward.recv(65536))

    return canary.tcp(script=speak)


def test_requests_go_through_the_upstream_proxy_with_its_credentials(netsandbox: Any, scene: Any, canary: Any) -> None:
    good, bad, options = scene
    parent, decoy = parent_proxy(canary, good), canary.http()
    script = """
out["get"] = get(b"allowed.test", good)
out["denied"] = [status(get(b"denied.test", good)), status(connect(b"denied.test", good)[1])]
sock, head = connect(b"allowed.test", good)
sock.sendall(b"GET / HTTP/1.1\\r\\nHost: allowed.test:%d\\r\\n\\r\\n" % good)
out["connect"] = [status(head), until(sock, b"reached")]
"""
    upstream = f"http://user:p%40ss@127.0.0.1:{parent.port}"
    env = {"HTTP_PROXY": f"http://127.0.0.1:{decoy.port}", "http_proxy": f"http://127.0.0.1:{decoy.port}"}
    chosen = [*options, "--upstream-proxy", upstream]
    tried = attack(netsandbox, chosen, script, arguments={"good": good.port, "bad": bad.port}, env=env)
    assert tried.out["get"].endswith("reached")
    assert tried.out["denied"] == [403, 403]
    assert tried.out["connect"][0] == 200
    assert tried.out["connect"][1].endswith("reached")
    assert parent.accepts >= 2
    credentials = b"dXNlcjpwQHNz"  # user:p@ss
    assert all(credentials in visit.data for visit in parent.visits)
    assert b"denied.test" not in parent.received
    assert decoy.accepts == 0
    assert credentials not in good.received
    log = tried.run.log_path.read_text()
    assert "dXNlcjpwQHNz" not in log
    assert "p%40ss" not in log


def test_a_proxy_of_the_callers_environment_is_not_used(netsandbox: Any, scene: Any, canary: Any) -> None:
    good, _, options = scene
    decoy = canary.http(body=b"decoy")
    env = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "https_proxy"), f"http://127.0.0.1:{decoy.port}")
    tried = attack(
        netsandbox, options, 'out["page"] = get(b"allowed.test", good)', arguments={"good": good.port}, env=env
    )
    assert tried.out["page"].endswith("reached")
    assert decoy.accepts == 0


OWN_SERVER = """
import os, threading, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"own")

    def log_message(self, *arguments):
        pass

server = HTTPServer(("0.0.0.0", 0), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
for host in ("127.0.0.1", "0.0.0.0", "192.0.2.7"):
    try:
        print(host, urllib.request.urlopen(f"http://{host}:{server.server_port}/", timeout=20).read().decode())
    except OSError as error:
        print(host, "refused")
"""


@pytest.mark.backend("namespaces", "broker")
def test_a_sessions_own_server_is_reached_at_the_address_that_it_prints(netsandbox: Any) -> None:
    """Servers print http://0.0.0.0:PORT; the twin is another machine's address, which is refused."""
    run = netsandbox("run", "--", netsandbox.python, "-c", OWN_SERVER)
    assert run.stdout.splitlines() == ["127.0.0.1 own", "0.0.0.0 own", "192.0.2.7 refused"], run.stderr
