"""Real sessions, seen and ended from outside by their user, and never from inside."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rig.completing import needs
from tests.rig.screen import Screen

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

INSIDE = """\
import socket, sys
for path in sys.argv[1:]:
    for act in (lambda: open(path).close(), lambda: socket.socket(socket.AF_UNIX).connect(path)):
        try:
            act()
            print("reached", path)
        except OSError as error:
            print("refused", error.errno)
"""


def wait_until_asked(netsandbox: Any, *words: str) -> Any:
    """What the command prints as JSON, once that is not empty."""
    until = time.monotonic() + 30
    while not (found := json.loads(netsandbox(*words, "--json").stdout)):
        assert time.monotonic() < until, "no session appeared"
        time.sleep(0.05)
    return found


def control_of(netsandbox: Any, session: str) -> Path:
    return Path(netsandbox.home().state, "netsandbox", "sessions", session, "control")


def test_a_server_is_listed_with_its_url_and_stopped_by_name(netsandbox: Any) -> None:
    running = netsandbox.spawn("run", "--name", "shop", "--", netsandbox.python, "-m", "http.server", "3000")
    (entry,) = wait_until_asked(netsandbox, "ports")
    assert (entry["name"], entry["port"]) == ("shop", 3000)
    (status,) = json.loads(netsandbox("ps", "--json").stdout)
    assert status["pid"] == running.pid
    assert status["command"][-3:] == ["-m", "http.server", "3000"]
    assert netsandbox("open", "--print", "shop").stdout == f"{entry['url']}\n"
    done = netsandbox("stop", "shop")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert running.wait(20) != 0
    assert json.loads(netsandbox("ps", "--json").stdout) == []


def test_a_name_is_free_as_soon_as_stop_returns(netsandbox: Any) -> None:
    netsandbox.spawn("run", "--name", "shop", "--", "sleep", "60")
    wait_until_asked(netsandbox, "ps")
    taken = netsandbox("run", "--name", "shop", "--", "true")
    assert taken.returncode == 1
    assert "shop is running already; choose another --name or `netsandbox stop shop`" in taken.stderr
    assert netsandbox("stop", "shop").returncode == 0
    assert netsandbox("run", "--name", "shop", "--", "true").returncode == 0


@pytest.mark.backend("namespaces", "broker")
def test_a_killed_supervisor_leaves_no_session_and_no_socket(netsandbox: Any) -> None:
    """INV-10."""
    running = netsandbox.spawn("run", "--", "sleep", "60")
    (status,) = wait_until_asked(netsandbox, "ps")
    running.process.kill()
    running.wait()
    assert control_of(netsandbox, status["session"]).exists()
    assert json.loads(netsandbox("ps", "--json").stdout) == []
    assert not control_of(netsandbox, status["session"]).exists()


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(171)
def test_no_session_reaches_a_control_socket_its_own_or_anothers(netsandbox: Any) -> None:
    """INV-8: not by name, and not by asking `ps`, even where some Unix sockets are allowed."""
    netsandbox.spawn("run", "--name", "victim", "--", "sleep", "60")
    (status,) = wait_until_asked(netsandbox, "ps")
    control = control_of(netsandbox, status["session"])
    for allowed in ([], ["--allow-unix-socket", netsandbox.home().path / "some.sock"]):
        tried = netsandbox("run", *allowed, "--", netsandbox.python, "-c", INSIDE, control, control.parent)
        assert tried.returncode == 0, tried.stderr
        assert "reached" not in tried.stdout
        assert tried.stdout.count("refused") == 4
    assert json.loads(netsandbox("ps", "--json").stdout)[0]["name"] == "victim"


TRAP = """\
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("named", [["--name", "late"], []])
def test_a_suspended_session_is_stopped_by_its_name(netsandbox: Any, named: list[str]) -> None:
    """Ctrl-Z at a shell stops supervisor and command; `stop` lets them go on, and the command ends as it wants."""
    needs("tmux")
    name = "late" if named else "work"  # like the folder
    place = netsandbox.home()
    script = place.work / "trap.py"
    script.write_text(TRAP)
    start = [*place.identity.prefix, *place.identity.command, "run", *named, "--files", "open"]
    screen = Screen([needs("bash"), "--norc"], place.path, place.work, place.environment(None))
    try:
        screen.type(shlex.join([*start, "--", netsandbox.python, str(script)]))
        screen.press("Enter")
        screen.see("ready")
        screen.press("C-z")
        screen.see("Stopped")
        listed = netsandbox("ps")
        assert f"netsandbox: {name} is suspended; `fg` in its terminal continues it" in listed.stderr
        assert netsandbox("stop", name).returncode == 0
        records = netsandbox("audit", "tail", "--json", name).stdout.splitlines()
        assert json.loads(records[-2])["status"] == 7
    finally:
        screen.close()


def test_a_name_works_where_an_id_does_while_the_session_runs_and_after_it(netsandbox: Any) -> None:
    netsandbox("run", "--name", "shop", "--", "false")
    running = netsandbox.spawn("run", "--name", "shop", "--", "sleep", "60")
    (status,) = wait_until_asked(netsandbox, "ps")
    for words in (["audit", "show"], ["audit", "tail"], ["audit", "summary"], ["explain", "--last"]):
        done = netsandbox(*words, "shop")
        assert done.returncode == 0, done.stderr
    first = json.loads(netsandbox("audit", "show", "--json", "shop").stdout.splitlines()[0])
    assert first["session"] == status["session"]
    assert netsandbox("stop", "shop").returncode == 0
    running.wait(20)
    assert netsandbox("audit", "verify", "shop").stdout.startswith("ok: ")
    last = json.loads(netsandbox("audit", "show", "--json", "shop").stdout.splitlines()[-1])
    assert last["session"] == status["session"]
    unknown = netsandbox("audit", "show", "shopp")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "no session is called 'shopp'; correct its name or id" in unknown.stderr


def test_a_name_that_was_made_while_it_ran_finds_the_log_later(netsandbox: Any) -> None:
    running = netsandbox.spawn("run", "--", "sleep", "60")
    (status,) = wait_until_asked(netsandbox, "ps")
    assert netsandbox("stop", status["name"]).returncode == 0
    running.wait(20)
    assert running.wait_for("session.end")["name"] == status["name"]
    assert netsandbox("audit", "show", status["name"]).returncode == 0


def test_a_session_that_runs_is_summarised_as_running(netsandbox: Any) -> None:
    """E16: it looked like one whose supervisor was killed."""
    netsandbox.spawn("run", "--name", "shop", "--", "sleep", "60")
    wait_until_asked(netsandbox, "ps")
    shown = netsandbox("audit", "summary", "shop").stdout.splitlines()[0]
    assert shown.endswith(", running")
    assert json.loads(netsandbox("audit", "summary", "shop", "--json").stdout)["running"] is True
    assert netsandbox("stop", "shop").returncode == 0
    assert ", ended" in netsandbox("audit", "summary", "shop").stdout.splitlines()[0]
