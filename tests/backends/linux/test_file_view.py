"""The file rules as paths of a real disk."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from netsandbox.backends.linux import file_view as module
from netsandbox.backends.linux import mount_names
from netsandbox.backends.linux.file_view import disks, file_view, is_disk
from netsandbox.errors import HostError, UsageError
from netsandbox.policy import home_paths
from netsandbox.policy.file_rules import OPEN, READABLE, FileRules, PathRule


def rules(*paths: Path | str, origin: str = "rules.toml:1") -> tuple[PathRule, ...]:
    return tuple(PathRule(str(path), origin) for path in paths)


def opened(**named: tuple[PathRule, ...]) -> FileRules:
    return FileRules(mode=OPEN, **named)  # type: ignore[arg-type]


def confined(**named: tuple[PathRule, ...]) -> FileRules:
    return FileRules(mode=READABLE, **named)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a folder and a file of secrets, and a project in it where we stand."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".netrc").write_text("machine")
    (folder / "project").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "KUBECONFIG", "HISTFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(home_paths, "LINUX_SYSTEM", ())
    monkeypatch.setattr(module, "SYSTEM_SECRETS", (str(tmp_path / "shadow"),))
    monkeypatch.chdir(folder / "project")
    return folder


def test_secrets_that_are_there_are_hidden_and_writing_stays_open(home: Path) -> None:
    found = file_view(opened(), {})
    assert found.folders == (str(home / ".ssh"),)
    assert found.files == (str(home / ".netrc"),)
    assert found.writable is None


def test_a_secret_of_the_system_is_hidden_from_those_who_could_read_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "shadow").write_text("root:*:")
    assert str(tmp_path / "shadow") in file_view(confined(), {}).files
    assert str(tmp_path / "shadow") not in file_view(confined(allow_read=rules(tmp_path / "shadow")), {}).files


def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are asked about one by one, as they come."""
    looked: list[str] = []
    true_stat = os.stat

    def counted(path: str, **options: bool) -> os.stat_result:  # pytest calls it too, to show a failure
        looked.append(path)
        return true_stat(path, **options)

    monkeypatch.setattr(module.os, "stat", counted)
    monkeypatch.setattr(module.os.path, "samefile", lambda *paths: False)
    return looked


def test_only_a_place_that_its_folder_lists_costs_a_look(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch pays: two lists, a stat for each place that is in them, and one more as what it is hidden."""
    (home / ".config" / "gh").mkdir(parents=True)
    looked = looks(monkeypatch)
    file_view(opened(), {})
    there = [str(home / name) for name in (".ssh", ".netrc", ".config/gh")]
    assert sorted(looked) == sorted(there * 2)


def test_every_place_of_a_home_that_cannot_be_listed_is_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    looked = looks(monkeypatch)
    monkeypatch.setattr(module.os, "listdir", refusing)
    assert file_view(opened(), {}).folders == (str(home / ".ssh"),)
    assert {str(home / name) for name in home_paths.OF_LINUX} <= set(looked)


@pytest.mark.parametrize("place", home_paths.OF_LINUX)
def test_every_place_is_hidden_when_it_is_there(home: Path, place: str) -> None:
    path = home / place
    if not path.exists():
        path.mkdir(parents=True)
    found = file_view(opened(), {})
    assert str(path) in (*found.folders, *found.files)


@pytest.mark.parametrize("spelled", [".SSH", ".s\u200dsh", ".\u017fs\u00adH"])
def test_a_place_is_found_where_capitals_do_not_matter(
    home: Path, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    """Such a disk lists a name as it was made and opens it by any other."""
    true_listdir = os.listdir
    monkeypatch.setattr(
        module.os, "listdir", lambda path: [spelled if name == ".ssh" else name for name in true_listdir(path)]
    )
    assert file_view(opened(), {}).folders == (str(home / ".ssh"),)


def test_an_allow_shows_a_secret_and_a_deny_hides_it_all_the_same(home: Path) -> None:
    shown = file_view(opened(allow_read=rules(home / ".ssh")), {})
    assert (shown.folders, shown.files) == ((), (str(home / ".netrc"),))
    both = file_view(opened(allow_read=rules(home), deny_read=rules(home / ".ssh")), {})
    assert (both.folders, both.files) == ((str(home / ".ssh"),), ())


def test_a_secret_that_is_a_link_is_hidden_where_it_leads(home: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (home / ".gnupg").symlink_to(tmp_path / "keys")
    assert str(tmp_path / "keys") in file_view(opened(), {}).folders
    for path in (home / ".gnupg", tmp_path / "keys", home):
        assert str(tmp_path / "keys") not in file_view(opened(allow_read=rules(path)), {}).folders


@pytest.mark.attack(146)
def test_146_what_an_allow_leads_to_by_a_link_stays_hidden(home: Path) -> None:
    """A command of an earlier session may have put the link where the user allows a folder of the project."""
    (home / "project" / "fixtures").symlink_to(home)
    assert file_view(opened(allow_read=rules(home / "project" / "fixtures")), {}).folders == (str(home / ".ssh"),)
    above = f"{home}/project/../.ssh"
    assert file_view(opened(allow_read=rules(above)), {}).folders == ()


@pytest.mark.attack(149)
def test_149_links_that_lead_to_what_is_hidden_are_told(home: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (home / "dotfiles").symlink_to(tmp_path)
    (home / ".gnupg").symlink_to("dotfiles/keys")
    (home / "project" / "private").symlink_to(tmp_path / "keys")
    found = file_view(opened(deny_read=rules(home / "project" / "private")), {}).links
    assert set(found) == {str(home / name) for name in (".gnupg", "dotfiles", "project/private")}


@pytest.mark.attack(146)
@pytest.mark.parametrize("said", ["rule", "variable"])
def test_146_a_link_in_the_project_leads_writing_nowhere_else(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(module, "TEMPORARY", ())
    build = home / "project" / "build"
    build.symlink_to(home)
    environment = {b"TMPDIR": os.fsencode(build)} if said == "variable" else {}
    wanted = confined(allow_write=rules(build) if said == "rule" else ())
    with pytest.raises(UsageError, match="which a command could have made"):
        file_view(wanted, environment)
    build.unlink()
    build.mkdir()
    assert file_view(wanted, environment).writable is not None
    assert str(home) in (
        file_view(confined(allow_write=rules(home)), {}).writable or ()
    )  # written out: the user's word


def test_a_secret_is_hidden_where_a_variable_moved_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster").write_text("token")
    (tmp_path / "config" / "gh").mkdir(parents=True)
    monkeypatch.setenv("KUBECONFIG", f"/nowhere:{tmp_path}/cluster")
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{tmp_path}/config")
    found = file_view(opened(), {})
    assert str(tmp_path / "cluster") in found.files
    assert str(tmp_path / "config" / "gh") in found.folders


def test_a_part_of_a_secret_cannot_be_shown_alone(home: Path) -> None:
    (home / ".ssh" / "config").write_text("")
    with pytest.raises(UsageError, match=r"^rules\.toml:1: .* hidden as a whole"):
        file_view(opened(allow_read=rules(home / ".ssh" / "config")), {})


def test_nobody_works_or_writes_in_what_is_hidden(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".ssh" / "keys").mkdir()
    with pytest.raises(UsageError, match=r"^rules\.toml:1: .* which a session does not see"):
        file_view(confined(allow_write=rules(home / ".ssh" / "keys"), deny_read=rules(home / ".ssh")), {})
    monkeypatch.chdir(home / ".ssh")
    with pytest.raises(UsageError, match="the working folder"):
        file_view(opened(), {})
    assert file_view(opened(allow_read=rules(home / ".ssh")), {}).folders == ()


def test_writing_is_confined_where_the_mode_says_so(home: Path, tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "temporary").mkdir()
    environment = {b"TMPDIR": os.fsencode(tmp_path / "temporary")}
    said = confined(allow_write=rules(tmp_path / "extra", tmp_path / "extra" / "..", origin="x"))
    narrow = file_view(confined(allow_write=()), {}).writable
    assert file_view(opened(), {}).writable is None, "the twin"
    assert narrow is not None
    assert "/dev" in narrow
    assert "/proc" not in narrow
    assert any(os.path.commonpath([home, path]) == path for path in narrow)
    wide = file_view(said, environment).writable
    assert wide is not None
    for wanted in ("extra", "temporary"):
        assert any(os.path.commonpath([tmp_path / wanted, path]) == path for path in wide)


def test_a_folder_to_write_is_made_where_it_is_missing(home: Path) -> None:
    """Only if it was written as one; a file in its way is left as it is."""
    (home / "file").touch()
    said = tuple(PathRule(str(home / name), "x", folder=True) for name in ("cache/npm", "file", "file/below"))
    found = file_view(confined(allow_write=(*said, PathRule(str(home / "plain"), "x"))), {})
    assert (home / "cache" / "npm").is_dir()
    assert not (home / "plain").exists()
    assert not {str(home / "file" / "below"), str(home / "plain")} & set(found.writable or ())


def test_a_project_that_hides_thousands_of_paths_keeps_nobody_waiting(home: Path) -> None:
    """Its file may say so without being trusted."""
    many = rules(*(f"/etc/{number}" for number in range(513)))
    with pytest.raises(UsageError, match="more than 512 paths to hide"):
        file_view(opened(deny_read=many), {})
    assert file_view(opened(deny_read=many[1:]), {})


def test_what_is_missing_changes_nothing(home: Path) -> None:
    missing = rules(home / "absent")
    found = file_view(confined(allow_read=missing, allow_write=missing, deny_read=missing), {})
    assert str(home / "absent") not in (*found.folders, *found.files, *(found.writable or ()))


def test_a_relative_path_of_a_program_is_an_error(home: Path) -> None:
    with pytest.raises(UsageError, match="not absolute"):
        file_view(opened(deny_read=rules("project")), {})


def test_a_place_that_cannot_be_looked_at_stops_the_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-1: hidden or an error."""
    true_stat = os.stat

    def failing(path: str, **options: bool) -> os.stat_result:
        if path == str(home / ".ssh"):
            raise OSError(errno.EIO, "Input/output error")
        return true_stat(path, **options)

    monkeypatch.setattr(module.os, "stat", failing)
    with pytest.raises(HostError, match="could not be hidden"):
        file_view(opened(), {})


@pytest.mark.attack(149)
def test_149_links_to_nowhere_hide_nothing_and_are_held(home: Path, tmp_path: Path) -> None:
    """A command could leave them where no secret is yet; every later start would fail."""
    (home / ".pypirc").symlink_to("x" * 300)
    (home / ".aws").symlink_to(home / "other")
    (home / "other").symlink_to(".aws")
    denied = tmp_path / "denied"
    denied.symlink_to(denied)
    (rule,) = rules(denied)
    found = file_view(opened(deny_read=(rule,)), {})
    assert (found.folders, found.files) == ((str(home / ".ssh"),), (str(home / ".netrc"),))
    assert set(found.links) == {str(denied), *(str(home / name) for name in (".aws", "other", ".pypirc"))}


@pytest.mark.parametrize("listed", [False, True])
def test_a_folder_that_keeps_us_out_counts_if_the_command_could_open_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, listed: bool
) -> None:
    """Whether it may still be listed, with a secret in it, or not even that."""
    true_stat, true_listdir = os.stat, os.listdir
    closed = str(home / ".config")

    def refusing(path: str, **options: bool) -> os.stat_result:
        if str(path).startswith(closed + "/"):
            raise PermissionError(13, "Permission denied")
        return true_stat(path, **options)

    def listing(path: str) -> list[str]:
        if path.startswith(closed) and not listed:
            raise PermissionError(13, "Permission denied")
        return true_listdir(path)

    os.makedirs(f"{closed}/gh" if listed else closed)
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "stat", refusing)
        patch.setattr(module.os, "listdir", listing)
        with pytest.raises(HostError, match="Permission denied; it could not be hidden"):
            file_view(opened(), {})
        patch.setattr(module.os, "geteuid", lambda: true_stat(closed).st_uid + 1)
        assert file_view(opened(), {}).files == (str(home / ".netrc"),)


def test_a_table_of_mounts_that_cannot_be_read_stops_the_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount_names, "MOUNTS", str(home / "absent"))
    with pytest.raises(HostError, match="second name"):
        file_view(opened(), {})


def test_a_second_name_of_a_secret_is_hidden_too(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a table that says so; the real thing is in tests/integration."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".netrc").hardlink_to(home / ".netrc")
    table = tmp_path / "mounts"
    table.write_text(f"1 0 8:1 / / rw - x x x\n2 1 8:1 {home} {tmp_path}/other rw - x x x\n")
    monkeypatch.setattr(mount_names, "MOUNTS", str(table))
    found = file_view(opened(), {})
    assert set(found.files) == {str(home / ".netrc"), str(tmp_path / "other" / ".netrc")}
    assert found.folders == (str(home / ".ssh"),)  # the other name leads to nothing


def test_block_devices_and_their_raw_twins_are_disks_and_terminals_are_not() -> None:
    assert is_disk(stat.S_IFBLK | 0o660, os.makedev(8, 0))
    assert is_disk(stat.S_IFCHR | 0o660, os.makedev(21, 0))
    assert not is_disk(stat.S_IFCHR | 0o666, os.makedev(1, 3))
    assert not is_disk(stat.S_IFREG | 0o666, 0)


def test_folders_are_looked_into_and_links_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mapper").mkdir()
    for name in ("mapper/root", "null"):
        (tmp_path / name).touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    monkeypatch.setattr("netsandbox.backends.linux.file_view.is_disk", lambda mode, device: stat.S_ISREG(mode))
    assert list(disks(str(tmp_path))) == [str(tmp_path / "mapper" / "root"), str(tmp_path / "null")]


def test_a_folder_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    assert list(disks(str(tmp_path / "absent"))) == []


def test_only_roots_sessions_look_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.backends.linux.file_view.disks", lambda: iter(["/dev/sda"]))
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    assert "/dev/sda" in module._closed_devices(())
    assert "/dev/sda" not in module._closed_devices(("/dev/sda",))
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    assert "/dev/sda" not in module._closed_devices(())


def test_devices_that_control_the_machine_are_closed_unless_a_rule_opens_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kmsg", "kvm", "vcs1", "null", "dri"):
        (tmp_path / name).touch()
    monkeypatch.setattr(module, "DEVICES", str(tmp_path))
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    closed = {Path(path).name for path in module._closed_devices((f"{tmp_path}/kvm",))}
    assert closed >= {"kmsg", "vcs1", "tun"}
    assert closed.isdisjoint(("kvm", "null", "dri"))


def test_the_folder_of_an_agent_is_read_and_not_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no copies in these modes; only what goes back to the host is written."""
    monkeypatch.setattr(module, "TEMPORARY", ())
    (home / ".claude/projects").mkdir(parents=True)
    copies, written = rules(home / ".ssh", home / ".claude"), rules(home / ".claude/projects")
    found = file_view(confined(copies=copies, allow_write=written), {})
    assert found.writable is not None
    assert str(home / ".claude/projects") in found.writable
    assert not {str(home / ".claude"), str(home / ".ssh")} & set(found.writable)
    assert str(home / ".ssh") not in found.folders, "it is shown, whatever it holds"
    cached = file_view(confined(caches=copies[1:]), {}).writable
    assert cached is not None
    assert str(home / ".claude") in cached, "the twin: a cache is written"
