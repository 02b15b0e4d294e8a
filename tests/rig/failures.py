"""Says last of all why tests failed: of a long log people are often shown the tail alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

MAX_TESTS, MAX_LINES = 20, 15


def _lines(report: pytest.TestReport) -> Iterator[str]:
    """The test, where it failed, and the first lines of what was said there."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        yield f"{report.nodeid} ({report.when})"
        said = str(report.longrepr).splitlines()[-MAX_LINES:]
    else:
        yield f"{report.nodeid} ({report.when}), {crash.path}:{crash.lineno}"
        said = crash.message.splitlines()[:MAX_LINES]
    yield from (f"    {line}" for line in said)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    result = yield
    failed = [report for kind in ("error", "failed") for report in terminalreporter.stats.get(kind, [])]
    if failed:
        terminalreporter.section("failed tests and why")
        for report in failed[-MAX_TESTS:]:
            for line in _lines(report):
                terminalreporter.line(line)
    return result
