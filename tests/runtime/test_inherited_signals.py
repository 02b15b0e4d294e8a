"""Signals meant for the command: none is lost while we load, and afterwards all is as it was."""

from __future__ import annotations

import os
import subprocess
import sys

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
