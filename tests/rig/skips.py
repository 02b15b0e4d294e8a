"""Says at the end which tests were skipped and why; with NETSANDBOX_REQUIRE_ALL=1 a skip is a failure.

Only tests marked `macos` may be skipped then: the kernel they need is not there.
"""

from __future__ import annotations

import os

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


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skips = _skips(terminalreporter)
    if not skips:
        return
    terminalreporter.section("skipped tests and why")
    for nodeid, reason, _ in sorted(skips):
        terminalreporter.line(f"{nodeid}: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get(REQUIRED) != "1" or session.exitstatus != pytest.ExitCode.OK:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and any(not macos for _, _, macos in _skips(reporter)):
        reporter.line(f"{REQUIRED}=1: a test other than a macOS one was skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
