"""Inside of a session: fails the test that was denied something, even if the test took it for granted.

A denial is in the file before the program learns of it, so what a test caused is there when it ends. With
pytest-xdist several tests run at once: a denial belongs to the worker that is a parent of its process.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from netsandbox.testing.sandbox_of_tests import denial_texts

SHARED = "PYTEST_XDIST_WORKER"  # set in each worker; then others run at the same time


class DenialWatch:
    """A plugin. *path* is the list of denials, *allowed* are the hosts that this session may reach."""

    def __init__(self, path: str, allowed: Sequence[str]) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._allowed = allowed
        self._at = 0

    def _new(self) -> list[str]:
        """What this process was denied since the last call."""
        data = os.pread(self._file, max(0, os.fstat(self._file).st_size - self._at), self._at)
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return denial_texts(whole.decode("ascii").splitlines(), self._is_ours)

    def _is_ours(self, pids: list[int]) -> bool:
        return os.getpid() in pids if pids else SHARED not in os.environ

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        report = yield
        told = self._new()
        if told:
            report.outcome, report.longrepr = "failed", "\n".join(told)
        return report

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A mark cannot open more than the session of the whole run has."""
        marker = item.get_closest_marker("netsandbox")
        missing = [host for host in (marker.kwargs.get("allow", ()) if marker else ()) if host not in self._allowed]
        if missing:
            text = f"netsandbox: only the mark of this test allows {missing[0]}, but the whole run is in one sandbox"
            pytest.fail(f"{text}; add --netsandbox-allow {missing[0]}", pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        told = self._new()
        if told:
            _fail(report, item, "\n".join(told))
        return report


def _fail(report: Any, item: pytest.Item, text: str) -> None:
    """Also a test that passed, was skipped or was expected to fail."""
    crash = getattr(report.longrepr, "reprcrash", None) if report.outcome == "failed" else None
    if crash is None:
        report.longrepr = failure_of(item, text)
    else:
        crash.message = f"{text.partition(chr(10))[0]}: {crash.message}"
        report.longrepr.addsection("netsandbox", text)
    report.outcome = "failed"
    report.__dict__.pop("wasxfail", None)


def failure_of(item: pytest.Item, text: str) -> Any:
    call = pytest.CallInfo.from_call(lambda: pytest.fail(text, pytrace=False), when="call")
    assert call.excinfo is not None
    return item.repr_failure(call.excinfo)
