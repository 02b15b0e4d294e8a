"""The profile is written, loaded and removed, and nothing of others is touched. Only the loading is a stand-in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.doctor.apparmor import named_helpers, profile_text
from netsandbox.errors import HostError
from tests.rig.apparmor import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def left(machine: Machine) -> set[str]:
    return {path.name for path in machine.folder.iterdir()} - {"abi"}


def test_a_profile_is_checked_then_loaded(machine: Machine) -> None:
    helper = machine.helper()
    machine.profile.install(helper)
    assert machine.file.read_text() == profile_text([helper])
    assert machine.file.stat().st_mode & 0o777 == 0o644
    assert machine.calls() == ["-Q", "-r"]
    assert (machine.bin / "loaded-r").read_text() == profile_text([helper])
    assert left(machine) == {"netsandbox"}


def test_doing_it_again_changes_nothing(machine: Machine) -> None:
    helper = machine.helper()
    for _ in range(2):
        machine.profile.install(helper)
        assert machine.file.read_text() == profile_text([helper])


def test_what_an_earlier_attempt_left_is_replaced(machine: Machine) -> None:
    (machine.folder / ".netsandbox.new").symlink_to("/etc/passwd")
    machine.profile.install(machine.helper())
    assert left(machine) == {"netsandbox"}


def test_installations_of_several_users_share_it(machine: Machine) -> None:
    """One that is gone, or that others can write by now, is dropped."""
    one, two, gone, open_to_all = (machine.helper(name) for name in ("one", "two", "gone", "open"))
    for helper in (gone, open_to_all, one, two):
        machine.profile.install(helper)
    assert machine.profile.helpers() == sorted([one, two, gone, open_to_all])
    os.unlink(gone)
    os.chmod(open_to_all, 0o757)
    machine.profile.install(one)
    assert machine.profile.helpers() == [one, two]
    machine.calls()
    assert machine.profile.remove(one) == [two]
    assert machine.file.read_text() == profile_text([two])
    assert machine.calls() == ["-Q", "-r"]
    assert machine.profile.remove(one) is None
    assert machine.profile.remove(two) == []
    assert machine.calls() == ["-R"]
    assert named_helpers((machine.bin / "loaded-R").read_text()) == [two]
    assert left(machine) == set()
    assert machine.profile.remove(two) is None


def test_a_part_is_not_removed_without_the_parser(machine: Machine) -> None:
    """The others would lose their right at the next start."""
    one, two = machine.helper("one"), machine.helper("two")
    machine.profile.install(one)
    machine.profile.install(two)
    machine.parser.unlink()
    with pytest.raises(HostError, match="apt-get install apparmor"):
        machine.profile.remove(one)
    assert machine.profile.helpers() == [one, two]


def test_removal_works_without_the_parser_and_without_a_loaded_profile(machine: Machine) -> None:
    helper = machine.helper()
    for prepare in (lambda: machine.refuse("-R"), machine.parser.unlink):
        machine.profile.install(helper)
        prepare()
        assert machine.profile.remove(helper) == []
        assert left(machine) == set()


@pytest.mark.parametrize(("step", "what"), [("-Q", "is not understood"), ("-r", "cannot be loaded")])
def test_what_apparmor_refuses_leaves_all_as_it_was(machine: Machine, step: str, what: str) -> None:
    one, two = machine.helper("one"), machine.helper("two")
    machine.refuse(step)
    with pytest.raises(HostError, match=f"{what}.*AppArmor parser error: no; nothing was changed"):
        machine.profile.install(one)
    assert left(machine) == set()
    machine.refuse("")
    machine.profile.install(one)
    machine.refuse(step)
    with pytest.raises(HostError, match=what):
        machine.profile.install(two)
    assert machine.profile.helpers() == [one]
    assert left(machine) == {"netsandbox"}


def test_a_file_of_somebody_else_stays(machine: Machine) -> None:
    machine.file.write_text("profile mine {}\n")
    for act in (machine.profile.install, machine.profile.remove):
        with pytest.raises(HostError, match="was not written by netsandbox; move it away"):
            act(machine.helper(act.__name__))
    assert machine.file.read_text() == "profile mine {}\n"
    assert machine.calls() == []


def test_a_helper_that_others_can_replace_gets_no_profile(machine: Machine) -> None:
    helper = machine.helper()
    os.chmod(helper, 0o757)
    with pytest.raises(HostError, match="install netsandbox as root"):
        machine.profile.install(helper)
    with pytest.raises(HostError, match="letters and digits"):
        machine.profile.install(machine.helper("a*"))
    assert (left(machine), machine.calls()) == (set(), [])


def test_what_is_missing_is_named(machine: Machine) -> None:
    helper = machine.helper()
    (machine.folder / "abi" / "4.0").unlink()
    with pytest.raises(HostError, match=r"older than 4\.0.*install a newer package"):
        machine.profile.install(helper)
    machine.parser.unlink()
    with pytest.raises(HostError, match="as root run `apt-get install apparmor`"):
        machine.profile.install(helper)
    assert left(machine) == set()


def test_a_parser_that_cannot_run_is_named(machine: Machine) -> None:
    machine.parser.write_text("#!/nowhere/sh\n")
    with pytest.raises(HostError, match=r"does not work.*reinstall the package apparmor"):
        machine.profile.install(machine.helper())
    assert left(machine) == set()
