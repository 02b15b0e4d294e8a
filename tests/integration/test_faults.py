"""Faults of the supervisor, injected into real sessions: whatever fails, no forbidden server is reached (INV-1)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

# Raises *error* where *function* would run: `module:Class.method`. The class is patched as soon as it exists.
FAULTY = """
import errno, importlib, sys
from netsandbox.cli.main import main
place, error = sys.argv.pop(1), sys.argv.pop(1)

def fail(*_, **__):
    raise eval(error)

if place:
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = importlib.import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    setattr(owner, name, fail)
main()
"""

# Tries to get out by every door, and to bind a port; prints what answered.
ATTEMPTS = """
import json, socket, sys
good, bad = int(sys.argv[1]), int(sys.argv[2])
out = {}

def attempt(name, act):
    try:
        out[name] = act()
    except OSError as error:
        out[name] = type(error).__name__

def proxy(port):
    with socket.create_connection(("127.0.0.1", 1008), 3) as door:
        door.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % (port, port))
        return door.recv(12).decode()

def straight():
    with socket.create_connection(("192.0.2.1", bad), 3) as door:
        door.sendall(b"x")
        return door.recv(12).decode()

def listen(port):
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        return "listens"

attempt("good", lambda: proxy(good))
attempt("bad", lambda: proxy(bad))
attempt("straight", straight)
attempt("name", lambda: socket.getaddrinfo("bad.test", bad) and "resolved")
attempt("bind", lambda: listen(3999))
print(json.dumps(out), flush=True)
"""


@pytest.fixture
def faulty(netsandbox: Any, canary: Any) -> Any:
    good, bad = canary.tcp(), canary.tcp()

    def run(place: str, error: str = "", *options: str) -> tuple[dict[str, str], subprocess.CompletedProcess[str], Any]:
        home = netsandbox.home()
        rule = ("--allow-address", f"127.0.0.1:{good.port}")
        inside = [netsandbox.python, "-c", ATTEMPTS, str(good.port), str(bad.port)]
        done = subprocess.run(
            [netsandbox.python, "-c", FAULTY, place, error, "run", *rule, *options, "--", *inside],
            env=home.environment(None),
            cwd=home.work,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **home.identity.popen,
        )
        return json.loads(done.stdout or "{}"), done, (good, bad)

    return run


def test_without_a_fault_the_allowed_server_is_reached_and_no_other(faulty: Any) -> None:
    out, done, (good, bad) = faulty("")
    assert out["good"] == "HTTP/1.1 200", done.stderr
    assert (out["bad"], out["bind"]) == ("HTTP/1.1 403", "listens")
    assert (good.accepts, bad.accepts) == (1, 0)


def test_without_a_fault_strategy_fail_refuses_a_port_outside_the_window(faulty: Any) -> None:
    out, done, (good, bad) = faulty("", "", "--network-strategy", "fail")
    assert (out["good"], out["bind"]) == ("HTTP/1.1 200", "PermissionError"), (out, done.stderr)
    assert (good.accepts, bad.accepts) == (1, 0)


SHORTAGE = "OSError(errno.EMFILE, 'Too many open files')"
BUG = "RuntimeError('a fault')"
SERVING = "netsandbox.backends.namespaces.serving:NamespaceServing"


@pytest.mark.parametrize("error", [SHORTAGE, BUG])
@pytest.mark.parametrize(
    "place",
    [
        "netsandbox.session.upstream:HostResolver.__init__",
        "netsandbox.session.supervisor:Supervisor.__init__",
        "netsandbox.session.supervisor:Supervisor.run",
        "netsandbox.session.session:_content",
        "netsandbox.runtime.loop:Loop.watch",
    ],
)
def test_a_session_that_cannot_serve_ends_its_command(faulty: Any, place: str, error: str) -> None:
    out, done, (good, bad) = faulty(place, error)
    assert done.returncode == 1
    assert (out, good.accepts, bad.accepts) == ({}, 0, 0)


@pytest.mark.parametrize("error", [SHORTAGE, BUG])
@pytest.mark.parametrize(
    "place",
    [
        "netsandbox.session.doors:Doors.__init__",
        "netsandbox.session.gate:Gate._decide",
        "netsandbox.session.gate:Gate._check",
        "netsandbox.session.gate_records:GateRecords.dialling",
        "netsandbox.runtime.listener:raise_descriptor_limit",
        "netsandbox_proxy.flow:Flow.__init__",
    ],
)
def test_doors_that_fail_let_nothing_out(faulty: Any, place: str, error: str) -> None:
    """The allowed server is not reached either, since each of these steps stands before its connection."""
    out, done, (good, bad) = faulty(place, error)
    assert not {"HTTP/1.1 200", "resolved"} & set(out.values()), (out, done.stderr)
    assert (good.accepts, bad.accepts) == (0, 0)


UNSERVED = [f"{SERVING}._open_listener", "netsandbox.backends.namespaces.bind_guard:BindGuard.__init__"]


@pytest.mark.parametrize("error", [SHORTAGE, BUG])
@pytest.mark.parametrize("place", UNSERVED)
@pytest.mark.parametrize("files", ["project", "open"])
def test_a_session_whose_traps_are_not_served_is_ended(faulty: Any, place: str, error: str, files: str) -> None:
    """The native process holds the listener too, so that a call would wait for an answer."""
    out, done, (_, bad) = faulty(place, error, "--network-strategy", "fail", "--files", files)
    assert (out, bad.accepts) == ({}, 0)
    assert done.returncode == 1
    why = ": Too many open files," if error == SHORTAGE else ","
    assert f"netsandbox: serving trapped calls failed{why} so the command" in done.stderr


def test_a_session_without_a_fault_goes_on(faulty: Any) -> None:
    """The twin of the one above."""
    out, done, (good, bad) = faulty("", "", "--network-strategy", "fail", "--files", "project")
    assert (out["good"], out["bind"]) == ("HTTP/1.1 200", "PermissionError"), (out, done.stderr)
    assert (good.accepts, bad.accepts) == (1, 0)
