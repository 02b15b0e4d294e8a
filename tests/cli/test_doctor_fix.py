"""`doctor --fix` prints what to type; root installs and removes the profile; each refusal ends with what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from netsandbox.cli import doctor, doctor_fix
from netsandbox.doctor import apparmor, linux_checks
from netsandbox.doctor.apparmor_files import ProfileFile
from netsandbox.doctor.host_facts import HostFacts
from netsandbox.errors import HostError
from tests.rig.apparmor import Machine

RESTRICTED = {"kernel.apparmor_restrict_unprivileged_userns": "1"}


class Ubuntu(Machine):
    """A machine whose AppArmor restricts user namespaces, with a helper of this account. Its facts can be changed."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(root)
        self.patch = patch
        self.native = self.helper("venv")
        self.failure: str | None = "creating namespaces failed: Permission denied"
        self.facts(RESTRICTED)
        self.be(0)
        patch.setattr(doctor_fix, "HELPER", self.native)
        patch.setattr(doctor_fix, "PROFILE", self.profile)
        patch.setattr(doctor_fix, "helper_failure", lambda: self.failure)
        patch.setattr(linux_checks, "landlock_abi", lambda: 7)
        patch.setattr(doctor_fix, "owner_of", lambda _path: 0)

    def facts(self, switches: dict[str, str], *, apparmor: bool = True, container: bool = False) -> None:
        found = HostFacts(switches, apparmor, container, container, "landlock")
        self.patch.setattr(doctor_fix, "read_facts", lambda: found)

    def be(self, user: int) -> None:
        self.patch.setattr(os, "geteuid", lambda: user)


@pytest.fixture
def ubuntu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ubuntu:
    return Ubuntu(tmp_path, monkeypatch)


def shell_syntax(text: str) -> str:
    return subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False).stderr


def test_what_is_printed_can_be_pasted(
    ubuntu: Ubuntu, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script is run, with `sudo` that does without root, and makes what --apply makes."""
    ubuntu.be(1000)
    assert doctor.main(["--fix"]) == 1
    text = capsys.readouterr().out
    sudo = ubuntu.bin / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n')
    sudo.chmod(0o755)
    environment = {"PATH": f"{ubuntu.bin}:/usr/bin:/bin"}
    subprocess.run(["sh", "-e"], input=text, text=True, check=True, env=environment)
    pasted = ubuntu.file.read_text()
    assert ubuntu.calls() == ["-r"]
    ubuntu.file.unlink()
    ubuntu.be(0)
    assert doctor.main(["--fix", "--apply"]) == 0
    assert ubuntu.file.read_text() == pasted == apparmor.profile_text([ubuntu.native])
    assert "doctor --fix --apply" in text


def test_root_applies_and_removes(ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert doctor.main(["--fix", "--apply"]) == 0
        told = capsys.readouterr()
        assert f"{ubuntu.native} may make user namespaces.\nNow run `netsandbox doctor`, not as root.\n" in told.out
        assert told.err == ""
    assert doctor_fix.removal_command() is not None
    ubuntu.failure = None
    assert doctor.main(["--fix"]) == 0
    assert capsys.readouterr().out == f"{doctor_fix.NOTHING}\n"
    other = ubuntu.helper("other")
    ubuntu.profile.install(other)
    assert doctor.main(["--fix", "--remove"]) == 0
    assert f"which still names {other}." in capsys.readouterr().out
    assert doctor.main(["--fix", "--remove"]) == 0
    assert "Nothing to remove" in capsys.readouterr().out
    ubuntu.profile.remove(other)
    assert doctor.main(["--fix", "--apply"]) == doctor.main(["--fix", "--remove"]) == 0
    assert capsys.readouterr().out.endswith("is removed and unloaded.\n")
    assert not ubuntu.file.exists()
    assert doctor_fix.removal_command() is None


def test_root_is_told_although_root_itself_is_not_restricted(
    ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str]
) -> None:
    ubuntu.failure = None
    assert doctor.main(["--fix"]) == 1
    assert "profile netsandbox" in capsys.readouterr().out


def test_an_ordinary_user_gets_the_command_for_root(ubuntu: Ubuntu) -> None:
    ubuntu.be(1000)
    for option, what in (("--apply", "install"), ("--remove", "remove")):
        with pytest.raises(
            HostError, match=f"only root can {what} the profile; run `sudo .*netsandbox doctor --fix {option}`"
        ):
            doctor.main(["--fix", option])
    assert not ubuntu.file.exists()


def test_a_helper_of_a_user_is_installed_with_a_warning(
    ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_fix, "owner_of", lambda _path: 1000)
    assert doctor.main(["--fix"]) == 1
    assert "# every program that runs as user 1000 can replace" in capsys.readouterr().out
    assert doctor.main(["--fix", "--apply"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("netsandbox: every program that runs as user 1000 can replace")
    assert told.endswith("and apply the fix there\n")


def test_a_helper_of_everybody_is_refused(ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str]) -> None:
    os.chmod(ubuntu.native, 0o777)
    assert doctor.main(["--fix"]) == 1
    printed = capsys.readouterr().out
    assert "can be written by everybody" in printed
    assert "sudo" not in printed
    with pytest.raises(HostError, match=r"can be written by everybody.*install netsandbox as root"):
        doctor.main(["--fix", "--apply"])


def test_a_machine_that_cannot_load_profiles_is_told_so(ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str]) -> None:
    ubuntu.parser.unlink()
    assert doctor.main(["--fix"]) == 1
    assert "# apparmor_parser is missing; as root run `apt-get install apparmor`\nsudo tee" in capsys.readouterr().out
    with pytest.raises(HostError, match="apt-get install apparmor"):
        doctor.main(["--fix", "--apply"])


def test_a_missing_helper_comes_first(ubuntu: Ubuntu) -> None:
    ubuntu.profile.install(ubuntu.native)
    os.unlink(ubuntu.native)
    for arguments in (["--fix"], ["--fix", "--apply"]):
        with pytest.raises(HostError, match="the native helper is missing; reinstall"):
            doctor.main(arguments)
    assert doctor.main(["--fix", "--remove"]) == 0
    assert not ubuntu.file.exists()


@pytest.mark.parametrize(
    ("switches", "apparmor", "why"),
    [({}, False, "is not enabled"), ({}, True, "does not restrict"), (RESTRICTED, False, "is not enabled")],
)
def test_where_no_profile_is_needed_none_is_installed(
    ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str], switches: dict[str, str], apparmor: bool, why: str
) -> None:
    ubuntu.facts(switches, apparmor=apparmor)
    assert doctor.main(["--fix", "--apply"]) == 0
    assert f"Nothing to install: AppArmor {why}" in capsys.readouterr().out
    assert ubuntu.calls() == []


def test_in_a_container_the_host_is_named(ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str]) -> None:
    ubuntu.facts(RESTRICTED, container=True)
    assert doctor.main(["--fix"]) == 1
    printed = capsys.readouterr().out
    assert "docker run --security-opt seccomp=unconfined" in printed
    assert "profile netsandbox" not in printed
    with pytest.raises(HostError, match="belongs to the machine below this container; run"):
        doctor.main(["--fix", "--apply"])


@pytest.mark.parametrize(
    ("failing", "word"),
    [
        ("user_namespace", "sudo sysctl -w user.max_user_namespaces=15000"),
        ("private_proc", "systempaths=unconfined"),
        ("transparent_capture", "sudo modprobe nft_tproxy"),
        (None, "# something else failed; do this"),
    ],
)
def test_other_causes_have_their_commands(
    ubuntu: Ubuntu,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    failing: str | None,
    word: str,
) -> None:
    ubuntu.facts({"user.max_user_namespaces": "0"} if failing == "user_namespace" else {}, apparmor=False)
    ubuntu.failure = "something else failed; do this"
    for name in ("user_namespace", "private_proc", "transparent_capture"):
        monkeypatch.setattr(linux_checks, name, lambda name=name: int(name == failing))
    assert doctor.main(["--fix"]) == 1
    printed = capsys.readouterr().out
    assert word in printed
    assert shell_syntax(printed) == ""


def test_the_other_backend_is_mentioned_if_it_lacks_something(
    ubuntu: Ubuntu, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux_checks, "landlock_abi", lambda: 0)
    assert doctor.main(["--fix"]) == 1
    printed = capsys.readouterr().out
    assert "# Landlock is not there:" in printed
    assert shell_syntax(printed) == ""


def test_a_file_of_somebody_else_is_no_profile_of_ours(ubuntu: Ubuntu) -> None:
    ubuntu.file.write_text("profile mine {}\n")
    assert doctor_fix.removal_command() is None
    with pytest.raises(HostError, match="move it away"):
        doctor.main(["--fix", "--apply"])


def test_the_profile_is_where_apparmor_looks_for_it() -> None:
    assert ProfileFile().path == "/etc/apparmor.d/netsandbox"
