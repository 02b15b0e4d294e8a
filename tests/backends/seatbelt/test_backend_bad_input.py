"""What a user may get wrong, or a hostile project prepare: a clear error, and the command leaves no trace.

Each refusal has a twin beside it that runs, so that the silence of a command that never could run proves nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.policy.policy import Policy

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

CHOSEN = {name: LocalhostSettings(strategy=name, chosen=True, count=4) for name in ("rewire-port", "rewire-device")}
DEFAULT = LocalhostSettings(strategy="rewire-port", count=4)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """What the command would leave."""
    return tmp_path / "ran"


def refused(mac: Any, trace: Path, words: str, kind: type[NetsandboxError] = UsageError, **more: Any) -> str:
    with pytest.raises(kind, match=words) as caught:
        mac("touch", str(trace), **more)
    assert not trace.exists()
    text = str(caught.value)
    assert text.isprintable()
    assert "; " in text
    return text


@pytest.mark.attack(139)
@pytest.mark.parametrize("name", ['a"b', "a\\b", "a b)(allow default)", "caf\u00e9"])
def test_a_folder_whose_name_can_be_escaped_is_worked_in(
    mac: Any, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = place / "work" / name
    folder.mkdir()
    monkeypatch.chdir(folder)
    ended = mac("touch", "ran", env={"TMPDIR": str(folder)})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (folder / "ran").exists()


@pytest.mark.attack(139)
@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\u202eb"])
@pytest.mark.parametrize("where", ["working directory", "HOME", "TMPDIR", "PATH", "command"])
def test_a_folder_whose_name_cannot_be_written_runs_nothing(
    mac: Any, place: Path, monkeypatch: pytest.MonkeyPatch, trace: Path, where: str, name: str
) -> None:
    folder = place / name
    folder.mkdir()
    program = shutil.copy("/bin/touch", folder / "touch-here")
    words, more = "cannot stand in a Seatbelt profile", {}
    if where == "working directory":
        monkeypatch.chdir(folder)
    elif where in ("HOME", "TMPDIR"):
        more = {"env": {where: str(folder)}}
    command = {"PATH": "touch-here", "command": str(program)}.get(where, "touch")
    if where == "PATH":
        more = {"env": {"PATH": f"{folder}:{os.environ['PATH']}"}}
    with pytest.raises(UsageError, match=words) as caught:
        mac(command, str(trace), **more)
    assert str(caught.value).isprintable()
    assert not trace.exists()


def test_a_folder_of_path_that_is_not_used_does_not_matter(mac: Any, place: Path, trace: Path) -> None:
    assert mac("touch", str(trace), env={"PATH": f"{place}/a\nb:{os.environ['PATH']}"}).returncode == 0
    assert trace.exists()


def test_three_thousand_paths_are_taken(mac: Any, trace: Path, place: Path) -> None:
    policy = Policy(allow_unix_sockets=[f"{place}/sockets/{number}" for number in range(3000)])
    assert mac("touch", str(trace), policy=policy, unix_sockets=policy.allow_unix_sockets).returncode == 0
    assert trace.exists()


def test_a_working_directory_that_is_gone_runs_nothing(mac: Any, place: Path, trace: Path) -> None:
    (place / "work").rmdir()
    refused(mac, trace, "the working directory does not exist any more; change to one that does")


@pytest.mark.parametrize("home", ["", "/"])
def test_a_home_that_is_none_runs_nothing(mac: Any, trace: Path, home: str) -> None:
    refused(mac, trace, "home directory", env={"HOME": home})


@pytest.mark.parametrize(("release", "version"), [("19.6.0", "10.15"), ("17.0.0", "10.13")])
def test_a_mac_that_is_too_old_runs_nothing(
    mac: Any, system: MacSystem, trace: Path, release: str, version: str
) -> None:
    system.__dict__["release"] = release
    refused(mac, trace, f"this is macOS {version}, .*needs macOS 11 or newer", HostError)


@pytest.mark.parametrize("release", ["20.0.0", "25.0.0", "99.9.9", "none that anybody knows"])
def test_a_mac_that_nobody_knows_yet_is_asked_whether_the_profile_holds(
    mac: Any, system: MacSystem, trace: Path, release: str
) -> None:
    system.__dict__["release"] = release
    assert mac("touch", str(trace)).returncode == 0
    assert trace.exists()


class TestAHelperThatCannotRun:
    @pytest.fixture(params=["missing", "other-processor", "killed"])
    def trouble(self, request: pytest.FixtureRequest, system: MacSystem, tmp_path: Path) -> str:
        path = tmp_path / "helper"
        if request.param == "other-processor":
            path.write_bytes(b"\xcf\xfa\xed\xfe")
        elif request.param == "killed":
            path.write_text("#!/bin/sh\nkill -9 $$\n")
        if path.exists():
            path.chmod(0o755)
        system.__dict__["helper"] = str(path)
        said = {"missing": "is missing", "other-processor": "is built for another processor", "killed": "was killed by"}
        return f"the helper netsandbox-apply {said[request.param]}"

    def test_runs_nothing(self, mac: Any, trouble: str, trace: Path) -> None:
        refused(mac, trace, f"{trouble}.* nothing is run without it; reinstall netsandbox", HostError)


class TestAMissingLibrary:
    @pytest.fixture(autouse=True)
    def missing(self, system: MacSystem, tmp_path: Path) -> None:
        system.__dict__["library"] = str(tmp_path / "none.dylib")

    def test_makes_the_default_fail_and_says_so_once(self, mac: Any) -> None:
        ended = mac("sh", "-c", "echo ${LD_PRELOAD-none}", localhost=DEFAULT)
        assert ended.stdout == "none\n"
        (line,) = ended.stderr.splitlines()
        assert "the preload library" in line
        assert ended.of("session.start")[0]["strategy"] == "fail"

    @pytest.mark.parametrize("strategy", sorted(CHOSEN))
    def test_is_an_error_where_it_was_asked_for(self, mac: Any, trace: Path, strategy: str) -> None:
        refused(mac, trace, f"{strategy} needs the preload library", HostError, localhost=CHOSEN[strategy])


@pytest.mark.parametrize("address", ["127.0.0.2", None])
def test_without_a_loopback_address_of_its_own_rewire_device_runs_nothing(
    mac: Any, monkeypatch: pytest.MonkeyPatch, trace: Path, address: str | None
) -> None:
    """A Mac has 127.0.0.1 alone until root adds another; we say how and never do it."""
    pytest.importorskip("netsandbox_interpose._native")
    monkeypatch.setattr("netsandbox.backends.seatbelt.reservation.can_bind", lambda device: False)
    wanted = LocalhostSettings(strategy="rewire-device", chosen=True, count=4, device=address)
    text = refused(mac, trace, "this Mac has no loopback address 127", HostError, localhost=wanted)
    assert "`sudo ifconfig lo0 alias 127." in text
    assert "--network-strategy rewire-port" in text


def test_verbose_says_how_the_session_is_made(mac: Any) -> None:
    ended = mac("true", verbose=True, policy=Policy(allow_domains=["a.test"]))
    first = ended.stderr.splitlines()[0]
    assert first.startswith("netsandbox: strategy fail, window ")
    assert "doors for HTTP, SOCKS5 and names" in first


def test_verbose_says_of_a_program_of_the_system_that_it_is_without_the_library(mac: Any) -> None:
    """It runs, and is confined; only the convenience is missing."""
    pytest.importorskip("netsandbox_interpose._native")
    ended = mac("/bin/sh", "-c", "exit 3", verbose=True, localhost=DEFAULT)
    assert ended.returncode == 3
    assert "sh is a program of the system: macOS starts it" in ended.stderr.replace("/dash", "/sh")
    assert "program of the system" not in mac("/bin/sh", "-c", "exit 3", localhost=DEFAULT).stderr
