"""The pytest of a marked test: a report that cannot be passed on must not be taken for one."""

from __future__ import annotations

import io
import json
from typing import Any

from netsandbox.testing.inside import Reporter


def test_each_report_is_a_line_in_the_form_of_pytest_itself(pytestconfig: Any) -> None:
    from _pytest.reports import TestReport

    file = io.StringIO()
    report = TestReport("a.py::test", ("a.py", 1, "test"), {}, "failed", "line\nline", "call")
    Reporter(pytestconfig, file).pytest_runtest_logreport(report)
    (line,) = file.getvalue().splitlines()
    again = pytestconfig.hook.pytest_report_from_serializable(config=pytestconfig, data=json.loads(line))
    assert (again.nodeid, again.outcome, again.longrepr) == (report.nodeid, "failed", "line\nline")
