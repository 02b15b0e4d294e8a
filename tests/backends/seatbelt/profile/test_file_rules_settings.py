"""What the settings of a session change in its profile: modes, the project, and the bounds of what can be kept."""

from __future__ import annotations

import time
from typing import Any

import pytest

from netsandbox.backends.seatbelt.profile.profile_settings import OwnPaths
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.errors import UsageError
from tests.backends.seatbelt.profile.test_file_rules import (
    APP,
    HOME,
    REACHING,
    READING,
    STATE,
    WRITING,
    allows,
    denies,
    profile,
    settings,
)
from tests.seatbelt_model.evaluator import denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import Request, lookup


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"working": "/"}, "holds the whole home directory"),
        ({"working": HOME}, "holds the whole home directory"),
        ({"write": ("/Users",)}, "holds the whole home directory"),
        ({"working": f"{HOME}/.ssh"}, "stays closed"),
        ({"working": f"{STATE}/x"}, "stays closed"),
        ({"working": f"{APP}/private/x"}, "stays closed"),
        ({"read": (f"{HOME}/.aws/config",)}, "stays closed"),
        ({"working": "src/app"}, "is not absolute; write it from / on"),
        ({"working": "~/app"}, "is not absolute"),
        ({"temporary": (HOME,)}, "the temporary folder .* holds the whole home directory"),
        ({"temporary": ("/",)}, "the temporary folder .* holds the whole home directory"),
        ({"working": "/tmp/app"}, "is not resolved"),
        ({"working": ""}, "empty working directory"),
        ({"home": ""}, "empty home directory"),
        ({"home": "/"}, "home directory is the whole disk"),
        ({"read": ("/a\nb",)}, "cannot stand in a Seatbelt profile"),
        ({"deny": ("/a\0b",)}, "cannot stand in a Seatbelt profile"),
        ({"protect": ("/a/../b",)}, "is not resolved"),
        ({"terminal": "/dev/disk0"}, "is not a terminal"),
        ({"own": OwnPaths(hidden=("/var/x",))}, "is not resolved"),
        ({"own": OwnPaths(port_map="/var/x")}, "is not resolved"),
    ],
)
@pytest.mark.attack(151)
def test_what_cannot_be_kept_is_an_error_and_no_profile(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        session_profile(settings(**wrong))


@pytest.mark.attack(139)
@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "a)b", "a;b", 'x"))(allow default)(deny file* (literal "', "caf\u00e9"]
)
def test_a_hostile_name_is_a_name_and_nothing_else(name: str) -> None:
    judged = profile(working=f"{HOME}/src/{name}", deny=(f"{HOME}/src/{name}/private",))
    assert len(judged.rules) == len(profile().rules)
    assert allows(judged, f"{HOME}/src/{name}/x", "file-read-data", "file-write-data")
    assert denies(judged, f"{HOME}/src/{name}/private/x", *REACHING)
    assert denies(judged, "/etc/sudoers", "file-read-data")
    assert denied_under_all(judged, lookup("com.apple.dnssd.service"))


def test_three_thousand_paths_are_a_profile_in_no_time() -> None:
    many = [f"{HOME}/data/{number}/x" for number in range(3000)]
    started = time.process_time()
    text = session_profile(settings(read=tuple(many), write=tuple(many[:1000]), deny=tuple(f"{p}/no" for p in many)))
    assert time.process_time() - started < 2
    judged = load(text)
    assert allows(judged, f"{many[2999]}/y", "file-read-data")
    assert denies(judged, f"{many[2999]}/no/y", "file-read-data")
    assert denies(judged, f"{HOME}/data/3000/x", "file-read-data")
    assert len(text) < 2 << 20


def test_three_thousand_paths_too_long_for_a_profile_are_an_error_and_not_an_endless_text() -> None:
    deep = [f"{HOME}/{number}{'/a' * 490}" for number in range(3000)]
    with pytest.raises(UsageError, match=r"too many long paths .*; name the folders above them"):
        session_profile(settings(read=tuple(deep)))


def test_a_profile_that_the_helper_would_not_take_is_an_error() -> None:
    wide = [f"{HOME}/{number:05d}{'x' * 240}" for number in range(20_000)]
    with pytest.raises(UsageError, match="longer than 12 MiB; name fewer paths"):
        session_profile(settings(write=tuple(wide)))
    assert session_profile(settings(write=tuple(wide[:3000])))


SECRET = f"{HOME}/.ssh/id"


@pytest.mark.parametrize("mode", ["readable", "open"])
def test_other_modes_open_the_whole_disk_but_secrets_devices_and_what_is_ours(mode: str) -> None:
    judged = profile(mode=mode, read=(), write=())
    for path in ("/Users/you/notes", f"{HOME}/Documents/plan", "/Volumes/disk/x", "/private/var/log/x"):
        assert allows(judged, path, *READING, "process-exec")
        assert denies(profile(read=(), write=()), path, "file-read-data", "process-exec")
    for path in (SECRET, f"{APP}/private/x", f"{STATE}/x", f"{APP}/audit.jsonl", "/System/Volumes/Data/Users/me/x"):
        assert denies(judged, path, *REACHING)
    for path in ("/dev/disk0", "/dev/bpf0"):
        assert denies(judged, path, "file-read-data", "file-write-data")
    other = Request("file-write-data", path="/dev/ttys004", attributes={"extension": None})
    assert denied_under_all(judged, other)
    assert denies(judged, "/bin/launchctl", "process-exec")
    assert denies(judged, f"{APP}/.venv/netsandbox/x.py", *WRITING)


def test_the_mode_readable_writes_no_more_than_the_mode_project() -> None:
    judged = profile(mode="readable", read=(), write=())
    assert allows(judged, f"{APP}/x", *WRITING)
    for path in ("/Users/you/x", f"{HOME}/Documents/x", f"{HOME}/.zshrc", f"{APP}/.git/config", f"{APP}/.envrc"):
        assert denies(judged, path, *WRITING)


@pytest.mark.attack(140)
def test_the_mode_open_writes_everything_else_and_moves_nothing_above_a_boundary() -> None:
    judged = profile(mode="open", working=HOME, write=(), deny_write=((HOME, "fixed"),))
    for path in (f"{HOME}/.zshrc", f"{HOME}/src/x", f"{APP}/.git/config", f"{APP}/.envrc", "/Volumes/disk/x"):
        assert allows(judged, path, *READING, *WRITING)
    for path in (HOME, f"{HOME}/.local", f"{HOME}/.local/state", APP, f"{APP}/.venv"):
        assert denies(judged, path, "file-write-unlink")
    for name in ("fixed", "FIXED", "fixed/x"):
        assert denies(judged, f"{HOME}/{name}", *WRITING)


def test_a_project_above_the_working_folder_is_written_and_protected_in_both() -> None:
    inner = f"{APP}/packages/one"
    judged = profile(working=inner, projects=(APP, f"{HOME}/repository/.git"), kept=())
    for path in (f"{APP}/x", f"{inner}/x", f"{HOME}/repository/.git/objects/x"):
        assert allows(judged, path, *READING, *WRITING)
    assert denies(judged, f"{HOME}/repository/x", "file-write-create")
    for folder in (APP, inner):
        for name in (".vscode/tasks.json", ".envrc", ".husky/pre-commit", ".HUSKY"):
            assert denies(judged, f"{folder}/{name}", *WRITING)
            assert allows(judged, f"{folder}/{name}", *READING)


def test_without_a_project_the_working_folder_can_be_entered_and_nothing_else() -> None:
    judged = profile(working=HOME, projects=(), read=(), write=())
    assert allows(judged, HOME, "file-read-metadata")
    for path in (HOME, f"{HOME}/x", f"{HOME}/src/x"):
        assert denies(judged, path, "file-read-data", *WRITING)


def test_without_a_repository_git_can_make_one() -> None:
    judged = profile(kept=())
    for name in (".git", ".git/config", ".git/config.lock", ".git/hooks/x"):
        assert allows(judged, f"{APP}/{name}", *WRITING)


@pytest.mark.attack(148)
def test_a_protected_name_is_written_once_the_user_names_it_and_only_that() -> None:
    judged = profile(
        write=(f"{APP}/.vscode", f"{APP}/.claude/settings.json", f"{APP}/.git/hooks/mine", f"{HOME}/.zshrc")
    )
    for name in (".vscode/tasks.json", ".claude/settings.json", ".git/hooks/mine", ".git/hooks/mine/x"):
        assert allows(judged, f"{APP}/{name}", "file-write-create", "file-write-data")
    assert allows(judged, f"{HOME}/.zshrc", "file-write-data")
    for name in (".idea/x", ".claude/settings.local.json", ".claude", ".git/hooks/x", ".git/hooks", ".git/HOOKS/x"):
        assert denies(judged, f"{APP}/{name}", *WRITING)
    assert denies(judged, f"{HOME}/.zshenv", *WRITING)
    wide = profile(write=(APP, f"{HOME}/src"))
    assert denies(wide, f"{APP}/.vscode/tasks.json", *WRITING)


def test_what_the_user_closes_for_writing_wins_over_every_path_to_write() -> None:
    closed = ((APP, "dist"), (f"{HOME}/out", "a/b"))
    judged = profile(deny_write=closed, write=(f"{HOME}/out", f"{APP}/dist", f"{HOME}/out/a/b"))
    for path in (
        f"{APP}/dist",
        f"{APP}/dist/x",
        f"{APP}/DIST/x",
        f"{HOME}/out/a/b",
        f"{HOME}/out/A/B/c",
        f"{HOME}/out/a",
    ):
        assert denies(judged, path, *WRITING)
        assert allows(judged, path, *READING)
    for path in (f"{APP}/dist2", f"{HOME}/out/a2", f"{HOME}/out/c/b"):
        assert allows(judged, path, *WRITING)
