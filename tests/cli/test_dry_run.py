"""`netsandbox run --dry-run --backend seatbelt` prints what a Mac would enforce, on any system, and runs nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends import BACKENDS
from netsandbox.cli.run import main
from netsandbox.errors import UsageError
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import UDP, Request, bind, connect, connect_unix, file, listen, lookup

DRY = ["--dry-run", "--backend", "seatbelt"]


@pytest.fixture(autouse=True)
def project(mac_project: Path) -> Path:
    return mac_project


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main([*DRY, *options, "--", "touch", "started"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_it_prints_a_profile_and_runs_nothing(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    judged = load(printed(capsys, "--allow-domain", "example.com"))
    assert judged.faults == ()
    assert list(project.iterdir()) == []
    assert allowed_under_all(judged, file("file-write-create", str(project / "x")))
    assert denied_under_all(judged, file("file-read-data", "/Users/me/.ssh/id"))
    assert denied_under_all(judged, file("file-read-data", "/Users/me/.local/state/netsandbox/x"))
    assert allowed_under_all(judged, connect("127.0.0.1", 20100))
    assert denied_under_all(judged, connect("203.0.113.7", 443))


OPTIONS = "--allow-domain example.com --connect-host 5432 --listening-base-port 30000 --listening-port-count 3"


@pytest.mark.parametrize(
    ("request_", "verdict"),
    [
        (connect("127.0.0.1", 5432), "allowed"),
        (bind("127.0.0.1", 5432), "denied"),
        (connect("127.0.0.1", 5432, UDP), "denied"),
        (connect("::1", 30002), "allowed"),
        (bind("::1", 30002), "allowed"),
        (listen("::1", 30002), "allowed"),
        (connect("127.0.0.1", 30003), "allowed"),
        (connect("127.0.0.1", 30003, UDP), "denied"),
        (bind("127.0.0.1", 30003), "denied"),
        (connect("127.0.0.1", 30004), "allowed"),
        (connect("127.0.0.1", 30004, UDP), "allowed"),
        (connect("127.0.0.1", 30006), "denied"),
        (listen("127.0.0.1", 30006), "denied"),
        (connect("203.0.113.7", 80), "denied"),
        (connect("203.0.113.7", 443, UDP), "denied"),
        (connect("2001:db8::7", 443), "denied"),
        (connect("::ffff:127.0.0.1", 5432), "disputed"),
        (connect("127.0.0.2", 5432), "disputed"),
        (lookup("com.apple.dnssd.service"), "denied"),
        (lookup("com.apple.logd"), "allowed"),
        (file("file-read-data", "/Users/me/.ssh/id_ed25519"), "denied"),
        (file("file-write-data", "/Users/me/.ssh/id_ed25519"), "denied"),
        (file("process-exec", "/Users/me/.ssh/id_ed25519"), "denied"),
        (file("file-read-data", "/usr/lib/dyld"), "allowed"),
        (file("file-write-data", "/usr/lib/dyld"), "denied"),
        (connect_unix("/var/run/mDNSResponder"), "denied"),
    ],
)
def test_the_profile_of_the_options_is_judged_by_every_model(
    capsys: pytest.CaptureFixture[str], request_: Request, verdict: str
) -> None:
    judged = load(printed(capsys, *OPTIONS.split()))
    found = ("allowed" if allowed_under_all(judged, request_) else
             "denied" if denied_under_all(judged, request_) else "disputed")  # fmt: skip
    assert found == verdict


def test_the_working_folder_is_open_but_for_what_the_host_runs(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    for name in ("hooks", "objects", "refs"):
        (project / ".git" / name).mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    judged = load(printed(capsys))
    for operation in ("file-read-data", "file-write-data", "file-write-create", "process-exec"):
        assert allowed_under_all(judged, file(operation, str(project / "new")))
    assert allowed_under_all(judged, file("file-read-data", str(project / ".git/hooks/pre-commit")))
    assert denied_under_all(judged, file("file-write-create", str(project / ".git/hooks/pre-commit")))


def test_nothing_allowed_is_no_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    judged = load(printed(capsys))
    assert denied_under_all(judged, connect("127.0.0.1", 20100))
    assert allowed_under_all(judged, bind("127.0.0.1", 20000))


def test_the_window_the_ports_and_the_files_asked_for_are_in_it(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    options = ["--listening-base-port", "65500", "--listening-port-count", "36", "--network-strategy", "rewire-port"]
    text = printed(capsys, *options, "--connect-host", "5432", "--audit-log", "log", "--online")
    judged = load(text)
    assert "window 65500 to 65535" in text
    assert allowed_under_all(judged, bind("::1", 65535))
    assert allowed_under_all(judged, connect("::1", 5432))
    assert allowed_under_all(judged, connect("::1", 65497))
    assert denied_under_all(judged, file("file-write-data", str(project / "log")))
    assert denied_under_all(judged, file("file-write-data", str(project / "log.1")))


def test_the_same_options_print_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--online") == printed(capsys, "--online")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--backend", "seatbelt"], "is that of macOS and confines nothing here.*add --dry-run to print its profile"),
        (
            ["--dry-run", "--backend", "magic"],
            "unknown backend 'magic'; use --backend auto, namespaces or broker, or leave it out",
        ),
        ([*DRY, "--network-strategy", "isolate"], "isolate does not exist on macOS"),
        ([*DRY, "--publish", "3000"], "nothing is published or hidden"),
        ([*DRY, "--no-publish"], "nothing is published or hidden"),
        ([*DRY, "--network-strategy", "fail", "--listening-loopback", "127.0.0.2"], "knows no loopback address"),
        ([*DRY, "--allow-domain", "*"], "; "),
        ([*DRY, "--connect-host", "5353"], "a resolver's"),
        ([*DRY, "--limit", "memory=1G"], "a Mac holds only files, file-size, core"),
        ([*DRY, "--allow-device", "/dev/null"], "a Mac has its own list of devices"),
        ([*DRY, "--allow-http", "GET https://example.com/**"], "inspection needs seccomp"),
    ],
)
def test_a_mistake_prints_no_profile(capsys: pytest.CaptureFixture[str], options: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        main([*options, "--", "true"])
    assert capsys.readouterr().out == ""


def test_no_debug_is_in_the_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--no-debug") == printed(capsys, "--seatbelt-switch", "no-debug") != printed(capsys)


def test_a_mac_prints_its_own_profile_and_knows_no_namespaces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = printed(capsys, "--online")
    monkeypatch.setattr("netsandbox.cli.dry_run.IS_LINUX", False)
    monkeypatch.setattr("netsandbox.cli.run.DEFAULT_BACKEND", "seatbelt")
    assert main(["--dry-run", "--online", "--", "true"]) == 0
    assert capsys.readouterr().out == expected
    for words, says in (([], "is that of Linux and confines nothing here; leave it out$"), (["-n"], "on Linux only")):
        with pytest.raises(UsageError, match=says):
            main([*words, "--backend", "namespaces", "--", "true"])


def test_without_a_word_about_it_the_profile_is_that_of_a_macs_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys) == printed(capsys, "--network-strategy", "rewire-port")
    assert printed(capsys) != printed(capsys, "--network-strategy", "fail")


def test_a_file_that_wants_isolate_is_told_too(project: Path) -> None:
    (project / "file.toml").write_text('[localhost]\nnetwork_strategy = "isolate"\n')
    with pytest.raises(UsageError, match="isolate does not exist on macOS"):
        main([*DRY, "--config", "file.toml", "--", "true"])


@pytest.mark.attack(139)
@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\u202eb"])
def test_a_folder_whose_name_cannot_be_written_is_refused(project: Path, name: str) -> None:
    (project / name).mkdir()
    os.chdir(project / name)
    with pytest.raises(UsageError, match="cannot stand in a Seatbelt profile; rename it"):
        main([*DRY, "--", "true"])


def test_a_missing_working_directory_is_an_error(project: Path) -> None:
    os.chdir(project)
    project.rmdir()
    with pytest.raises(UsageError, match="the working folder is gone; enter another"):
        main([*DRY, "--", "true"])


def test_a_home_that_nobody_set_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):  # otherwise those of the account are read
        monkeypatch.setenv(name, str(tmp_path / name))
    with pytest.raises(UsageError, match="empty home directory"):
        main([*DRY, "--", "true"])


def test_a_debug_log_cannot_be_written_by_the_command(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    judged = load(printed(capsys, "--debug-log", "denials"))
    assert denied_under_all(judged, file("file-write-data", str(project / "denials")))
    assert denied_under_all(judged, file("file-write-unlink", str(project / "denials")))
    assert allowed_under_all(judged, file("file-write-data", str(project / "beside")))


def test_a_backend_without_a_dry_run_prints_no_other_backends_plan(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, "broker", "Linux")
    monkeypatch.setattr("netsandbox.cli.run.DEFAULT_BACKEND", "broker")
    with pytest.raises(UsageError, match="--dry-run cannot show the backend broker; use it with"):
        main(["--dry-run", "--backend", "broker", "--", "true"])
    assert capsys.readouterr().out == ""
