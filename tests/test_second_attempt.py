"""A test that waited in vain is run again and named; a wrong result is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = """
import time
import pytest
from tests.rig.patience import WaitedInVain
runs = []

def attempt(name):
    runs.append(name)
    return runs.count(name)

def test_slow_once():
    if attempt("slow") == 1:
        raise WaitedInVain("the first time")

def test_slow_twice():
    raise TimeoutError("each time")

def test_wrong_once():
    assert attempt("wrong") == 2

def test_hangs_once():
    if attempt("hangs") == 1:
        time.sleep(60)

def test_computes_without_end():
    while True:
        pass

@pytest.fixture(scope="module")
def slow():
    number = attempt("fixture")
    yield number
    if attempt("end") == 1:
        raise AssertionError("left behind")

@pytest.fixture(scope="module")
def slower(slow):
    if slow == 1:
        raise WaitedInVain("for what all tests share")

def test_shared_first(slower):
    pass

def test_shared_second(slower):
    pass
"""


def run(folder: Path, *names: str, hangs: str = "1") -> subprocess.CompletedProcess[str]:
    file = folder / "test_waits.py"
    file.write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.rig.patience",
        "-c",
        "/dev/null",
    ]
    return subprocess.run(
        [*command, *(f"{file}::{name}" for name in names)],
        cwd=ROOT,
        env={**os.environ, "NETSANDBOX_TEST_HANGS": hangs, "NETSANDBOX_TEST_COMPUTES": "0.5"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_wait_in_vain_gets_a_second_attempt_and_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "test_slow_once")
    assert done.returncode == 0, done.stdout
    assert "test_slow_once (call): tests.rig.patience.WaitedInVain: the first time" in done.stdout
    assert "1 passed, 1 repeated" in done.stdout


def test_a_second_wait_in_vain_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, "test_slow_twice")
    assert (done.returncode, "1 failed, 1 repeated" in done.stdout) == (1, True), done.stdout


def test_a_wrong_result_gets_no_second_attempt(tmp_path: Path) -> None:
    done = run(tmp_path, "test_wrong_once")
    assert (done.returncode, "repeated" in done.stdout) == (1, False), done.stdout


def test_a_fixture_that_waited_in_vain_is_made_again_for_all_its_tests(tmp_path: Path) -> None:
    """What the second attempt tears down may fail too, and that is no wait."""
    done = run(tmp_path, "test_shared_first", "test_shared_second")
    assert "2 passed, 1 error, 1 repeated" in done.stdout, done.stdout
    assert "left behind" in done.stdout
    assert "test_shared_first (setup): tests.rig.patience.WaitedInVain: for what all tests share" in done.stdout


def test_a_test_that_hangs_counts_as_one_that_waited(tmp_path: Path) -> None:
    done = run(tmp_path, "test_hangs_once")
    assert "1 passed, 1 repeated" in done.stdout, done.stdout
    assert "test_hangs_once (call): tests.rig.patience.WaitedInVain: the test was not over after 1 s" in done.stdout


def test_a_test_that_computes_without_end_fails_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, "test_computes_without_end", hangs="200")
    assert "1 failed in" in done.stdout, done.stdout
    assert "the test computed for 0.5 s and was not over" in done.stdout
