"""The exit status of `netsandbox doctor` is that of its report; the command takes no arguments."""

from __future__ import annotations

import pytest

from netsandbox.cli import doctor
from netsandbox.doctor.jail import Finding
from netsandbox.doctor.linux_checks import Check
from netsandbox.doctor.report import Report
from netsandbox.errors import UsageError

WELL = Check("kernel", "ok", "Linux 6.1")
HELD = Finding("tcp-loopback", "nothing arrives", "nothing arrived; client: ECONNREFUSED", "ok")
LEAKED = Finding("tcp-host", "nothing arrives", "the canary received 1", "LEAK")
FAILED = Finding("control-name", "reached", "the control received 0; client: no answer", "FAILED")


@pytest.mark.parametrize(("jail", "status"), [([HELD], 0), ([HELD, LEAKED], 1), ([FAILED], 1), ([], 1)])
def test_the_exit_status_follows_the_report(monkeypatch, capsys, jail, status):
    monkeypatch.setattr("netsandbox.doctor.examine.examine", lambda: Report([WELL], jail))
    assert doctor.main([]) == status
    assert doctor.main(["--json"]) == status
    assert '"ok": ' in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["x"], ["--", "x"], ["--jason"]])
def test_arguments_are_an_error(arguments):
    with pytest.raises(UsageError):
        doctor.main(arguments)
