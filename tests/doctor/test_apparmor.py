"""The profile names the helper and nothing else, and a helper that others can replace gets none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from netsandbox.doctor import apparmor
from netsandbox.doctor.apparmor import named_helpers, owner_of, path_objection, profile_text, writers_objection

PLAIN = "/usr/lib/python3/dist-packages/netsandbox/backends/namespaces/native/netsandbox-init"
PIPX = "/home/me/.local/share/pipx/venvs/netsandbox/lib/python3.12/site-packages/netsandbox-init"
SPACED = "/home/me/my venvs/a@b+c~d=e%f:g/netsandbox-init"
STRANGER = 12345


def test_the_profile_of_one_helper_is_as_ubuntu_writes_its_own() -> None:
    lines = profile_text([PLAIN]).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "abi <abi/4.0>,",
        "include <tunables/global>",
        "",
        f"profile netsandbox {PLAIN} flags=(unconfined) {{",
        "  userns,",
        "",
        "  include if exists <local/netsandbox>",
        "}",
    ]


def test_several_helpers_share_the_profile() -> None:
    text = profile_text([PLAIN, SPACED])
    assert f'profile netsandbox "/{{{PLAIN[1:]},{SPACED[1:]}}}" flags=(unconfined) {{\n' in text
    assert named_helpers(text) == [PLAIN, SPACED]


def test_a_file_of_somebody_else_is_known() -> None:
    assert named_helpers("abi <abi/4.0>,\n# helper: /x\n") is None


@pytest.mark.parametrize("path", [PLAIN, PIPX, SPACED, "/home/josé/netsandbox-init"])
def test_a_path_without_patterns_is_taken_as_it_is(path: str) -> None:
    assert path_objection(path) is None


@pytest.mark.parametrize("char", [*'*?[]{}^"\\,#$!<>()\n\t\0', "\udc80"])
def test_a_path_that_could_be_a_pattern_is_refused(char: str) -> None:
    objection = path_objection(f"/opt/a{char}b/netsandbox-init")
    assert objection is not None
    assert objection.endswith("install netsandbox in a folder whose path has letters and digits only")
    assert objection.isprintable()


def test_a_path_that_is_not_absolute_is_refused() -> None:
    assert path_objection("netsandbox-init") is not None


# The real parser


def parse_with(parser: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "profile"
    file.write_text(text)
    return subprocess.run(
        [parser, "-Q", "-K", "--skip-kernel-load", "--names", file], capture_output=True, text=True, check=False
    )


@pytest.fixture
def parser() -> str:
    found = shutil.which("apparmor_parser", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip("apparmor_parser is not installed (package apparmor)")
    return found


@pytest.fixture
def knows_namespaces(parser: str) -> bool:
    """AppArmor 4.0; an older one is given the profile without the two lines that it cannot know."""
    told = subprocess.run([parser, "--version"], capture_output=True, text=True, check=True).stdout
    return int(told.split()[3].partition(".")[0]) >= 4


@pytest.mark.parametrize("helpers", [[PLAIN], [PIPX], [SPACED], [PLAIN, SPACED], ["/home/josé/netsandbox-init"]])
def test_the_real_parser_understands_it(
    parser: str, knows_namespaces: bool, helpers: list[str], tmp_path: Path
) -> None:
    text = profile_text(helpers)
    if not knows_namespaces:
        text = text.replace("abi <abi/4.0>,\n", "").replace("  userns,\n", "")
    done = parse_with(parser, text, tmp_path)
    assert (done.returncode, done.stdout) == (0, "netsandbox\n"), done.stderr


def test_the_real_parser_refuses_something_else(parser: str, tmp_path: Path) -> None:
    """The twin of the test above: the parser reads what it is given."""
    assert parse_with(parser, profile_text([PLAIN]).replace("profile", "prifole"), tmp_path).returncode != 0


# Who can replace the helper


@pytest.fixture
def helper(tmp_path: Path) -> Path:
    """Of this account, in folders that it alone can write; those above may be anybody's."""
    folder = tmp_path / "venv" / "native"
    folder.mkdir(parents=True)
    file = folder / "netsandbox-init"
    file.write_bytes(b"")
    for path in (file, folder, folder.parent):
        path.chmod(0o755)
    return file


def test_a_helper_of_one_account_passes(helper: Path) -> None:
    assert writers_objection(str(helper)) is None
    assert owner_of(str(helper)) == os.geteuid()
    assert owner_of("/etc/passwd") == 0


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_everybody_can_write_is_refused(helper: Path, depth: int) -> None:
    place = [helper, *helper.parents][depth]
    place.chmod(0o757)
    assert f"{str(place)!r} can be written by everybody" in (writers_objection(str(helper)) or "")


def test_in_a_sticky_folder_only_owners_count(helper: Path) -> None:
    helper.parent.chmod(0o1777)
    assert writers_objection(str(helper)) is None


def test_a_group_may_write_only_if_it_is_the_owners_own(helper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper.chmod(0o775)
    monkeypatch.setattr(apparmor, "ROOT", -1)  # no account that runs this test is root then
    group, user = apparmor.grp.struct_group, apparmor.pwd.getpwuid(os.geteuid()).pw_name
    for name, members, passes in ((user, [], True), (user, [user], True), (user, ["eve"], False), ("staff", [], False)):
        entry = group((name, "x", helper.stat().st_gid, members))
        monkeypatch.setattr(apparmor.grp, "getgrgid", lambda _group, entry=entry: entry)
        objection = apparmor._is_private(str(helper), helper.stat().st_gid, os.geteuid())
        assert objection is passes
    monkeypatch.setattr(apparmor.grp, "getgrgid", {}.__getitem__)
    assert not apparmor._is_private(str(helper), helper.stat().st_gid, os.geteuid())
    assert "can be written by a group" in (writers_objection(str(helper)) or "")


def test_a_list_of_rights_is_not_trusted(helper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper.chmod(0o775)
    monkeypatch.setattr(os, "listxattr", lambda *_path, **_options: [apparmor.ACCESS_LISTS])
    assert "can be written by a group" in (writers_objection(str(helper)) or "")


def test_a_disk_that_does_not_show_its_lists_is_not_trusted(helper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_path: object, **_options: object) -> list[str]:
        raise OSError(95, "Operation not supported")

    helper.chmod(0o775)
    monkeypatch.setattr(os, "listxattr", unknown)
    assert "can be written by a group" in (writers_objection(str(helper)) or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to two accounts")
def test_two_accounts_are_one_too_many(helper: Path) -> None:
    os.chown(helper, STRANGER, STRANGER)
    assert writers_objection(str(helper)) is None
    assert owner_of(str(helper)) == STRANGER
    os.chown(helper.parent, STRANGER + 1, STRANGER)
    objection = writers_objection(str(helper)) or ""
    assert "belongs to a second account" in objection
    assert objection.endswith("install netsandbox as root, for instance in /opt/netsandbox, or take that right away")
