"""`netsandbox exec` starts a second command in a session: as confined as the first, and as useful."""

from __future__ import annotations

import functools
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rig import clients
from tests.rig.command import Spawned
from tests.rig.localhost import eventually
from tests.rig.real_servers import postgres_at
from tests.rig.world import World

pytestmark = pytest.mark.usefixtures("user_namespaces")

CONFINEMENT = """\
import json, os, resource
def read(path):
    try:
        return open(path).read()
    except OSError as error:
        return error.strerror
names = ("Cap", "NoNew", "Seccomp", "Uid", "Gid", "Groups")
print(json.dumps({
    "status": [line for line in read("/proc/self/status").splitlines() if line.startswith(names)],
    "spaces": [os.stat(f"/proc/self/ns/{name}").st_ino for name in sorted(os.listdir("/proc/self/ns"))],
    "limits": [resource.getrlimit(number) for number in range(16)],
    "cgroup": read("/proc/self/cgroup"),
    "variables": dict(os.environ),
    "folder": os.getcwd(),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
}), flush=True)
"""
# Waits for a line and then looks at itself, so that both commands exist at the same time.
FIRST = f"input()\n{CONFINEMENT}\ninput()"

Start = Callable[..., Spawned]


@pytest.fixture
def session(netsandbox: Any) -> Start:
    """session(*options, command=…) -> a running session called `shop`."""

    def start(*options: str, command: tuple[str, ...] = ("sleep", "100")) -> Spawned:
        running: Spawned = netsandbox.spawn("run", "--name", "shop", *options, "--", *command, stdin=subprocess.PIPE)
        eventually(lambda: "shop" in netsandbox("ps").stdout)
        return running

    return start


@pytest.mark.ordinary_user
@pytest.mark.parametrize("options", [(), ("--no-debug", "--limit", "files=200,core=0"), ("--files", "open")])
def test_the_second_command_is_confined_as_the_first(netsandbox: Any, session: Start, options: tuple[str, ...]) -> None:
    running = session(*options, command=(netsandbox.python, "-c", FIRST))
    assert running.process.stdin is not None
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    first = json.loads(running.read_until(b"}\n"))
    second = json.loads(netsandbox("exec", "shop", "--", netsandbox.python, "-c", CONFINEMENT).stdout)
    assert first == second
    assert first["descriptors"] == [0, 1, 2, 3]  # 3 lists them
    if "--no-debug" not in options:
        assert {"CapEff:\t0000000000000000", "Seccomp:\t2", "NoNewPrivs:\t1"} <= set(first["status"])


def test_files_that_the_session_does_not_see_are_not_seen(netsandbox: Any, session: Start) -> None:
    home = netsandbox.home()
    (home.path / "secret").write_text("secret")
    (home.work / "project").write_text("")
    session("--deny-write", str(home.work / "project"))
    script = f"cat {home.path}/secret; (echo x >> {home.work}/project) && echo written; echo y > {home.work}/made; true"
    done = netsandbox("exec", "shop", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "")
    assert (home.work / "project").read_text() == ""
    assert (home.work / "made").read_text() == "y\n"


def test_only_allowed_hosts_are_reached_and_the_rest_is_recorded(world: World, session: Start) -> None:
    good = world.canary.http(body=b"welcome\n")
    running = session(*world.options(good.port))
    allowed, denied = world.urls(good.port)
    for url in (allowed, denied):
        world.netsandbox("exec", "shop", "--", "curl", "-sS", "-m", "20", url)
    assert (good.accepts, world.forbidden.accepts) == (1, 0)
    assert running.wait_for("egress", verdict="allow")["host"] == "allowed.test"
    assert running.wait_for("egress", verdict="deny")["host"] == "denied.test"


KEPT = "netsandbox: session shop keeps its rules until it ends; start it again with the options above\n"
CURL = "curl -s -o /dev/null -m 20 http://no.test/"
DENIED = "netsandbox: denied no.test:80 (offline); allow it with --allow-domain no.test\n"


@pytest.mark.backend("namespaces", "broker")
def test_the_user_reads_at_its_end_what_it_was_denied(netsandbox: Any, session: Start) -> None:
    session(command=("sh", "-c", f"{CURL.replace('no.test', 'first.test')}; echo up; exec sleep 100")).read_until(b"up")
    for _ in range(2):  # not what was denied before
        assert netsandbox("exec", "shop", "--", "sh", "-c", CURL).stderr == DENIED + KEPT
    for _ in range(3):  # repeats of a second are counted in one record
        looked_up = netsandbox("exec", "shop", "--", "getent", "hosts", "name.test")
        assert "netsandbox: denied name.test (offline); allow it with --allow-domain name.test\n" in looked_up.stderr
    assert netsandbox("exec", "-q", "shop", "--", "sh", "-c", CURL).stderr == ""
    assert netsandbox("exec", "shop", "--", "true").stderr == ""


def test_refused_files_are_named_each_time(netsandbox: Any, session: Start) -> None:
    """The record of a file that is not there waits for a second, and repeats are only counted."""
    home = netsandbox.home()
    (home.path / "secret").write_text("secret")
    session(command=("sh", "-c", f"cat {home.path}/secret; exec sleep 100"))
    for pause in (0, 2.1):  # repeats of one moment are reported ever more rarely
        time.sleep(pause)
        done = netsandbox("exec", "shop", "--", "cat", str(home.path / "secret"))
        assert "netsandbox: denied reading ~/secret; show it with --allow-read ~/secret\n" in done.stderr
    assert netsandbox("exec", "shop", "--", "true").stderr == ""


def test_what_was_denied_is_named_though_the_session_ends(netsandbox: Any, session: Start) -> None:
    session()
    client = netsandbox.spawn("exec", "shop", "--", "sh", "-c", f"{CURL}; echo ready; exec sleep 100")
    client.read_until(b"ready")
    assert netsandbox("stop", "shop").returncode == 0
    assert client.wait() == -signal.SIGTERM
    assert client.process.stderr is not None
    assert client.process.stderr.read().decode().startswith(DENIED)


def test_the_record_comes_before_the_command(netsandbox: Any, session: Start) -> None:
    running = session()
    client = netsandbox.spawn("exec", "shop", "--cwd", "/", "--", "sh", "-c", "pwd; exec sleep 100")
    client.read_until(b"/\n")
    record = running.wait_for("session.exec")
    assert (record["command"], record["args"], record["folder"], record["terminal"]) == ("sh", 2, "/", False)
    assert (record["by_pid"], record["by_uid"]) == (client.pid, netsandbox.identity.uid)


def test_the_two_commands_share_sockets_signals_and_a_localhost(netsandbox: Any, session: Start) -> None:
    """One Landlock domain and one filter: neither is a stranger to the other."""
    server = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(); s.accept()[0].send(b'hello')"
    running = session(command=(netsandbox.python, "-c", f"print('up', flush=True); {server}; input()"))
    running.read_until(b"up")
    client = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('s'); print(s.recv(9).decode())"
    eventually((netsandbox.home().work / "s").exists)
    assert netsandbox("exec", "shop", "--", netsandbox.python, "-c", client).stdout == "hello\n"
    web = netsandbox.spawn("exec", "shop", "--", netsandbox.python, "-m", "http.server", "3000")
    entry = eventually(lambda: json.loads(netsandbox("ports", "--json", "shop").stdout))[0]
    assert entry["port"] == 3000
    assert clients.ask_http(entry["host_address"], entry["host_port"])["status"] in (200, 404)
    assert netsandbox("exec", "shop", "--", "sh", "-c", "kill -KILL 2").returncode in (0, -15, 137)
    assert running.wait() == -signal.SIGKILL
    assert web.wait() == -signal.SIGTERM


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        (("sh", "-c", "exit 7"), 7, ""),
        (("sh", "-c", "kill -TERM $$"), -signal.SIGTERM, ""),
        (("no-such-command-here",), 127, "command not found"),
        (("/etc/passwd",), 126, "Permission denied"),
    ],
)
def test_statuses_are_those_of_the_command(
    netsandbox: Any, session: Start, command: tuple[str, ...], status: int, text: str
) -> None:
    session()
    done = netsandbox("exec", "shop", "--", *command)
    assert (done.returncode, text in done.stderr, done.stdout) == (status, True, "")


def test_pipes_carry_bytes_in_order_and_end(netsandbox: Any, session: Start) -> None:
    session()
    data = bytes(range(256)) * 4096
    assert netsandbox("exec", "shop", "--", "cat", input=data).stdout_bytes == data
    both = netsandbox("exec", "shop", "--", "sh", "-c", "printf out; printf err >&2")
    assert (both.stdout_bytes, both.stderr_bytes) == (b"out", b"err")


def test_signals_to_the_client_reach_its_command_alone(netsandbox: Any, session: Start) -> None:
    running = session(command=("sh", "-c", "trap 'echo hit' TERM; while :; do sleep 0.05; done"))
    script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    client = netsandbox.spawn("exec", "shop", "--", "sh", "-c", script)
    client.read_until(b"ready")
    client.signal(signal.SIGTERM)
    client.read_until(b"caught")
    assert client.wait() == 9
    assert running.process.poll() is None


def test_a_client_that_dies_hangs_up(netsandbox: Any, session: Start) -> None:
    session()
    mark = netsandbox.home().work / "hung-up"
    script = f"trap 'touch {mark}; exit' HUP; echo ready; while :; do sleep 0.05; done"
    client = netsandbox.spawn("exec", "shop", "--", "sh", "-c", script)
    client.read_until(b"ready")
    client.process.kill()
    eventually(mark.exists)


# Writes a file of the project when it is asked to end, and not at once.
TIDY = """\
import signal, sys, time
def tidy(number, frame):
    time.sleep(0.3)
    open(sys.argv[1], "w").write(signal.Signals(number).name)
    sys.exit(7)
signal.signal(signal.SIGTERM, tidy)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""
ENDS: dict[str, Callable[[Any, Any], object]] = {
    "stop": lambda netsandbox, running: netsandbox("stop", "shop"),
    "SIGTERM": lambda netsandbox, running: running.signal(signal.SIGTERM),
    "SIGINT": lambda netsandbox, running: running.signal(signal.SIGINT),
    "its own end": lambda netsandbox, running: running.process.stdin.close(),
}


def _is_ready(log: Path) -> bool:
    return log.exists() and "ready" in log.read_text()


@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("how", ENDS)
def test_every_command_is_asked_to_end_however_the_session_ends(netsandbox: Any, session: Start, how: str) -> None:
    """A second command, what one left behind, and what the first one left behind write what they hold."""
    work = netsandbox.home().work
    (work / "tidy.py").write_text(TIDY)
    left = f"setsid {netsandbox.python} tidy.py $0 >$0.log 2>&1 &"
    running = session(command=("sh", "-c", f"{left} exec cat", "first-left"))
    assert netsandbox("exec", "shop", "--", "sh", "-c", left, "second-left").returncode == 0
    client = netsandbox.spawn("exec", "shop", "--", netsandbox.python, "tidy.py", "second")
    client.read_until(b"ready")
    for name in ("first-left", "second-left"):
        eventually(functools.partial(_is_ready, work / f"{name}.log"))
    ENDS[how](netsandbox, running)
    assert client.wait() == 7
    assert running.wait() == {"its own end": 0, "SIGINT": -signal.SIGINT}.get(how, -signal.SIGTERM)
    told = {name: (work / name).read_text() for name in ("first-left", "second-left", "second")}
    assert set(told.values()) == {"SIGTERM"}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("how", ENDS)
def test_a_command_that_does_not_end_when_asked_is_killed(netsandbox: Any, session: Start, how: str) -> None:
    running = session(command=("cat",))
    stubborn = "trap '' TERM INT; echo ready; while :; do sleep 0.05; done"
    client = netsandbox.spawn("exec", "shop", "--", "sh", "-c", stubborn)
    client.read_until(b"ready")
    family = [process for process in running.family() if "trap" in process.command]
    assert family
    ENDS[how](netsandbox, running)
    assert client.wait() == 137
    assert client.process.stderr is not None
    assert client.process.stderr.read() == b"netsandbox: session shop ended\n"
    running.wait()
    eventually(lambda: not any(process.alive for process in family))


@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("how", ["stop", "SIGTERM"])
def test_a_database_that_exec_started_needs_no_recovery(netsandbox: Any, session: Start, how: str) -> None:
    if netsandbox.identity.uid == 0:
        pytest.skip("PostgreSQL does not run as root")
    running = session(command=("cat",))
    init, ctl, look = (postgres_at(name) for name in ("initdb", "pg_ctl", "pg_controldata"))
    settings = "-c listen_addresses= -c unix_socket_directories=$PWD"
    start = f'{init} -N --locale=C -D pg && {ctl} -D pg -w -l log -o "{settings}" start'
    assert netsandbox("exec", "shop", "--", "sh", "-c", start).returncode == 0
    assert "in production" in netsandbox("exec", "shop", "--", look, "pg").stdout
    ENDS[how](netsandbox, running)
    running.wait()
    state = netsandbox("run", "--", look, "pg").stdout
    assert re.search(r"^Database cluster state: +shut down$", state, re.MULTILINE)


@pytest.mark.backend("namespaces", "broker")
def test_a_supervisor_that_is_killed_takes_the_second_command_along(netsandbox: Any, session: Start) -> None:
    """INV-10."""
    running = session()
    client = netsandbox.spawn("exec", "shop", "--", "sh", "-c", "echo ready; exec sleep 100")
    client.read_until(b"ready")
    family = [process for process in running.family() if "sleep" in process.command]
    running.process.kill()
    assert client.wait() == 137
    eventually(lambda: not any(process.alive for process in family))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("nobody", "--", "true"), "no running session is called 'nobody'"),
        (("shop",), "exec needs a NAME and a command"),
        (("shop", "--", ""), "exec needs a NAME and a command"),
        (("shop", "--cwd", "/no/such/folder", "--", "true"), "--cwd /no/such/folder: No such file or directory"),
        (("shop", "--", "true", "x" * 70_000, "x" * 70_000), "too long arguments for exec"),
    ],
)
def test_bad_input_is_one_clear_line(netsandbox: Any, session: Start, words: tuple[str, ...], text: str) -> None:
    session()
    done = netsandbox("exec", *words)
    assert done.returncode in (1, 2, 126)
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_session_that_is_suspended_is_named_as_the_reason(netsandbox: Any, session: Start) -> None:
    running = session()
    running.signal(signal.SIGSTOP)
    done = netsandbox("exec", "shop", "--", "true")
    running.signal(signal.SIGCONT)
    assert (done.returncode, "session shop is suspended" in done.stderr) == (1, True)


def test_there_is_a_bound_of_commands_at_the_same_time(netsandbox: Any, session: Start) -> None:
    """The spawner has no more descriptors than the session."""
    session("--limit", "files=14")
    running = []
    for _ in range(14):
        running.append(netsandbox.spawn("exec", "shop", "--", "sh", "-c", "echo ready; exec sleep 100"))
        assert running[-1].process.stdout is not None
        if not running[-1].process.stdout.readline():
            break
    assert running.pop().wait() == 1
    assert len(running) > 2
    running.pop().process.kill()
    eventually(lambda: netsandbox("exec", "shop", "--", "true").returncode == 0)


@pytest.mark.backend("namespaces", "broker")
def test_a_file_that_the_session_must_not_write_is_not_passed_in(netsandbox: Any, session: Start) -> None:
    """INV-8: a file opened by the client could be opened anew through /proc, and written."""
    log = netsandbox.home().path / "kept.jsonl"
    session("--audit-log", str(log))
    with log.open("rb") as file:
        client = netsandbox.spawn("exec", "shop", "--", "true", stdin=file.fileno())
    assert client.wait() == 1
    assert client.process.stderr is not None
    assert b"kept.jsonl" in client.process.stderr.read()


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(301)
@pytest.mark.parametrize("way", ["exec", "run"])
def test_a_log_at_its_usual_place_is_not_passed_in_and_a_copy_of_it_is(
    netsandbox: Any, session: Start, way: str
) -> None:
    """INV-8: the command would empty it through /proc/self/fd. The log of an earlier session counts alike."""
    started = session()
    (log,) = netsandbox.home().state.glob("netsandbox/sessions/*/audit.jsonl")
    command = ("exec", "shop", "--") if way == "exec" else ("run", "--")
    if way == "run":
        started.process.kill()
        started.wait()
    copy = netsandbox.home().work / "copy.jsonl"
    copy.write_bytes(log.read_bytes())
    for path, expected in ((copy, 0), (log, 1)):
        with path.open("rb") as file:
            client = netsandbox.spawn(*command, "sh", "-c", "(: > /proc/self/fd/0) || true", stdin=file.fileno())
        assert client.wait() == expected
    assert log.stat().st_size > 0
    assert client.process.stderr is not None
    assert b"audit.jsonl" in client.process.stderr.read()


SNOOPING = """\
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
found = {}
for name in ("fd/0", "fd/3", "mem", "environ", "maps", "root", "exe"):
    try:
        os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
        found[name] = "opened"
    except OSError as error:
        found[name] = error.strerror
for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
    found[request] = libc.ptrace(request, pid, 0, 0)
pidfd = os.pidfd_open(pid)
found["taken"] = [fd for fd in range(32) if libc.syscall(438, pidfd, fd, 0) >= 0]
print(found)
"""


@pytest.mark.attack(236)
@pytest.mark.ordinary_user
def test_the_command_can_neither_trace_nor_rob_the_spawner(netsandbox: Any, session: Start) -> None:
    """Its twin: the same program reads and robs a process of the session."""
    session("--files", "open")
    script = f"{SNOOPING}\n"
    listed = netsandbox("exec", "shop", "--", "sh", "-c", "cat /proc/[0-9]*/stat").stdout
    pids = {line.split(" (")[1].partition(")")[0]: line.split(" ")[0] for line in listed.splitlines()}
    tried = netsandbox("exec", "shop", "--", netsandbox.python, "-c", script, pids["netsandbox-exec"]).stdout
    assert "opened" not in tried
    assert "16: -1" in tried
    assert "'taken': []" in tried
    twin = netsandbox("exec", "shop", "--", netsandbox.python, "-c", script, pids["sleep"]).stdout
    assert "'maps': 'opened'" in twin
    assert "'taken': [0" in twin


@pytest.mark.attack(236)
def test_a_command_that_kills_the_spawner_only_ends_exec(netsandbox: Any, session: Start) -> None:
    running = session()
    client = netsandbox.spawn("exec", "shop", "--", "sh", "-c", "echo ready; exec sleep 100")
    client.read_until(b"ready")
    killed = netsandbox("exec", "shop", "--", "sh", "-c", "kill -9 3")
    assert killed.returncode == 137
    assert client.wait() == 137
    refused = netsandbox("exec", "shop", "--", "true")
    assert (refused.returncode, "is gone" in refused.stderr) == (1, True)
    assert running.process.poll() is None


@pytest.mark.backend("namespaces", "broker")
def test_a_request_of_too_many_words_is_an_error_and_nothing_else(netsandbox: Any, session: Start) -> None:
    session()
    for count in (66_000, 125_000):
        refused = netsandbox("exec", "shop", "--", "true", *[""] * count)
        assert (refused.returncode, "too many" in refused.stderr) == (1, True), refused.stderr[-300:]
    assert netsandbox("exec", "shop", "--", "echo", "ok", "").stdout == "ok \n"
