"""The options about processes, alone and over a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from netsandbox.cli.process_options import check_device
from netsandbox.cli.run import OPTIONS
from netsandbox.cli.run_options import read_config, settings_of
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import parse
from netsandbox.settings import RunSettings


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path / "work")


def settings(*arguments: str) -> RunSettings:
    parsed = parse(arguments, OPTIONS, "netsandbox run")
    return settings_of(parsed, read_config(parsed))


def config(text: str) -> str:
    Path("rules.toml").write_text(text)
    return "--config=rules.toml"


def test_without_them_nothing_is_set() -> None:
    found = settings("--no-config")
    assert (found.limits, found.no_debug, found.files.devices, found.files.listed_only) == ((), False, (), False)


def test_the_command_lines_limit_wins_over_the_files() -> None:
    file = config('[processes]\nlimit = ["memory=1G,files=99", "cpu=50%"]\n')
    assert dict(settings(file).limits) == {"memory": 1 << 30, "files": 99, "cpu": 50}
    assert dict(settings(file, "--limit", "memory=2G", "--limit=core=0").limits) == {
        "memory": 2 << 30,
        "files": 99,
        "cpu": 50,
        "core": 0,
    }


def test_debugging_is_turned_off_by_either() -> None:
    assert settings("--no-debug").no_debug
    assert settings(config("[processes]\ndebug = false\n")).no_debug
    assert not settings(config("[processes]\ndebug = true\n")).no_debug


def test_a_program_on_the_command_line_turns_the_list_on() -> None:
    """A list in a file alone adds to a Mac's: profiles have one, and must close nothing on Linux."""
    file = config('[filesystem]\nallow_execute = ["tools"]\n')
    assert not settings(file).files.listed_only
    both = settings(file, "--allow-execute", "/usr/bin/i?").files
    assert both.listed_only
    assert [rule.path for rule in both.allow_execute] == [f"{os.getcwd()}/tools", "/usr/bin/i?"]
    assert both.allow_execute[1].wild
    listed = settings(config('[filesystem]\nexecute = "listed"\n')).files
    assert (listed.listed_only, listed.allow_execute) == (True, ())


@pytest.mark.parametrize("text", ['limit = ["memory=2"]', "limit = [2]", 'debug = "no"', "allow_devices = [1]"])
def test_a_wrong_value_in_a_file_names_its_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"rules\.toml:2"):
        settings(config(f"[processes]\n{text}\n"))


def test_a_device_is_one_below_dev() -> None:
    assert settings("--allow-device", "/dev/full").files.devices == ("/dev/full",)
    assert settings(config('[processes]\nallow_devices = ["/dev/zero"]\n')).files.devices == ("/dev/zero",)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/dev/no-such-device", "does not exist"),
        ("/dev/shm", "is not a device"),
        ("/etc/passwd", "is not a device"),
        ("/dev/../etc/passwd", "is not a device"),
        ("dev/null", "is not a device"),
        ("/dev/fd", "is not a device"),
        ("", "is not a device"),
    ],
)
def test_what_is_no_device_is_an_error(path: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_device(path, "--allow-device")


def test_a_disk_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk:
        st_mode = 0o060660

    known = os.stat
    fake: Any = lambda path, **more: Disk() if path == "/dev/disk0" else known(path, **more)  # noqa: E731 (a stand-in)
    monkeypatch.setattr(os, "stat", fake)
    with pytest.raises(UsageError, match="is a disk"):
        check_device("/dev/disk0", "--allow-device")
