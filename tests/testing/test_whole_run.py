"""`pytest --netsandbox`: who reaches out fails, by name, and everything else is as without it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

TESTS = """
def test_quiet(tmp_path): print("said"); assert not os.path.exists("/tmp/secret")
def test_allowed(): assert fetch("GOOD") == b"allowed"
def test_reaches(): fetch("BAD")
def test_swallows():
    try: fetch("BAD")
    except OSError: pass
def test_skips():
    try: socket.getaddrinfo("skips.example", 80)
    except OSError: pytest.skip("no network")
@pytest.mark.xfail
def test_expects(): socket.getaddrinfo("expects.example", 80)
def test_program(): subprocess.run(["getent", "hosts", "program.example"])
@pytest.fixture
def reaching():
    yield
    try: socket.getaddrinfo("teardown.example", 80)
    except OSError: pass
def test_fixture(reaching): pass
@pytest.mark.netsandbox(allow=["other.example"])
def test_marked(): pass
def test_last(): assert "NETSANDBOX_SESSION" in os.environ
"""


def outcomes(report: Path) -> dict[str, set[str]]:
    """For each test that did not pass the hosts of its message in a JUnit report."""
    cases = ElementTree.parse(report).getroot().iter("testcase")
    wrong = {case.attrib["name"]: [each for each in case if each.tag in ("failure", "error")] for case in cases}
    texts = {name: " ".join(each.attrib["message"] for each in found) for name, found in wrong.items() if found}
    return {name: set(re.findall(r"netsandbox: denied ([\w.]+)", text)) for name, text in texts.items()}


BLAMED = {
    "test_reaches": {"denied.test"},
    "test_swallows": {"denied.test"},
    "test_skips": {"skips.example"},
    "test_expects": {"expects.example"},
    "test_program": {"program.example"},
    "test_fixture": {"teardown.example"},
    "test_marked": set(),  # the run allows less than its mark
}


def test_the_tests_that_reach_out_fail_by_name(project: Any) -> None:
    done = project.pytest("--netsandbox", f"--netsandbox-allow={project.address}", "--junitxml=r.xml", test_a=TESTS)
    assert outcomes(project.path / "work/r.xml") == BLAMED, done.stdout
    assert "5 failed, 4 passed, 2 errors" in done.stdout
    assert "add --netsandbox-allow other.example" in done.stdout
    assert done.returncode == 1
    assert project.world.forbidden.accepts == 0
    assert project.server.accepts == 1


def test_each_worker_is_blamed_for_its_own(project: Any) -> None:
    options = ("--netsandbox", f"--netsandbox-allow={project.address}", "--junitxml=r.xml", "-n", "2")
    done = project.pytest(*options, test_a=TESTS)
    assert outcomes(project.path / "work/r.xml") == BLAMED, done.stdout
    assert done.returncode == 1


ORPHAN = """
import time
def test_x(): subprocess.run(["sh", "-c", "(sleep 0.3; getent hosts late.example) &"])
def test_y(): time.sleep(1)
"""
IMPORTS = """
try: socket.getaddrinfo("import.example", 80)
except OSError: pass
def test_x(): pass
"""


def test_what_no_test_is_to_blame_for_fails_the_run_or_its_collection(project: Any) -> None:
    done = project.pytest("--netsandbox", "-n", "1", test_o=ORPHAN)
    assert (done.returncode, "2 passed" in done.stdout) == (1, True), done.stdout + done.stderr
    assert "netsandbox: denied late.example" in done.stderr
    done = project.pytest("--netsandbox", test_i=IMPORTS)
    assert "ERROR test_i.py - netsandbox: denied import.example" in done.stdout
    assert done.returncode == 2


def test_status_output_and_mistakes(project: Any) -> None:
    passing = "def test_x(): print('seen')"
    done = project.pytest("--netsandbox", "-s", test_a=passing)
    assert (done.returncode, "seen" in done.stdout) == (0, True), done.stderr
    done = project.pytest("--netsandbox", "--netsandbox-options=--bogus", test_a=passing)
    assert (done.returncode, done.stderr.startswith("ERROR: netsandbox: unknown option '--bogus'")) == (4, True)
    assert "passed" not in done.stdout


def test_where_there_is_no_sandbox_nothing_runs(project: Any) -> None:
    """INV-1."""
    project.environment["NETSANDBOX_SESSION"] = "x"
    done = project.pytest("--netsandbox", test_a="def test_x(): open('ran', 'w')")
    assert (done.returncode, done.stderr.count("\n")) == (4, 2)
    assert "ERROR: netsandbox: this is a session of netsandbox already" in done.stderr
    assert not (project.path / "work/ran").exists()


MOVES = """
def test_moves():
    place = os.path.dirname(os.environ["NETSANDBOX_PYTEST"])
    from netsandbox.testing import denial_watch
    denial_watch.DenialWatch._new = lambda self: []
    for act in (lambda: os.rename(place, f"{place}-moved"), lambda: os.mkdir(place)):
        try: act()
        except OSError: pass
    try: open(f"{place}/denials", "w")
    except OSError: pass
    try: fetch("BAD")
    except OSError: pass
"""


@pytest.mark.attack(149)
def test_a_test_that_moves_the_list_of_denials_away_hides_nothing(project: Any) -> None:
    done = project.pytest("--netsandbox", test_a=MOVES)
    assert "no test is to blame for it" in done.stderr, done.stdout + done.stderr
    assert done.returncode == 1
    assert project.world.forbidden.accepts == 0
