"""The end of the engine in a session that goes on: connections are reset, and nothing passes without inspection."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import processes
from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority
from tests.rig.command import CommandLine, Spawned
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.inspecting import wait_for
from tests.rig.world import ALLOWED

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp")
pytest.importorskip("mitmproxy")

# One connection; each line of standard input is a path to get, `new` begins another connection.
CLIENT = """
import http.client, ssl, sys
connection = None
for line in sys.stdin:
    word = line.strip()
    try:
        if word == "new":
            connection = http.client.HTTPSConnection(sys.argv[1], int(sys.argv[2]), timeout=20)
            connection.connect()
            print("connected", flush=True)
            continue
        connection.request("GET", word)
        print(connection.getresponse().read().decode().strip(), flush=True)
    except (OSError, http.client.HTTPException) as error:
        print("failed", type(error).__name__, flush=True)
"""


# Looks for the CA's key: in the processes whose pids it reads, in variables, and in files that are new.
SEEKER = """
import ctypes, json, os, sys
began, pids = float(sys.argv[1]), ["self", *sys.stdin.readline().split()]

def opens(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True

def traces(pid):
    return ctypes.CDLL(None).ptrace(16, int(pid), 0, 0) == 0  # PTRACE_ATTACH

def has_key(path):
    try:
        with open(path, "rb") as file:
            return b"PRIVATE KEY" in file.read(1 << 20)
    except OSError:
        return False

folders = (os.getcwd(), os.environ["HOME"], "/tmp", "/var/tmp", "/dev/shm", "/run", "/etc")
files = {os.path.join(top, name) for each in folders for top, _, names in os.walk(each) for name in names}
files = {path for path in files if os.path.isfile(path) and os.stat(path).st_ctime >= began}
print(json.dumps({
    "opened": [f"{pid}/{name}" for pid in pids for name in ("mem", "environ", "maps") if opens(f"/proc/{pid}/{name}")],
    "traced": [pid for pid in pids[1:] if traces(pid)],
    "keys": sorted(filter(has_key, files)),
    "variables": [name for name, value in os.environ.items() if "PRIVATE KEY" in value],
    "authority": open(os.environ["SSL_CERT_FILE"]).read().split("-----BEGIN")[-1],
}), flush=True)
sys.stdin.read()
"""


class Client:
    """A client inside a session."""

    def __init__(self, spawned: Spawned) -> None:
        self.spawned = spawned

    def ask(self, word: str) -> str:
        stdin = self.spawned.process.stdin
        assert stdin is not None
        stdin.write(f"{word}\n".encode())
        stdin.flush()
        return self.spawned.read_until(b"\n").decode().strip()

    def engines(self) -> list[processes.Process]:
        return [each for each in self.spawned.family() if "inspect.engine" in each.command]

    def engine(self) -> tuple[int, int]:
        """Its first process, and the worker."""
        (first,) = [each for each in self.engines() if _parent(each) != "engine"]
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
        return first.pid, int(children[-1])

    def end(self) -> None:
        stdin = self.spawned.process.stdin
        assert stdin is not None
        stdin.close()
        assert self.spawned.wait() == 0


def _parent(process: processes.Process) -> str:
    """Whether the parent of *process* is an engine too."""
    parent = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1]
    return "engine" if b"inspect.engine" in Path(f"/proc/{parent}/cmdline").read_bytes() else ""


@pytest.fixture
def server(ca: CertificateAuthority) -> Iterator[HttpsCanary]:
    with https_canary(ca.issue(ALLOWED)) as made:
        yield made


@pytest.fixture
def client(netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, server: HttpsCanary) -> Client:
    authority.answer(ALLOWED, "127.0.0.1")
    names = ("--upstream-dns", authority.address, "--allow-address", f"127.0.0.1:{server.port}")
    rules = ("--allow-http", f"GET https://{ALLOWED}:{server.port}/**")
    command = ("python3", "-c", CLIENT, ALLOWED, str(server.port))
    trust = {"SSL_CERT_FILE": str(ca.cert)}
    return Client(netsandbox.spawn("run", *rules, *names, "--", *command, env=trust, stdin=-1))


@pytest.mark.broker_as_root
@pytest.mark.attack(64)
@pytest.mark.backend("namespaces", "broker")
def test_the_key_of_the_ca_is_out_of_reach(netsandbox: CommandLine) -> None:
    """It is in the engine's memory alone, which nobody may read (`test_sealing`); another session has another CA."""
    began = time.time() - 1
    (netsandbox.home().work / "planted.pem").write_text("-----BEGIN PRIVATE KEY-----")
    found = [look_for_key(netsandbox, began) for _ in range(2)]
    for each in found:
        assert each["opened"] == ["self/mem", "self/environ", "self/maps"]
        assert (each["traced"], each["variables"]) == ([], [])
        assert [os.path.basename(path) for path in each["keys"]] == ["planted.pem"]
    assert found[0]["authority"] != found[1]["authority"]
    kept = [path for path in netsandbox.home().state.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"PRIVATE KEY" in path.read_bytes()]


def look_for_key(line: CommandLine, began: float) -> dict[str, list[str]]:
    command = ("python3", "-c", SEEKER, str(began))
    client = Client(line.spawn("run", "--inspect", ALLOWED, "--", *command, stdin=-1))
    assert wait_for(client.engines)
    found: dict[str, list[str]] = json.loads(client.ask(" ".join(str(each.pid) for each in client.engines())))
    client.end()
    return found


def test_a_worker_that_is_killed_is_replaced(client: Client, server: HttpsCanary) -> None:
    assert client.ask("new") == "connected"
    assert client.ask("/a") == "answer /a"
    first, worker = client.engine()
    os.kill(worker, signal.SIGKILL)
    assert client.ask("/b").startswith("failed")
    assert client.ask("new") == "connected"  # by the same CA
    assert client.ask("/c") == "answer /c"
    assert client.engine()[0] == first
    client.end()
    assert server.requests == ["GET /a", "GET /c"]
    assert [each["reason"] for each in client.spawned.audit if each.get("verdict") == "deny"] == ["inspection"]


def test_without_the_engine_inspected_hosts_are_refused(client: Client, server: HttpsCanary) -> None:
    assert client.ask("new") == "connected"
    assert client.ask("/a") == "answer /a"
    first, worker = client.engine()
    os.kill(first, signal.SIGKILL)
    assert wait_for(lambda: processes.is_gone(worker))
    assert client.ask("/b").startswith("failed")
    for _ in range(2):
        assert client.ask("new").startswith("failed")
    client.end()
    assert server.requests == ["GET /a"]
    denied = [each for each in client.spawned.audit if each.get("verdict") == "deny"]
    assert {each["reason"] for each in denied} == {"inspection"}
    assert [each.get("detail", "") for each in denied][-1] == (
        "the engine has ended, and with it the CA that programs trust; start a new session to inspect again"
    )


def test_when_memory_is_short_a_worker_ends_first(client: Client) -> None:
    assert client.ask("new") == "connected"
    scores = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in client.engine()]
    if os.geteuid() == 0:
        assert scores[0] < scores[1]
    client.end()
