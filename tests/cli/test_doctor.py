"""The exit status of `netsandbox doctor` is that of its report; the command takes no arguments."""

from __future__ import annotations

import pytest

from netsandbox.cli import doctor
from netsandbox.doctor.jail import Finding
from netsandbox.doctor.linux_checks import Check
from netsandbox.doctor.report import BackendReport, Report
from netsandbox.errors import HostError, UsageError

WELL = Check("kernel", "ok", "Linux 6.1")
HELD = Finding("tcp-loopback", "nothing arrives", "nothing arrived; client: ECONNREFUSED", "ok")
LEAKED = Finding("tcp-host", "nothing arrives", "the canary received 1", "LEAK")
FAILED = Finding("control-name", "reached", "the control received 0; client: no answer", "FAILED")


@pytest.mark.parametrize(("jail", "status"), [([HELD], 0), ([HELD, LEAKED], 1), ([FAILED], 1), ([], 1)])
def test_the_exit_status_follows_the_report(monkeypatch, capsys, jail, status):
    report = Report([], [BackendReport("namespaces", [WELL], jail)])
    monkeypatch.setattr("netsandbox.doctor.examine.examine", lambda backend: report)
    assert doctor.main([]) == status
    assert doctor.main(["--json"]) == status
    assert '"ok": ' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--apply"], "write `netsandbox doctor --fix --apply`"),
        (["--remove"], "write `netsandbox doctor --fix --remove`"),
        (["--fix", "--apply", "--remove"], "give one of them"),
        (["--fix", "--json"], "leave out --json"),
        (["--fix", "--backend", "broker"], "takes no --backend; leave it out"),
    ],
)
def test_options_of_fix_that_make_no_sense_are_an_error(arguments, advice):
    with pytest.raises(UsageError, match=advice):
        doctor.main(arguments)


def test_there_is_nothing_to_fix_on_another_system(monkeypatch):
    monkeypatch.setattr(doctor, "IS_LINUX", False)
    with pytest.raises(HostError, match="--fix is for Linux; `netsandbox doctor` says"):
        doctor.main(["--fix"])


def test_one_backend_is_examined_alone(monkeypatch, capsys):
    asked = []
    report = Report([], [BackendReport("broker", [WELL], [HELD])])
    monkeypatch.setattr("netsandbox.doctor.examine.examine", lambda backend: asked.append(backend) or report)
    assert doctor.main(["--backend", "broker"]) == 0
    assert asked == ["broker"]
    assert capsys.readouterr().out.startswith("The jail holds: 1 probe.\n")


@pytest.mark.parametrize("arguments", [["x"], ["--", "x"], ["--jason"]])
def test_arguments_are_an_error(arguments):
    with pytest.raises(UsageError):
        doctor.main(arguments)
