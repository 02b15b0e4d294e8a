"""Waits that ran out, and the second attempt at a test that one of them ended.

A machine that runs other work can be slower than any patience. So a test that failed because it waited in vain is run
once more with new fixtures, and the end of the run names it: that is a bug to find. A test that hangs counts as one
that waited; one that computes without end does not, since no other work makes it compute more. A wrong result is a
failure at once, whatever the second attempt would say: a server that was reached once in a hundred runs is a hole.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol


class WaitedInVain(AssertionError):
    """Something did not happen within the time that a test gives it."""


WAITS = (WaitedInVain, TimeoutError, subprocess.TimeoutExpired)
REPEATED = "repeated"  # an outcome that pytest does not count as a failure
HANGS = float(os.environ.get("NETSANDBOX_TEST_HANGS", "400"))  # seconds; 0: no limit
COMPUTES = float(os.environ.get("NETSANDBOX_TEST_COMPUTES", HANGS * 0.15))  # seconds of the test's own processor time
Reports = Generator[None, Any, Any]


@contextlib.contextmanager
def _limit(timer: int, number: signal.Signals, seconds: float, error: BaseException) -> Iterator[None]:
    def end(number: int, frame: object) -> None:
        raise error

    before = signal.signal(number, end)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Reports:
    hangs = WaitedInVain(f"the test was not over after {HANGS:g} s")
    turns = AssertionError(f"the test computed for {COMPUTES:g} s and was not over")
    with (
        _limit(signal.ITIMER_REAL, signal.SIGALRM, HANGS, hangs),
        _limit(signal.ITIMER_PROF, signal.SIGPROF, COMPUTES, turns),
    ):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Reports:
    report = yield
    report.waited_in_vain = call.excinfo is not None and call.excinfo.errisinstance(WAITS)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    if failed and all(report.waited_in_vain for report in failed):
        failed[0].__dict__["outcome"] = REPEATED
        item.ihook.pytest_runtest_logreport(report=failed[0])
        reports = [*_without_fixtures(item), *runtestprotocol(item, log=False, nextitem=nextitem)]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _without_fixtures(item: pytest.Item) -> list[pytest.TestReport]:
    """Tears down what the tests of a file share: pytest keeps a fixture that failed, and would fail again. Returns the
    report if that fails."""
    module = item.getparent(pytest.Module)
    assert module is not None
    folder: Any = module.parent  # only the nodes above it are looked at, as of the next test
    call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(folder), "teardown")
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return [report] if report.failed else []


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return (REPEATED, "W", "WAITED") if str(report.outcome) == REPEATED else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    repeated = terminalreporter.stats.get(REPEATED, [])
    if repeated:
        terminalreporter.section("tests that waited in vain and were run again")
        for report in repeated:
            crash = getattr(report.longrepr, "reprcrash", None)
            terminalreporter.line(f"{report.nodeid} ({report.when}): {crash.message.splitlines()[0] if crash else ''}")
