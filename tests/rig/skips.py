"""Says which tests were skipped and why; with NETSANDBOX_REQUIRE_ALL=1 a skip is a failure.

Only tests marked `macos` may be skipped then: the kernel they need is not there. They are counted by their reasons, and
all is said before the failures are told, so that those stand at the end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

Skips = list[tuple[str, str, bool]]
REQUIRED = "NETSANDBOX_REQUIRE_ALL"


def _skips(reporter: pytest.TerminalReporter) -> Skips:
    found: Skips = []
    for report in reporter.stats.get("skipped", []):
        longrepr = report.longrepr
        reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        found.append((report.nodeid, reason.removeprefix("Skipped: "), "macos" in getattr(report, "keywords", {})))
    return found


def _lines(skips: Skips) -> Iterator[str]:
    yield from (f"{nodeid}: {reason}" for nodeid, reason, macos in sorted(skips) if not macos)
    for reason, count in sorted(Counter(reason for _, reason, macos in skips if macos).items()):
        yield f"{count} that need a Mac: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    skips = _skips(terminalreporter)
    if skips:
        terminalreporter.section("skipped tests and why")
        for line in _lines(skips):
            terminalreporter.line(line)
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get(REQUIRED) != "1" or session.exitstatus != pytest.ExitCode.OK:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and any(not macos for _, _, macos in _skips(reporter)):
        reporter.line(f"{REQUIRED}=1: a test other than a macOS one was skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
