"""`--no-debug`: no program of a session reads or changes another one's memory. The canary is a secret in the memory of
one program, and the attacker is its parent, whom no setting of Yama stops. Without the option everything works."""

from __future__ import annotations

import platform
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("user_namespaces")

CANARY = "K3PT-1NS1D3"
NUMBERS = {"x86_64": (101, 310, 311, 312, 438, 298), "aarch64": (117, 270, 271, 272, 438, 241)}
# The victim tells where its secret is; the secret is written with gaps, so that no other memory has it.
ATTACK = r"""
import ctypes, os, subprocess, sys
PTRACE, READV, WRITEV, KCMP, GETFD, PERF = map(int, sys.argv[1:7])
victim = subprocess.Popen(
    [sys.executable, "-c", '''
import ctypes, os
kept = ctypes.create_string_buffer("".join(["K3P", "T-1", "NS1", "D3"]).encode())
print(ctypes.addressof(kept), flush=True)
input()
print(kept.value.decode(), flush=True)
'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"SECRET": "K3P" + "T-1NS1D3", "PATH": "/usr/bin"})
ROOT = "root"
address = int(victim.stdout.readline())
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, call):
    try:
        result = call()
    except OSError as error:
        result = os.strerror(error.errno)
    print(name, result, flush=True)
def called(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_long(each) for each in arguments])
    return os.strerror(ctypes.get_errno()) if result < 0 else "ok"
buffer = ctypes.create_string_buffer(16)
local = (ctypes.c_long * 2)(ctypes.addressof(buffer), 11)
remote = (ctypes.c_long * 2)(address, 11)
def vector(number):
    if number == WRITEV:
        buffer.value = b"CHANGED-IT!"
    result = called(number, victim.pid, ctypes.addressof(local), 1, ctypes.addressof(remote), 1, 0)
    return f"{result} {buffer.value.decode()}" if number == READV else result
def memory(path):
    with open(path, "rb", 0) as file:
        file.seek(address)
        return file.read(11).decode()
def overwrite():
    with open(f"/proc/{victim.pid}/mem", "r+b", 0) as file:
        file.seek(address)
        file.write(b"NOT-BY-PROC")
        return "written"
def content(path):
    with open(path, "rb") as file:
        return "K3PT" in file.read().decode("latin-1") and "read" or "other"
tried("readv", lambda: vector(READV))
tried("mem", lambda: memory(f"/proc/{victim.pid}/mem"))
tried("task-mem", lambda: memory(f"/proc/{victim.pid}/task/{victim.pid}/mem"))
tried("own-maps", lambda: open("/proc/self/maps").read() and "read")
tried("environ", lambda: content(f"/proc/{victim.pid}/environ"))
tried("through-root", lambda: memory(f"/proc/{victim.pid}/{ROOT}/proc/{victim.pid}/mem"))
def fresh_proc():
    if libc.mount(b"proc", b"/tmp", b"proc", 0, None) < 0:
        raise OSError(ctypes.get_errno() or 1, "")
    return "mounted"
tried("fresh-proc", fresh_proc)
tried("writev", lambda: vector(WRITEV))
tried("overwrite", overwrite)
tried("kcmp", lambda: called(KCMP, os.getpid(), victim.pid, 2, 0, 0))
tried("getfd", lambda: called(GETFD, os.pidfd_open(victim.pid), 0, 0))
tried("perf", lambda: called(PERF, 0, 0, -1, -1, 0))
def attach():
    result = called(PTRACE, 16, victim.pid, 0, 0)
    if result == "ok":
        os.waitpid(victim.pid, os.WUNTRACED)
        called(PTRACE, 17, victim.pid, 0, 0)
    return result
tried("attach", attach)
victim.stdin.write("\n"); victim.stdin.close()
print("victim", victim.stdout.read().strip())
"""
REFUSED, CLOSED, READ_ONLY = "Operation not permitted", "Permission denied", "Read-only file system"


def attack(netsandbox: Any, *options: str) -> dict[str, str]:
    numbers = map(str, NUMBERS[platform.machine()])
    run = netsandbox("run", *options, "--", "python3", "-c", ATTACK, *numbers)
    assert run.returncode == 0, run.stderr
    return dict(line.split(" ", 1) for line in run.stdout.splitlines())


@pytest.mark.ordinary_user
@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_no_program_reads_or_changes_another(netsandbox: Any, mode: str) -> None:
    tried = attack(netsandbox, "--files", mode, "--no-debug")
    assert tried == {
        "readv": f"{REFUSED} ",
        "mem": CLOSED,
        "task-mem": CLOSED,
        "own-maps": CLOSED,
        "environ": CLOSED,
        "through-root": CLOSED,
        "fresh-proc": REFUSED,
        "overwrite": READ_ONLY,
        "writev": REFUSED,
        "kcmp": REFUSED,
        "getfd": REFUSED,
        "perf": REFUSED,
        "attach": REFUSED,
        "victim": CANARY,
    }


@pytest.mark.ordinary_user
def test_without_the_option_all_of_it_works(netsandbox: Any) -> None:
    """The secret is read before it is overwritten, and the victim has what the attacker wrote."""
    tried = attack(netsandbox)
    assert tried["readv"] == f"ok {CANARY}"
    assert tried["mem"] == tried["task-mem"] == CANARY
    assert tried["environ"] == "read"
    assert (tried["writev"], tried["overwrite"]) == ("ok", READ_ONLY)  # /proc is read-only in every session
    assert tried["attach"] == "ok"
    assert tried["victim"] == "CHANGED-IT!"


def test_everyday_programs_go_on(netsandbox: Any) -> None:
    script = (
        "echo x > a; mkdir d; mv a d/b; ln d/b c; cat c; cat /proc/cpuinfo > /dev/null; cat < /dev/null;"
        " echo again > /dev/stdout; sh -c 'kill -0 $$' && head -c 3 /proc/version"
    )
    run = netsandbox("run", "--no-debug", "--", "sh", "-c", script)
    assert (run.returncode, run.stdout, run.stderr) == (0, "x\nagain\nLin", "")


def test_a_file_on_standard_output_can_be_opened_anew(netsandbox: Any) -> None:
    """It is a file of the host, which no folder of the session has."""
    with open(netsandbox.home().path / "out", "wb") as out:
        run = netsandbox.spawn(
            "run", "--files", "project", "--no-debug", "--", "sh", "-c", "echo x > /dev/stdout", stdout=out
        )
        assert run.wait() == 0
    assert (netsandbox.home().path / "out").read_text() == "x\n"


def test_strace_works_without_and_not_with_it(netsandbox: Any) -> None:
    assert netsandbox("run", "--", "strace", "-o", "trace", "true").returncode == 0
    assert netsandbox("run", "--no-debug", "--", "strace", "-o", "trace", "true").returncode != 0
