"""Real sessions that ask: a yes of the user reaches the server, and nothing else does."""

from __future__ import annotations

import json
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("user_namespaces")

PATIENCE = 30
# Fetches each URL in turn and says what came; without a proxy it connects to whatever address it is given.
FETCH = """\
import sys, urllib.request
handlers = [urllib.request.ProxyHandler({})] if sys.argv[1] == "direct" else []
opener = urllib.request.build_opener(*handlers)
print("begun", flush=True)
for url in sys.argv[2:]:
    try:
        print("got", opener.open(url, timeout=60).read().decode(), flush=True)
    except Exception as error:
        print("refused", getattr(error, "headers", None) and error.headers["x-netsandbox-reason"], flush=True)
"""


class Asker:
    """One server, reached by names that no rule allows, and what is asked about them."""

    def __init__(self, netsandbox: Any, canary: Any, authority: Any) -> None:
        self.netsandbox = netsandbox
        self.server = canary.http(body=b"reached")
        self.authority = authority
        authority.answer("*.test", "127.0.0.1")
        self.options = ["--allow-address", f"127.0.0.1:{self.server.port}", "--upstream-dns", authority.address]

    def url(self, name: str = "asked.test") -> str:
        return f"http://{name}:{self.server.port}/"

    def fetch(self, *urls: str, way: str = "direct", options: tuple[str, ...] = (), **more: Any) -> Any:
        words = (self.netsandbox.python, "-c", FETCH, way, *urls)
        return self.netsandbox.spawn("run", "--ask", *options, *self.options, "--", *words, **more)

    def pending(self, count: int = 1) -> list[dict[str, Any]]:
        """What waits, once so many do."""
        until = time.monotonic() + PATIENCE
        while len(found := json.loads(self.netsandbox("pending", "--json").stdout)) != count:
            assert time.monotonic() < until, found
            time.sleep(0.05)
        return found

    def answer(self, *words: str) -> Any:
        done = self.netsandbox(*words)
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def asker(netsandbox: Any, canary: Any, authority: Any) -> Asker:
    return Asker(netsandbox, canary, authority)


def outcomes(running: Any) -> list[str]:
    return [record["outcome"] for record in running.audit if record["event"] == "approval"]


@pytest.mark.ordinary_user
@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_a_yes_lets_it_through_and_nobody_was_asked_for_the_name_before(asker: Asker, way: str) -> None:
    running = asker.fetch(asker.url(), asker.url(), way=way)
    (question,) = asker.pending()
    assert (question["host"], question["port"]) == ("asked.test", asker.server.port)
    assert question["exe"].rpartition("/")[2].startswith("python")
    assert asker.authority.names == []
    assert asker.server.accepts == 0
    said = asker.answer("approve", str(question["id"])).stdout
    assert said.endswith(f": asked.test:{asker.server.port} is let through until the session ends\n")
    running.read_until(b"got reached\ngot reached\n")  # the second needs no answer
    assert running.wait() == 0
    assert asker.server.accepts == 2
    assert outcomes(running) == ["asked", "approved"]
    (approved,) = (r for r in running.audit if r.get("outcome") == "approved")
    assert approved["scope"] == "session"
    assert approved["by_uid"] == asker.netsandbox.home().path.stat().st_uid
    order = [(r["event"], r.get("outcome"), r.get("reason")) for r in running.audit]
    assert order.index(("approval", "approved", None)) < order.index(("egress", None, "approved"))


@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_a_no_and_silence_reach_nothing(asker: Asker, way: str) -> None:
    running = asker.fetch(asker.url(), asker.url(), way=way)
    (question,) = asker.pending()
    asker.answer("deny", f"asked.test:{question['port']}")
    running.read_until(b"refused")
    running.read_until(b"refused")  # at once: nothing is asked again
    assert running.wait() == 0
    assert outcomes(running) == ["asked", "denied"]
    denied = running.audit
    silent = asker.fetch(asker.url(), way=way, options=("--ask-wait", "1"))
    silent.read_until(b"refused")
    assert silent.wait() == 0
    assert outcomes(silent) == ["asked", "unanswered"]
    reasons = [r["reason"] for r in (*denied, *silent.audit) if r["event"] == "egress"]
    assert reasons == ["denied-by-user", "denied-by-user", "unanswered"]
    assert asker.server.accepts == 0
    assert asker.authority.names == []


def test_the_line_is_said_once_and_names_the_question(asker: Asker) -> None:
    done = asker.netsandbox(
        "run", "--ask", "--ask-wait", "4", *asker.options, "--", asker.netsandbox.python, "-c",
        "import socket, threading\n"
        "def go():\n"
        "    try: socket.create_connection(('asked.test', 443)).recv(1)\n"
        "    except OSError: pass\n"
        "address = socket.gethostbyname('asked.test')\n"
        "threads = [threading.Thread(target=go) for _ in range(3)]\n"
        "for each in threads: each.start()\n"
        "for each in threads: each.join()",
    )  # fmt: skip
    (asked,) = done.events("approval", outcome="asked")
    number = asked["id"]
    line = f"asks for asked.test:443 and waits 4 s: netsandbox approve {number} (or: netsandbox deny {number})\n"
    assert done.stderr.count(" asks for ") == 1
    assert line in done.stderr
    assert len(done.events("egress", reason="unanswered")) == 3


def test_what_is_denied_or_inside_is_never_asked(asker: Asker) -> None:
    running = asker.fetch(
        asker.url("bad.test"), "http://dns.google/", "http://192.0.2.7/", "http://10.0.0.1/",
        options=("--deny-domain", "bad.test"),
    )  # fmt: skip
    for _ in range(4):
        running.read_until(b"refused")
    assert running.wait() == 0
    assert outcomes(running) == []
    assert asker.server.accepts == 0


def test_the_guard_holds_after_a_yes(asker: Asker, canary: Any) -> None:
    """The name leads to a port of the host that no address rule opens."""
    inner = canary.http(body=b"inner")
    running = asker.fetch(f"http://asked.test:{inner.port}/")
    (question,) = asker.pending()
    asker.answer("approve", str(question["id"]))
    running.read_until(b"refused")
    assert running.wait() == 0
    assert inner.accepts == 0
    assert [r["reason"] for r in running.audit if r["event"] == "egress"] == ["address-guard"]


def test_once_is_for_one_and_the_next_asks_again(asker: Asker) -> None:
    running = asker.fetch(asker.url(), asker.url())
    (first,) = asker.pending()
    asker.answer("approve", str(first["id"]), "--for", "once")
    running.read_until(b"got reached\n")
    (second,) = asker.pending()
    assert second["id"] != first["id"]
    asker.answer("deny", str(second["id"]))
    running.read_until(b"refused")
    assert running.wait() == 0
    assert asker.server.accepts == 1


@pytest.mark.parametrize(("scope", "elsewhere"), [("session", False), ("project", False), ("user", True)])
def test_an_approval_is_valid_within_its_scope(asker: Asker, scope: str, elsewhere: bool) -> None:
    home = asker.netsandbox.home()
    running = asker.fetch(asker.url())
    (question,) = asker.pending()
    asker.answer("approve", str(question["id"]), "--for", scope)
    running.read_until(b"got reached\n")
    assert running.wait() == 0
    other = Path(home.work, "other")
    asker.netsandbox("run", "--", "mkdir", "-p", other)
    fetch = (*asker.options, "--", asker.netsandbox.python, "-c", FETCH, "direct", asker.url())
    here = asker.netsandbox("run", *fetch)
    assert ("got reached" in here.stdout) == (scope != "session")
    there = asker.netsandbox("run", *fetch, cwd=other)
    assert ("got reached" in there.stdout) == elsewhere
    assert list(home.work.glob("**/*.toml")) == []  # nothing of it lies in the project


def test_an_answer_needs_one_question(asker: Asker) -> None:
    none = asker.netsandbox("approve", "1")
    assert none.returncode == 2
    assert "no session is running" in none.stderr
    running = [asker.fetch(asker.url(), options=("--name", name)) for name in ("one", "two")]
    first, second = asker.pending(2)
    both = asker.netsandbox("approve", "asked.test")
    assert both.returncode == 2
    for question in (first, second):
        assert f"{question['id']} asked.test:{asker.server.port} of {question['name']}" in both.stderr
    unknown = asker.netsandbox("approve", "other.test")
    assert unknown.returncode == 2
    assert f"{first['id']} asked.test" in unknown.stderr
    asker.answer("deny", "asked.test", "--session", "one")
    running[0].read_until(b"refused")
    asker.answer("approve", "asked.test", "--session", "two")
    running[1].read_until(b"got reached")
    assert asker.server.accepts == 1


INSIDE = """\
import json, os, socket, subprocess, sys, threading, urllib.request
state, config, port = sys.argv[1:]
def fetch():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        print("got", opener.open(f"http://asked.test:{port}/").read(), flush=True)
    except OSError:
        print("refused", flush=True)
waiting = threading.Thread(target=fetch)
waiting.start()
number = json.loads(sys.stdin.readline())
tried = []
for folder in (state, os.path.join(state, "sessions")):
    try:
        tried += [os.path.join(folder, name, "control") for name in os.listdir(folder)]
    except OSError:
        pass
tried.append(os.path.join(state, "sessions", os.environ["NETSANDBOX_SESSION"], "control"))
for path in tried:
    for scope in (b"session", b"user"):
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(b'{"op":"approve","id":%d,"scope":"%s","ttl":0}\\n' % (number, scope))
                print("answered", client.recv(100), flush=True)
        except OSError:
            pass
for path in ("config.toml", "projects/0123456789abcdef.toml"):
    try:
        os.makedirs(os.path.dirname(os.path.join(config, path)), exist_ok=True)
        with open(os.path.join(config, path), "w") as file:
            file.write('[network]\\nallow_domains = ["asked.test:%s"]\\n' % port)
        print("written", path, flush=True)
    except OSError:
        pass
print("tried", flush=True)
waiting.join()
"""


@pytest.mark.open_files
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.attack(171)
def test_no_command_approves_itself(asker: Asker) -> None:
    """INV-8: not by the socket, with Unix sockets allowed so that it can try, and not by the configuration."""
    home = asker.netsandbox.home()
    config = Path(home.path, "config", "netsandbox")
    running = asker.netsandbox.spawn(
        "run", "--ask", "--ask-wait", "600", *asker.options, "--allow-unix-socket", home.path / "some.sock", "--",
        asker.netsandbox.python, "-c", INSIDE, Path(home.state, "netsandbox"), config, asker.server.port,
        stdin=subprocess.PIPE,
    )  # fmt: skip
    (question,) = asker.pending()
    running.process.stdin.write(f"{question['id']}\n".encode())
    running.process.stdin.flush()
    seen = running.read_until(b"tried\n")
    assert seen == b"tried\n"
    assert asker.server.accepts == 0
    assert asker.pending()[0]["id"] == question["id"]
    asker.answer("approve", str(question["id"]))  # the twin: the same words from outside
    running.read_until(b"got b'reached'\n")
    assert running.wait() == 0
    assert outcomes(running) == ["asked", "approved"]


def test_the_end_of_a_session_ends_its_questions(asker: Asker) -> None:
    running = asker.fetch(asker.url(), options=("--name", "shop", "--ask-wait", "600"))
    asker.pending()
    assert asker.netsandbox("stop", "shop").returncode == 0
    assert running.wait() != 0
    assert asker.pending(0) == []
    assert outcomes(running) == ["asked", "unanswered"]
    (refused,) = (r for r in running.audit if r["event"] == "egress")
    assert (refused["reason"], refused["detail"]) == ("unanswered", "the session ended")
    assert asker.netsandbox("audit", "verify", running.log_path).returncode == 0
    assert asker.server.accepts == 0


@pytest.mark.backend("namespaces", "broker")
def test_a_killed_supervisor_lets_nothing_through(asker: Asker) -> None:
    """INV-10."""
    running = asker.fetch(asker.url(), options=("--ask-wait", "600"))
    (question,) = asker.pending()
    running.process.kill()
    running.wait()
    late = asker.netsandbox("approve", str(question["id"]))
    assert late.returncode == 2
    assert asker.server.accepts == 0


def test_a_file_may_say_it_and_a_projects_only_once_it_is_trusted(asker: Asker) -> None:
    home = asker.netsandbox.home()
    file = home.work / ".netsandbox.toml"
    file.write_text("[approvals]\nask = true\nwait = 1\n")
    assert tomllib.loads(file.read_text())["approvals"]["ask"]
    fetch = (*asker.options, "--", asker.netsandbox.python, "-c", FETCH, "direct", asker.url())
    untrusted = asker.netsandbox("run", *fetch)
    assert untrusted.events("approval") == []
    assert "approvals.ask" in untrusted.stderr
    assert asker.netsandbox("trust", "--yes").returncode == 0
    trusted = asker.netsandbox("run", *fetch)
    assert [r["outcome"] for r in trusted.events("approval")] == ["asked", "unanswered"]
    assert trusted.events("approval")[0]["wait"] == 1
    explained = asker.netsandbox("explain", "--last")
    assert "unanswered: the user was asked and nobody answered in time" in explained.stdout
    assert f"--allow-domain asked.test:{asker.server.port}" in explained.stdout
