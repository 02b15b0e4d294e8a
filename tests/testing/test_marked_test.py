"""`@pytest.mark.netsandbox`: one test in a session, in a run that is in none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from netsandbox.testing import marked_test

TESTS = """
@pytest.fixture(scope="module")
def shared():
    yield os.getpid()
    open("shared-ended", "a").write("x")
def test_outside(shared): assert fetch("OUTSIDE") == b"forbidden\\n"
@pytest.mark.netsandbox(allow=[ALLOWED])
@pytest.mark.parametrize("value", ["c/d[1] e"])
def test_allowed(shared, tmp_path, value): assert fetch("GOOD") == b"allowed"; assert shared == os.getpid()
@pytest.mark.netsandbox
def test_hides():
    try: fetch("BAD")
    except OSError: pass
    from netsandbox.testing import denial_watch
    denial_watch.DenialWatch._new = lambda self: []
@pytest.mark.netsandbox
def test_fails(): print("said"); assert 1 == 2
@pytest.mark.netsandbox
def test_skips(): pytest.skip("why")
@pytest.mark.netsandbox
def test_dies(): print("last words", flush=True); os._exit(3)
@pytest.mark.netsandbox("example.com")
def test_mistaken(): open("ran", "w")
"""
LAST = "def test_after(): assert os.path.exists('shared-ended')"


def test_marked_tests_are_reported_as_others_are(project: Any) -> None:
    tests = TESTS.replace("ALLOWED", repr(project.address))
    done = project.pytest("-v", "--junitxml=r.xml", "--strict-markers", test_a=tests, test_b=LAST)
    text = done.stdout
    assert "4 failed, 3 passed, 1 skipped" in text, text + done.stderr
    assert done.returncode == 1
    for message in (
        "FAILED test_a.py::test_hides - Failed: netsandbox: denied denied.test",
        "assert 1 == 2",
        "Captured stdout call",
        "netsandbox: the test ended without a report, with status 3",
        "netsandbox: the mark is netsandbox(allow=[HOST, …]); correct it",
    ):
        assert message in text, text
    assert (project.path / "work/r.xml").read_text().count("<testcase ") == 8
    assert (project.world.forbidden.accepts, project.server.accepts) == (1, 1)  # one outside, one allowed
    assert not (project.path / "work/ran").exists()


def test_a_mark_in_a_worker(project: Any) -> None:
    tests = "@pytest.mark.netsandbox\ndef test_y(): socket.getaddrinfo('y.example', 80)"
    done = project.pytest("-n", "1", test_a=tests)
    assert "FAILED test_a.py::test_y - netsandbox: denied y.example" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("left", ["", "{", "[]\n", '{"longrepr": 1}\n', '{"$report_type": "Other", "longrepr": 1}\n'])
def test_what_a_test_left_in_place_of_reports_counts_as_none(left: str, tmp_path: Path, pytestconfig: Any) -> None:
    path = tmp_path / "reports"
    assert marked_test._read(pytestconfig, path) == []
    path.write_text(left)
    assert marked_test._read(pytestconfig, path) == []
    (tmp_path / "link").symlink_to(path)
    assert marked_test._read(pytestconfig, tmp_path / "link") == []


def test_a_pipe_in_place_of_reports_does_not_hold_us(tmp_path: Path, pytestconfig: Any) -> None:
    os.mkfifo(tmp_path / "reports")
    assert marked_test._read(pytestconfig, tmp_path / "reports") == []
