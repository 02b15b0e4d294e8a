"""The judge of bind and listen, while something happens to the caller, to the supervisor, or to both.

Whatever it is, nothing listens outside the window, and the next honest call works.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.localhost import eventually, heard, host_listeners, sessions, source, status_of, window_of

pytestmark = pytest.mark.usefixtures("user_namespaces")

FAIL = ("--network-strategy", "fail")
ENGINES = ("kernel", "preload")


def judged(netsandbox: Any, probe: Any, canary: Any, mode: str, engine: str = "kernel") -> tuple[list[str], Any]:
    """The results of the program's mode; the host's own server at the forbidden port was never visited."""
    program = probe("judged", source("judged.c"), static=True)
    host = canary.tcp()
    options = (*FAIL, "--rewrite-engine", engine)
    run = netsandbox("run", *options, "--", program, mode, str(host.port), timeout=120)
    assert run.returncode == 0
    assert host.accepts == 0
    (start,) = run.events("session.start")
    first, last = map(int, start["window"].split("-"))
    allowed = [record for kind in ("bind", "listen", "publish") for record in run.events(kind, verdict="allow")]
    assert {record["port"] for record in allowed} <= set(range(first, last + 1))
    *results, twin, outside = run.stdout.split()
    assert (twin, outside) == ("ok", "EACCES")
    return results, run


@pytest.mark.ordinary_user
@pytest.mark.attack(118)
@pytest.mark.parametrize("engine", ENGINES)
def test_callers_that_are_killed_while_they_are_judged(netsandbox: Any, probe: Any, canary: Any, engine: str) -> None:
    results, run = judged(netsandbox, probe, canary, "kill", engine)
    assert results == ["300"]
    assert not [record for record in run.audit if record.get("reason") == "internal" and record["event"] == "error"]


@pytest.mark.attack(120)
@pytest.mark.parametrize("engine", ENGINES)
def test_callers_that_are_interrupted_get_what_they_ask_again(
    netsandbox: Any, probe: Any, canary: Any, engine: str
) -> None:
    """A signal each 0.3 ms; a call that was carried out but not heard of succeeds when it is made again."""
    results, _ = judged(netsandbox, probe, canary, "interrupt", engine)
    assert results == ["1000", "1000", "1"]


@pytest.mark.ordinary_user
@pytest.mark.attack(121)
def test_filters_of_the_program_s_own_loosen_nothing(netsandbox: Any, probe: Any, canary: Any) -> None:
    results, _ = judged(netsandbox, probe, canary, "nested")
    assert results == ["nested/EACCES", "nested/EACCES", "nested/EACCES", "nested/ENOSYS"]


@pytest.mark.attack(117)
def test_a_crowd_of_callers_and_one_without_descriptors(netsandbox: Any, probe: Any, canary: Any) -> None:
    results, _ = judged(netsandbox, probe, canary, "crowd")
    assert results == ["1600", "EACCES"]


STUCK = """
import os, socket, sys
base = int(os.environ["LISTENING_BASE_PORT"])
print("ready", flush=True)
sys.stdin.readline()
for port in (base, int(sys.argv[1])):
    if os.fork() == 0:
        try:
            socket.create_server(("127.0.0.1", port))
            os.write(1, b"bound\\n")
        except OSError as error:
            os.write(1, f"{error.errno}\\n".encode())
        os._exit(0)
os.wait()
os.wait()
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(119)
@pytest.mark.parametrize("engine", ENGINES)
def test_calls_that_wait_for_a_dead_supervisor_never_succeed(
    netsandbox: Any, canary: Any, leftovers: Any, engine: str
) -> None:
    """It is stopped, two calls wait, it is killed: neither the allowed nor the forbidden one was carried out."""
    host = canary.tcp(greeting=b"host")
    options = ("--name", "stuck", *FAIL, "--rewrite-engine", engine)
    command = (netsandbox.python, "-c", STUCK, str(host.port))
    running = netsandbox.spawn("run", *options, "--", *command, stdin=subprocess.PIPE)
    running.read_until(b"ready\n")
    base = window_of(status_of(netsandbox, "stuck")).start
    running.signal(signal.SIGSTOP)
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    eventually(lambda: len(running.family()) >= 5)  # supervisor, PID 1, the program and its two children
    watch = leftovers.watch(running)
    running.process.kill()
    running.wait()
    eventually(lambda: not watch.remains())
    assert b"bound" not in running.process.stdout.read()
    assert heard("127.0.0.1", host.port) == b"host"
    with pytest.raises(ConnectionRefusedError):
        heard("127.0.0.1", base)


GO_SERVER = """
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	for _, place := range os.Args[1:] {
		listener, err := net.Listen("tcp", place)
		if err != nil {
			fmt.Println("refused")
			continue
		}
		fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	}
}
"""


@pytest.fixture(scope="session")
def go_server(workshop: Path) -> Path:
    """A static Go program that listens at each of its arguments."""
    if shutil.which("go") is None:
        pytest.skip("go is missing (package golang-go)")
    folder = workshop / "go-judged"
    folder.mkdir(mode=0o755)
    (folder / "main.go").write_text(GO_SERVER)
    cache = os.environ.get("GOCACHE", str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "go-build"))
    settings = {"CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": cache}
    command = ["go", "build", "-o", str(folder / "server"), "main.go"]
    environment = {**os.environ, **settings}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=300)
    (folder / "server").chmod(0o755)
    return folder / "server"


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(99)
@pytest.mark.parametrize(
    ("strategy", "engine"),
    [("fail", "kernel"), ("fail", "preload"), ("rewire-port", "preload"), ("rewire-device", "preload")],
)
def test_a_static_program_is_judged_like_any_other(
    netsandbox: Any, go_server: Path, strategy: str, engine: str
) -> None:
    """Go makes its own system calls: what no library rewrites is refused, its window and its device are its own."""
    options = ("--network-strategy", strategy, "--rewrite-engine", engine)
    device = "$LISTENING_LOOPBACK_DEVICE" if strategy == "rewire-device" else "127.0.0.1"
    script = f'exec "$0" 127.0.0.1:3000 [::1]:3000 :3000 127.0.0.1:80 {device}:$LISTENING_BASE_PORT'
    run = netsandbox("run", *options, "--", "sh", "-c", script, go_server)
    (start,) = run.events("session.start")
    assert run.stdout.split() == ["refused"] * 4 + [start["window"].split("-")[0]]


@pytest.mark.attack(172)
def test_a_program_with_a_hostile_name_is_shown_tamely(netsandbox: Any, short_tmp: Path, probe: Any) -> None:
    """Its name goes into the log, to `ps` and to `ports`: neither a line nor a colour of its own comes out."""
    program = short_tmp / "\x1b[31mred\nnetsandbox: forged"
    shutil.copy(probe("scan", source("scan.c"), static=True), program)
    running = netsandbox.spawn("run", "--name", "tame", "--", program, "secret", "3000", stdin=subprocess.PIPE)
    running.read_until(b"listening\n")
    eventually(lambda: [status for status in sessions(netsandbox) if status["ports"]])
    for words in (["ps"], ["ports"], ["ports", "tame"], ["audit", "show"], ["audit", "summary"]):
        shown = netsandbox(*words)
        assert "\x1b" not in shown.stdout + shown.stderr, words
        assert not any(line.startswith("netsandbox: forged") for line in shown.stdout.splitlines()), words
    (port,) = json.loads(netsandbox("ports", "--json").stdout)
    assert port["exe"] == str(program)
    assert len(host_listeners(running.pid)) >= 2
