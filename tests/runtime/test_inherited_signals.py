"""Signals meant for the command: none is lost while we load, and afterwards all is as it was."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys

import pytest

from netsandbox.runtime.inherited import exit_with

# In a process of one thread: the kernel gives a signal to any thread that does not hold it.
PLAY = """
import os, signal
from netsandbox.runtime.inherited import Forwarder
sent = []
forwarder = Forwarder(sent.append)
def me(number): os.kill(os.getpid(), number)
"""


def played(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PLAY + text],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,  # no terminal: its foreground is nothing of ours
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_comes_before_release_waits_and_is_passed_on_then() -> None:
    assert played(
        "forwarder.hold(); me(15); me(10); held = list(sent); forwarder.release(); print(held, sorted(sent))"
    ) == ("[] [10, 15]")


def test_after_release_each_is_passed_on_at_once() -> None:
    assert played("forwarder.hold(); forwarder.release(); me(2); me(1); print(sent)") == "[2, 1]"


def test_what_was_ignored_stays_ignored() -> None:
    """nohup."""
    text = "signal.signal(1, signal.SIG_IGN); forwarder.hold(); forwarder.release(); me(1); me(15); print(sent)"
    assert played(text) == "[15]"


def test_at_the_end_handlers_and_mask_are_those_from_before() -> None:
    text = """
heard = []
signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
before = [signal.getsignal(number) for number in range(1, 32)], signal.pthread_sigmask(0, [])
forwarder.hold(); forwarder.release(); forwarder.restore()
assert before == ([signal.getsignal(number) for number in range(1, 32)], signal.pthread_sigmask(0, []))
me(10)
print(heard, sent)
"""
    assert played(text) == "[10] []"


def test_a_start_that_fails_between_loses_nothing() -> None:
    """restore without release: the one who started us hears it himself."""
    text = "heard = []; signal.signal(15, lambda *a: heard.append(15)); forwarder.hold(); me(15); forwarder.restore()"
    assert played(f"{text}; print(heard, sent)") == "[15] []"


def test_outside_of_the_main_thread_nothing_is_held_for_ever() -> None:
    """Only the main thread can have handlers; the others still get their mask back."""
    text = """
import threading
masks = []
def run():
    forwarder.hold(); forwarder.release(); masks.append(signal.pthread_sigmask(0, [])); forwarder.restore()
thread = threading.Thread(target=run); thread.start(); thread.join()
print(masks, sent)
"""
    assert played(text) == "[set()] []"


@pytest.mark.attack(252)
@pytest.mark.parametrize("hard", [resource.RLIM_INFINITY, 0])
def test_dying_of_the_commands_signal_leaves_no_core_for_any_program(hard: int) -> None:
    """A limit of 0 would not hold for a program that core_pattern names. Who cannot set 1 is not dumpable."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        if hard == 0:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)  # root may raise its limits
        prctl = ctypes.CDLL(None).prctl
        prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE

        def last_look(_pid: int, _number: int) -> None:
            os.write(writer, f"{resource.getrlimit(resource.RLIMIT_CORE)[0]} {prctl(3, 0, 0, 0, 0)}".encode())

        os.kill = last_look
        exit_with(-signal.SIGABRT)
    os.close(writer)
    with open(reader, encoding="ascii") as pipe:
        assert pipe.read() == ("0 0" if hard == 0 else "1 1")
    assert os.waitpid(child, 0)[1] != 0
