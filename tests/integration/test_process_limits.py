"""Limits are kept by really exceeding them; each has a twin without the limit."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netsandbox.backends.linux.cgroup import find_cgroup
from netsandbox.backends.linux.process_rules import is_exempt
from netsandbox.policy.limits import parse_limits

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

MEGABYTES = """
try:
    bytearray(300 << 20)
    print("got it")
except MemoryError:
    print("no memory")
"""
FORKS = """
import os
made = 0
try:
    while made < 60:
        if not os.fork():
            import signal
            signal.pause()
        made += 1
except BlockingIOError:
    pass
print(made)
"""
OPENS = """
import os
made = 0
try:
    while made < 200:
        os.dup(0)
        made += 1
except OSError as error:
    print(error.errno)
print(made + 3)
"""


def sh(netsandbox: Any, script: str, *options: str) -> Any:
    return netsandbox("run", *options, "--", "python3", "-c", script)


def test_memory(netsandbox: Any) -> None:
    limited = sh(netsandbox, MEGABYTES, "--limit", "memory=200M")
    assert "got it" not in limited.stdout  # refused by a resource limit, or killed in a cgroup
    assert sh(netsandbox, MEGABYTES, "--limit", "memory=2G").stdout == "got it\n"


def test_open_files(netsandbox: Any) -> None:
    assert sh(netsandbox, OPENS, "--limit", "files=50").stdout == "24\n50\n"
    assert sh(netsandbox, OPENS).stdout == "203\n"


def test_a_file_and_a_core(netsandbox: Any) -> None:
    work = netsandbox.home().work
    script = "ulimit -c; head -c 2000000 /dev/zero > {}"
    run = netsandbox("run", "--limit", "file-size=1M,core=0", "--", "sh", "-c", script.format("small"))
    assert run.returncode != 0
    assert run.stdout == "0\n"
    assert (work / "small").stat().st_size <= 1 << 20
    assert netsandbox("run", "--", "sh", "-c", script.format("large")).returncode == 0
    assert (work / "large").stat().st_size == 2000000


def test_addresses(netsandbox: Any) -> None:
    reserve = "import mmap; mmap.mmap(-1, 4 << 30); print('reserved')"
    assert sh(netsandbox, reserve, "--limit", "address-space=2G").returncode == 1
    assert sh(netsandbox, reserve).stdout == "reserved\n"


def test_the_command_cannot_raise_its_limits(netsandbox: Any) -> None:
    script = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (60, 60))"
    assert "not allowed to raise" in sh(netsandbox, script, "--limit", "files=50").stderr
    assert sh(netsandbox, script).returncode == 0


def test_processes(netsandbox: Any) -> None:
    has_cgroup = find_cgroup("test", parse_limits([("processes=9", "")])) is not None
    if netsandbox.identity.uid == 0 and is_exempt() and not has_cgroup:
        run = sh(netsandbox, FORKS, "--limit", "processes=20")
        assert run.returncode == 1
        assert "no processes of root without a cgroup; log in so that systemd" in run.stderr
        assert run.stdout == ""
    else:
        assert sh(netsandbox, FORKS, "--limit", "processes=20").stdout == "19\n"  # and itself
    assert sh(netsandbox, FORKS).stdout == "60\n"


@pytest.mark.ordinary_user(only=True)
def test_two_sessions_count_their_processes_apart(netsandbox: Any) -> None:
    """The kernel counts an ordinary user's processes for each user namespace."""
    first = netsandbox.spawn("run", "--limit", "processes=20", "--", "sh", "-c", "sleep 60 & sleep 60 & echo on; wait")
    first.read_until(b"on")
    try:
        assert sh(netsandbox, FORKS, "--limit", "processes=20").stdout == "19\n"
    finally:
        first.signal(signal.SIGTERM)
        first.wait()


def test_a_limit_that_nothing_here_can_hold_is_an_error(netsandbox: Any) -> None:
    if find_cgroup("test", parse_limits([("cpu=9%", "")])) is not None:
        pytest.skip("this machine has a cgroup for it")
    run = netsandbox("run", "--limit", "cpu=200%", "--", "touch", "ran")
    assert run.returncode == 1
    assert "--limit cpu=200% needs a cgroup" in run.stderr
    assert "enable-linger" in run.stderr
    assert not (netsandbox.home().work / "ran").exists()


def test_ps_says_what_a_session_uses_and_what_holds_its_limits(netsandbox: Any) -> None:
    script = "import time; kept = bytearray(30 << 20); print('on', flush=True); time.sleep(60)"
    running = netsandbox.spawn("run", "--limit", "files=80", "--", "python3", "-c", script)
    try:
        running.read_until(b"on")
        (status,) = json.loads(netsandbox("ps", "--json").stdout)
        assert status["limits"] == "limit files=80: rlimit, each process"
        assert status["processes"] == 1
        assert 30 << 20 < status["memory_bytes"] < 300 << 20
        assert 0 <= status["cpu_seconds"] < 60
    finally:
        running.signal(signal.SIGTERM)
        running.wait()


def test_the_verbose_line_names_the_mechanism(netsandbox: Any) -> None:
    run = netsandbox("run", "-v", "--limit", "files=80,memory=1G", "--", "true")
    assert "netsandbox: limit files=80: rlimit, each process\n" in run.stderr
    assert "netsandbox: limit memory=1G: " in run.stderr


@pytest.mark.attack(251)
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("mode", ["project", "open"])
def test_the_kernel_kills_processes_of_a_session_before_the_supervisor(netsandbox: Any, mode: str) -> None:
    """Out of memory it takes the highest score. Nobody inside lowers one, by any name of the file."""
    script = """
import os
def score(of): return int(open(f"/proc/{of}/oom_score_adj").read())
print(score(os.getppid()) if os.getppid() > 1 else "", score("self"))
for name in ("self/oom_score_adj", "thread-self/oom_score_adj", f"{os.getpid()}/task/{os.getpid()}/oom_adj"):
    try: open(f"/proc/{name}", "w").write("0")
    except OSError: pass
print(score("self"), flush=True)
input()
"""
    running = netsandbox.spawn("run", "--files", mode, "--", netsandbox.python, "-c", script, stdin=subprocess.PIPE)
    own = int(Path(f"/proc/{running.pid}/oom_score_adj").read_text())
    first, last = running.read_until(b"\n"), running.read_until(b"\n")
    assert int(first.split()[-1]) == int(last) == min(1000, own + 500)
    assert int(Path(f"/proc/{running.pid}/oom_score_adj").read_text()) == own  # the supervisor's
