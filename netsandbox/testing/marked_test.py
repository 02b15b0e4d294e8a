"""A test with the mark `netsandbox` in a run without sandbox: a second pytest runs it in a session of its own.

Its reports are passed on as if the test had run here. What was denied is read outside too, so a test that hides it from
the pytest inside fails here.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from netsandbox.api.process import Result
from netsandbox.errors import NetsandboxError
from netsandbox.testing import inside
from netsandbox.testing.sandbox_of_tests import DENIALS, denial_texts, sandbox_of

# What belongs to the outer run: which tests it chose, where it writes, how it spreads them.
RESET: dict[str, Any] = {
    **dict.fromkeys(("usepdb", "trace", "lf", "failedfirst", "newfirst", "stepwise", "stepwise_skip"), False),
    **dict.fromkeys(("basetemp", "xmlpath", "report_log", "deselect", "numprocesses", "maxprocesses"), None),
    **{"keyword": "", "markexpr": "", "dist": "no", "tx": [], "cov_source": [], "no_cov": True, "maxfail": 0},
}
LAST_LINES = 30
MAX_REPORTS = 1 << 26  # characters
WORKER = {"workerid": "netsandbox", "workercount": 1, "testrunuid": "netsandbox", "mainargv": sys.argv}


def run_marked(item: pytest.Item, marker: pytest.Mark, nextitem: pytest.Item | None) -> None:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    # Fixtures of tests before this one end here, if this test is the last one that could have used them.
    state: Any = item.session
    ended = pytest.CallInfo.from_call(lambda: state._setupstate.teardown_exact(nextitem), when="teardown")
    for report in (*_reports(item, marker), pytest.TestReport.from_item_and_call(item, ended)):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _reports(item: pytest.Item, marker: pytest.Mark) -> list[pytest.TestReport]:
    """Those of the test, without a teardown that passed."""
    with tempfile.TemporaryDirectory(prefix="netsandbox-pytest-") as folder:
        Path(folder, inside.REQUEST).write_bytes(_request(item))
        error = None
        try:
            done = _run(item, marker, folder)
        except NetsandboxError as raised:
            error = f"netsandbox: {raised}"
        if error is not None:
            return [_failed(item, error)]
        told = denial_texts(Path(folder, DENIALS).read_text("ascii").splitlines())
        found = _read(item.config, Path(folder, inside.REPORTS))
    reports = [report for report in found if report.nodeid == item.nodeid]
    if not any(report.when == "call" or report.failed or report.skipped for report in reports):
        printed = (done.stdout or b"").decode("utf-8", "replace").splitlines()[-LAST_LINES:]
        how = f"netsandbox: the test ended without a report, with status {done.returncode}"
        reports.append(_failed(item, "\n".join((how, *told, *printed))))
    elif told and not any(report.failed for report in reports):
        reports = [report for report in reports if report.when != "call" and report.passed]
        reports.append(_failed(item, "\n".join(told)))
    return [report for report in reports if report.when != "teardown" or report.failed]


def _run(item: pytest.Item, marker: pytest.Mark, folder: str) -> Result[bytes]:
    allow = marker.kwargs.get("allow", ())
    if marker.args or set(marker.kwargs) - {"allow"} or isinstance(allow, str):
        raise NetsandboxError("the mark is netsandbox(allow=[HOST, …]); correct it")
    is_shown = item.config.option.capture == "no"
    return sandbox_of(item.config, allow, folder).run(
        [sys.executable, inside.__file__, folder],
        stdin=subprocess.DEVNULL,
        stdout=None if is_shown else subprocess.PIPE,
        stderr=None if is_shown else subprocess.STDOUT,
        cwd=item.config.invocation_params.dir,
    )


def _request(item: pytest.Item) -> bytes:
    config = item.config
    options = {name: value for name, value in {**vars(config.option), **RESET}.items() if _is_plain(value)}
    options.pop("file_or_dir", None)
    options.update(rootdir=str(config.rootpath), inifilename=config.inipath and str(config.inipath))
    options["plugins"] = [*options.get("plugins", ()), "no:terminal", "no:cacheprovider"]
    worker = getattr(config, "workerinput", WORKER)
    node = f"{config.rootpath}{os.sep}{item.nodeid}"
    return pickle.dumps((sys.path, options, node, {name: each for name, each in worker.items() if _is_plain(each)}))


def _is_plain(value: object) -> bool:
    """Whether the pytest inside can read it, before it has loaded any plugin."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    return value is None or type(value) in (str, int, float, bool, bytes)


def _read(config: pytest.Config, path: Path) -> list[Any]:
    """The reports of the pytest inside, as the test left them: what is no report counts as none."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
            lines = file.read(MAX_REPORTS).splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        for data in found:
            if isinstance(data["longrepr"], list):  # JSON has no tuples, which skipped tests need
                data["longrepr"] = tuple(data["longrepr"])
        reports = [config.hook.pytest_report_from_serializable(config=config, data=data) for data in found]
        return [report for report in reports if isinstance(report, pytest.TestReport)]
    except Exception:
        return []


def _failed(item: pytest.Item, text: str) -> pytest.TestReport:
    call = pytest.CallInfo.from_call(lambda: pytest.fail(text, pytrace=False), when="call")
    return pytest.TestReport.from_item_and_call(item, call)
