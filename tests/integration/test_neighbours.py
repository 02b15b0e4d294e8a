"""Sessions, their supervisors and the host's other processes side by side: nobody can reach into another."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.rig import processes
from tests.rig.leftovers import what_stays
from tests.rig.localhost import eventually

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

LISTEN = "0A"
UNIX_ACCEPTS = 1 << 16  # __SO_ACCEPTCON in /proc/net/unix


@pytest.mark.attack(169)
def test_shared_memory_and_queues_of_a_session_are_its_own(netsandbox: Any) -> None:
    """System V objects live in the session's IPC namespace: neither the host nor another session lists them."""
    if shutil.which("ipcmk") is None:
        pytest.skip("ipcmk is missing (package util-linux)")
    make = "ipcmk -M 4096 && ipcmk -Q && ipcmk -S 1 && ipcs -m -q -s | grep -c 0x; sleep 30"
    running = netsandbox.spawn("run", "--", "sh", "-c", make)
    running.read_until(b"3\n")
    count = "ipcs -m -q -s | grep -c 0x"
    host = subprocess.run(["sh", "-c", count], capture_output=True, text=True, check=False).stdout
    assert netsandbox("run", "--", "sh", "-c", count).stdout == "0\n"
    running.close()
    after = subprocess.run(["sh", "-c", count], capture_output=True, text=True, check=False).stdout
    assert host == after  # what the host lists did not come from the session


@pytest.mark.attack(170)
def test_a_session_sees_only_its_own_processes(netsandbox: Any) -> None:
    """A sibling session and an unconfined process of the same account run; neither can be seen, signalled or traced."""
    sibling = netsandbox.spawn("run", "--", "sh", "-c", "echo ready; exec sleep 3100")
    sibling.read_until(b"ready")
    home = netsandbox.home()
    sentinel = subprocess.Popen(["sleep", "3200"], env=home.environment(None), **home.identity.popen)
    script = f"""
    cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 3[12]00'
    kill -KILL {sentinel.pid} {sibling.pid} 2>/dev/null || echo refused
    test -e /proc/{sentinel.pid}/mem && echo visible
    """
    try:
        assert netsandbox("run", "--", "sh", "-c", script).stdout.split() == ["0", "refused"]
        assert sentinel.poll() is None
        assert sibling.process.poll() is None
    finally:
        sentinel.kill()
        sentinel.wait()


@pytest.mark.attack(171, 189)
def test_a_supervisor_listens_on_the_host_for_its_own_user_only(netsandbox: Any, canary: Any, authority: Any) -> None:
    """The doors are sockets of the session's own network. On the host there is no port to attack, and one socket file,
    the control socket, that is its user's alone."""
    server = canary.http()
    authority.answer("allowed.test", "127.0.0.1")
    options = ("--upstream-dns", authority.address, "--allow-domain", f"allowed.test:{server.port}")
    if shutil.which("curl") is None:
        pytest.skip("curl is missing (package curl)")
    script = f"curl -s http://allowed.test:{server.port}/; echo ready; sleep 30"
    address = ("--allow-address", f"127.0.0.1:{server.port}")
    running = netsandbox.spawn("run", *options, *address, "--", "sh", "-c", script)
    assert b"canary" in running.read_until(b"ready")
    (control,) = eventually(lambda: _listeners(running.pid))  # opened when there is time for it
    assert control.endswith("/control.new") or control.endswith("/control")  # the kernel keeps the name it was bound by
    place = Path(control).with_name("control")
    eventually(place.exists)
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700
    supervisor = next(p for p in running.family() if p.pid == running.pid)
    assert not processes.namespaces(supervisor.pid)  # it stands in the host's own network


def _listeners(pid: int) -> list[str]:
    """Where PID listens on the host."""
    held = processes.descriptors(pid)
    return [place for inode, place in _listening().items() if f"socket:[{inode}]" in held]


def _listening() -> dict[str, str]:
    """Inode and address or path of whatever listens on the host."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN:
                found[fields[9]] = fields[1]
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[3], 16) & UNIX_ACCEPTS:
            found[fields[6]] = fields[7] if len(fields) > 7 else ""
    return found


@pytest.mark.attack(187)
def test_a_command_without_a_log_never_runs(netsandbox: Any) -> None:
    """No log, no word `go`: the session is refused, and the command has not begun."""
    evidence = netsandbox.home().work / "began"
    run = netsandbox("run", "--audit-log", "/proc/nowhere/log", "--", "touch", evidence)
    assert run.returncode != 0
    assert run.stderr.startswith("netsandbox:")
    assert not evidence.exists()


@pytest.mark.open_files
def test_a_session_inside_a_session_is_refused_and_says_so(netsandbox: Any) -> None:
    """No namespaces within namespaces: the inner command does not run, and the outer session is none the worse."""
    log = netsandbox.home().path / "tmp" / "inner.jsonl"
    inner = f"{netsandbox.python} -m netsandbox run --audit-log {log} -- echo ran; echo status=$?"
    run = netsandbox("run", "--", "sh", "-c", inner)
    assert run.returncode == 0
    assert run.stdout == "status=1\n"
    assert run.stderr.startswith("netsandbox:")


def test_timeout_ends_a_session_as_it_ends_a_command(netsandbox: Any) -> None:
    home = netsandbox.home()
    command = ["timeout", "0.5", home.identity.python, "-m", "netsandbox", "run", "--", "sleep", "60"]
    done = subprocess.run(command, env=home.environment(None), cwd=home.work, check=False, **home.identity.popen)
    assert done.returncode == 124
    assert not what_stays(lambda: processes.marked(home.mark))


IN_FLIGHT = """
import array, socket
payload = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))]
pairs = []
try:
    while len(pairs) < 2000:
        pairs.append(socket.socketpair())
        pairs[-1][0].sendmsg([b"x"], payload)
except OSError as error:
    print("full:", error.errno, flush=True)
input()
"""


@pytest.mark.attack(169)
def test_a_session_cannot_use_up_the_descriptors_in_flight_of_the_others(netsandbox: Any) -> None:
    """The kernel counts them for a user, over all sessions; what passes sockets out of a session keeps a reserve."""
    server = "import http.server as h; h.HTTPServer(('127.0.0.1', 3000), h.SimpleHTTPRequestHandler).serve_forever()"
    victim = netsandbox.spawn("run", "--name", "victim", "--", "python3", "-I", "-c", server)
    host_port = _published(netsandbox)
    attacker = netsandbox.spawn("run", "--", "python3", "-I", "-c", IN_FLIGHT, stdin=subprocess.PIPE)
    attacker.read_until(b"full: 109")  # ETOOMANYREFS
    for _ in range(20):
        with urllib.request.urlopen(f"http://127.0.0.1:{host_port}/", timeout=20) as answer:
            assert answer.status == 200
    assert netsandbox("run", "--", "echo", "started").stdout == "started\n"
    assert victim.process.poll() is None


def _published(netsandbox: Any) -> int:
    for _ in range(200):
        found = json.loads(netsandbox("ports", "--json").stdout)
        if found:
            return int(found[0]["host_port"])
        time.sleep(0.05)
    raise AssertionError("nothing was published")


TIMERS = """
import ctypes
libc, number = ctypes.CDLL(None), ctypes.c_void_p()
made = sum(libc.timer_create(1, None, ctypes.byref(number)) == 0 for _ in range(300))
print("made", made, flush=True)
input()
"""
TALKS = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(socket.create_connection(server.getsockname(), 10).getpeername() == server.getsockname())
"""


@pytest.mark.open_files
@pytest.mark.attack(250)
@pytest.mark.backend("namespaces", "broker")
def test_timers_of_one_session_do_not_end_another(netsandbox: Any) -> None:
    """A user's timers and pending signals are counted together, whatever the namespace, but each process has a limit of
    its own: a low one stands for a session that makes as many as the usual limit allows."""
    full = netsandbox.spawn("run", "--", "python3", "-c", TIMERS, stdin=subprocess.PIPE)
    full.read_until(b"made 300\n")
    home = netsandbox.home()
    limited = ["prlimit", "--sigpending=200:200"]
    assert home.plainly([*limited, "python3", "-c", TIMERS]).stdout == "made 0\n"
    options = [f"--gateway-port={home.gateway_port}", "--files=open", f"--backend={netsandbox.backend or 'namespaces'}"]
    talked = home.plainly([*limited, *home.identity.command, "run", *options, "--", "python3", "-c", TALKS])
    assert (talked.returncode, talked.stdout) == (0, "True\n"), talked.stderr
