"""Windows never overlap between processes and users, and the kernel frees those of a killed process."""

from __future__ import annotations

import json
import subprocess

import pytest
from netsandbox_portmap.window import (
    WindowError,
    device_of,
)

# Waits for a line, takes a window, prints it, and holds it until standard input ends.
SESSION = """
import json, sys
from netsandbox_portmap.ranges import RangeLock
from netsandbox_portmap.window import WindowError, take_window
path, options = sys.argv[1], json.loads(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
locks = RangeLock.open(path, shared=True)
try:
    window = take_window(locks, **options).window
    print(json.dumps([window.base, window.count, window.device]), flush=True)
except WindowError as problem:
    print(json.dumps(str(problem)), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start(path):
    """Starts a session in a separate process, which waits for `answer` before it takes its window."""
    running = []

    def started(identity, lock_file=path, **options):
        arguments = json.dumps({"pool": (50000, 50999), "whole": False, **options})
        running.append(
            subprocess.Popen(
                [identity.python, "-c", SESSION, lock_file, arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={"PYTHONPATH": identity.pythonpath, "PATH": identity.path},
                cwd="/",
                **identity.popen,
            )
        )
        return running[-1]

    yield started
    for session in running:
        session.kill()
        session.communicate()


def go(session):
    session.stdin.write(b"go\n")
    session.stdin.flush()


def answer(session):
    return json.loads(session.stdout.readline())


@pytest.mark.attack(209)
def test_fifty_sessions_that_start_together_get_fifty_windows(start, caller, path):
    """The pool has room for exactly as many, so each of them must meet all others."""
    sessions = [start(caller, pool=(40000, 44999)) for _ in range(50)]
    for session in sessions:
        assert session.stdout.readline() == b"ready\n"
    for session in sessions:
        go(session)
    windows = [answer(session) for session in sessions]
    assert sorted(base for base, _, _ in windows) == list(range(40000, 45000, 100))
    assert {count for _, count, _ in windows} == {100}
    assert len({device for _, _, device in windows}) == 50


@pytest.mark.attack(204)
def test_the_window_of_a_killed_session_is_free_within_a_second(start, caller, take):
    sessions = [start(caller, base=50000), start(caller, base=50100)]
    for session in sessions:
        assert session.stdout.readline() == b"ready\n"
        go(session)
        answer(session)
    sessions[0].kill()
    sessions[0].wait(20)
    assert take(base=50000).window.device == device_of(50000)
    with pytest.raises(WindowError, match="another session has 50100-50199"):
        take(base=50100)


@pytest.mark.parametrize("first", ["root", "user"])
def test_sessions_of_two_users_do_not_overlap(start, caller, ordinary_user, short_tmp, first):
    if ordinary_user.is_caller:
        pytest.skip("only root can start sessions of two users")
    short_tmp.chmod(0o1777)
    users = [caller, ordinary_user] if first == "root" else [ordinary_user, caller]
    bases = []
    for user in users * 2:
        session = start(user, str(short_tmp / "ports"))
        assert session.stdout.readline() == b"ready\n"
        go(session)
        bases.append(answer(session)[0])
    assert bases == [50000, 50100, 50200, 50300]
    assert (short_tmp / "ports").stat().st_uid == users[0].uid
    session = start(users[1], str(short_tmp / "ports"), base=50000)
    go(session)
    session.stdout.readline()
    assert "another session has 50000-50099" in answer(session)
