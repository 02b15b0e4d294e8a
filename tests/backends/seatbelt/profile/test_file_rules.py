"""What is read, written and run, and what stays closed whatever is allowed: under every model of Seatbelt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from netsandbox.backends.seatbelt.profile import mac_paths
from netsandbox.backends.seatbelt.profile.mac_paths import RUN_BY_GIT
from netsandbox.backends.seatbelt.profile.operations import lineage
from netsandbox.backends.seatbelt.profile.profile_settings import NetworkSettings, OwnPaths, ProfileSettings
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import Request, connect_unix, file

HOME, APP = "/Users/me", "/Users/me/src/app"
STATE, MAP = f"{HOME}/.local/state/netsandbox", f"{HOME}/.local/state/netsandbox/sessions/1/ports"
SOCKET = f"{APP}/run/engine.sock"
READING = ("file-read-data", "file-read-metadata", "file-read-xattr")
WRITING = ("file-write-data", "file-write-create", "file-write-unlink", "file-write-mode", "file-write-xattr")
REACHING = (*READING, *WRITING, "file-map-executable", "process-exec", "process-exec-interpreter", "file-ioctl")
FULL: dict[str, Any] = {
    "working": APP,
    "home": HOME,
    "temporary": ("/private/var/folders/ab/cd/T", "/private/tmp"),
    "read": (f"{HOME}/data", HOME),
    "write": (f"{HOME}/out", f"{HOME}/.config", f"{HOME}/Library"),
    "deny": (f"{APP}/private",),
    "kept": tuple((APP, f".git/{name}") for name in RUN_BY_GIT),
    "executables": (f"{HOME}/tools/bin",),
    "terminal": "/dev/ttys003",
    "own": OwnPaths(
        hidden=(STATE, "/private/tmp/netsandbox-ports", f"{APP}/audit.jsonl"),
        sealed=(f"{APP}/.venv/netsandbox", f"{APP}/policy.toml"),
        port_map=MAP,
    ),
    "network": NetworkSettings(unix_sockets=(SOCKET,)),
}


def settings(**changes: Any) -> ProfileSettings:
    return ProfileSettings(**{**FULL, **changes})


def profile(**changes: Any) -> Profile:
    return load(session_profile(settings(**changes)))


def allows(judged: Profile, path: str, *operations: str) -> bool:
    return all(allowed_under_all(judged, file(operation, path)) for operation in operations)


def denies(judged: Profile, path: str, *operations: str) -> bool:
    return all(denied_under_all(judged, file(operation, path)) for operation in operations)


@pytest.fixture(scope="module")
def full() -> Profile:
    return profile()


@pytest.fixture(scope="module")
def least() -> Profile:
    return load(session_profile(ProfileSettings(APP, HOME, switches=())))


@pytest.mark.parametrize("path", [APP, f"{APP}/src/x.py", f"{HOME}/out/x", "/private/tmp/x", f"{HOME}/.npm/_cacache/x"])
def test_what_is_to_be_written_is_read_written_and_run(full: Profile, path: str) -> None:
    assert allows(full, path, *READING, "file-write-data", "file-write-create", "file-map-executable", "process-exec")


@pytest.mark.parametrize(
    "path",
    [
        "/usr/bin/git",
        "/bin/sh",
        "/opt/homebrew/bin/node",
        "/System/Library/x",
        f"{HOME}/.nvm/v/bin/node",
        f"{HOME}/.cargo/bin/cargo",
        f"{HOME}/tools/bin/x",
        "/Library/Developer/CommandLineTools/usr/bin/git",
    ],
)
def test_toolchains_are_read_and_run_and_never_written(least: Profile, full: Profile, path: str) -> None:
    assert allows(full, path, *READING, "file-map-executable", "process-exec")
    assert denies(full, path, *WRITING)
    assert denies(least, path, *WRITING)


@pytest.mark.parametrize(
    "path",
    [
        f"{HOME}/Documents/letter",
        f"{HOME}/.zshrc",
        "/Users/you/x",
        f"{HOME}/src/app-evil/x",
        f"{HOME}/src/other/x",
        "/Volumes/disk/x",
        "/private/var/log/system.log",
        "/private/etc/sudoers",
        f"{HOME}",
        "/dev/disk0",
        "/dev/bpf0",
        "/System/Volumes/Data/Users/me/.ssh/id",
    ],
)
@pytest.mark.attack(145)
def test_everything_else_is_closed(least: Profile, path: str) -> None:
    assert denies(least, path, "file-read-data", *WRITING, "file-map-executable", "process-exec")


def test_the_folders_above_can_be_looked_at_and_not_listed(least: Profile) -> None:
    for path in (HOME, f"{HOME}/src", "/Users", "/private", "/tmp", "/var"):
        assert allows(least, "/private" if path in ("/tmp", "/var") else path, "file-read-metadata")
        assert denies(least, path, "file-read-data") or path == "/"
    assert denies(least, f"{HOME}/Documents", "file-read-metadata")


@pytest.mark.parametrize("secret", mac_paths.secrets(HOME))
def test_no_secret_is_reached_though_home_is_to_be_read(full: Profile, secret: str) -> None:
    """INV-6."""
    assert denies(full, secret, *REACHING)
    assert denies(full, f"{secret}/x/y", *REACHING)


@pytest.mark.parametrize("path", [f"{HOME}/notes", f"{HOME}/.gitconfig", f"{HOME}/.sshx", f"{HOME}/.config/x"])
def test_the_twin_of_a_secret_is_read(full: Profile, path: str) -> None:
    assert allows(full, path, *READING)


def test_what_is_denied_stays_so_inside_what_is_allowed(full: Profile) -> None:
    """INV-6."""
    assert denies(full, f"{APP}/private/key", *REACHING)
    assert allows(full, f"{APP}/private2", "file-read-data", "file-write-data")


@pytest.mark.parametrize("path", [STATE, f"{STATE}/sessions/1/audit.jsonl", f"{STATE}/sessions/1/control"])
def test_our_state_is_out_of_reach(full: Profile, path: str) -> None:
    """INV-8."""
    assert denies(full, path, *REACHING)
    assert denied_under_all(full, connect_unix(path))


def test_our_log_and_locks_are_out_of_reach_in_writable_folders(full: Profile) -> None:
    """INV-8."""
    for path in ("/private/tmp/netsandbox-ports", f"{APP}/audit.jsonl"):
        assert denies(full, path, *REACHING)
        assert allows(full, f"{path}x", "file-read-data", "file-write-data")


def test_the_port_map_is_read_and_never_written(full: Profile) -> None:
    """INV-8."""
    assert allows(full, MAP, *READING)
    assert denies(full, MAP, *WRITING, "process-exec", "file-map-executable")
    assert denies(full, f"{MAP}2", *REACHING)
    assert denies(full, f"{STATE}/sessions/2/ports", *REACHING)


def test_policy_and_packages_are_read_and_never_written(full: Profile) -> None:
    """INV-8."""
    for path in (f"{APP}/policy.toml", f"{APP}/.venv/netsandbox/cli/run.py"):
        assert allows(full, path, *READING, "file-map-executable")
        assert denies(full, path, *WRITING)


@pytest.mark.attack(147)
def test_a_socket_that_was_opened_cannot_be_replaced_by_a_link_to_another(full: Profile) -> None:
    assert allowed_under_all(full, connect_unix(SOCKET))
    assert denies(full, SOCKET, *WRITING)
    assert denies(full, f"{APP}/run", "file-write-unlink")


def test_a_socket_among_secrets_can_be_opened_by_name_and_its_folder_stays_closed() -> None:
    engine = f"{HOME}/.docker/run/docker.sock"
    judged = profile(network=NetworkSettings(unix_sockets=(engine,)))
    assert allowed_under_all(judged, connect_unix(engine))
    assert denied_under_all(judged, connect_unix(f"{HOME}/.docker/run/other.sock"))
    assert denies(judged, f"{HOME}/.docker/config.json", *REACHING)


@pytest.mark.attack(148)
@pytest.mark.attack(150)
@pytest.mark.parametrize(
    "path",
    [
        f"{APP}/.git/hooks/pre-commit",
        f"{APP}/.git/config",
        f"{APP}/.vscode/tasks.json",
        f"{APP}/.netsandbox.toml",
        f"{APP}/.claude/settings.json",
        f"{APP}/.envrc",
        f"{APP}/.git",
        f"{APP}/.claude",
        f"{HOME}/.zshrc",
        f"{HOME}/Library/LaunchAgents/x.plist",
        f"{HOME}/.config/fish/config.fish",
        f"{HOME}/.gitconfig",
    ],
)
def test_what_the_host_runs_later_is_not_written(full: Profile, path: str) -> None:
    assert denies(full, path, *WRITING)


def test_git_still_commits(full: Profile) -> None:
    for path in (f"{APP}/.git/index.lock", f"{APP}/.git/objects/ab/cd", f"{APP}/.git/HEAD", f"{APP}/.gitignore"):
        assert allows(full, path, "file-read-data", *WRITING)
    for path in ("/dev/null", "/dev/dtracehelper"):
        assert allows(full, path, "file-read-data", "file-write-data")
    for path in (f"{HOME}/.CFUserTextEncoding", "/Library/Preferences/com.apple.networkd.plist", "/dev/autofs_nowait"):
        assert allows(full, path, "file-read-data")


@pytest.mark.attack(140)
@pytest.mark.attack(149)
@pytest.mark.parametrize(
    "path", [APP, f"{APP}/.git", f"{APP}/.claude", f"{APP}/.venv", f"{HOME}/out", f"{HOME}/.config", "/private/tmp"]
)
def test_no_folder_above_a_boundary_is_moved_away(full: Profile, path: str) -> None:
    assert denies(full, path, "file-write-unlink")


def test_other_folders_are_moved_freely(full: Profile) -> None:
    assert allows(full, f"{APP}/node_modules", "file-write-unlink", "file-write-create")


def test_the_sessions_terminal_is_open_and_the_users_others_are_not(full: Profile) -> None:
    assert allows(full, "/dev/ttys003", "file-read-data", "file-write-data", "file-ioctl")
    for operation in ("file-read-data", "file-write-data", "file-ioctl"):
        other = Request(operation, path="/dev/ttys004", attributes={"extension": None})
        assert denied_under_all(full, other)
        own = Request(operation, path="/dev/ttys004", attributes={"extension": "com.apple.sandbox.pty"})
        assert allowed_under_all(full, own)


@pytest.mark.attack(138)
@pytest.mark.parametrize(
    "program", ["/bin/launchctl", "/usr/bin/open", "/usr/bin/osascript", "/usr/bin/security", "/usr/bin/crontab"]
)
def test_programs_that_hand_work_to_others_are_not_run(full: Profile, program: str) -> None:
    assert denies(full, program, "process-exec")


@pytest.mark.parametrize("switch", ["tool-caches"])
def test_caches_are_written_only_with_their_switch(least: Profile, switch: str) -> None:
    with_caches = load(session_profile(ProfileSettings(APP, HOME, switches=(switch,))))
    assert allows(with_caches, f"{HOME}/.cargo/registry/x", "file-write-create")
    assert denies(least, f"{HOME}/.cargo/registry/x", "file-write-create")
    assert denies(with_caches, f"{HOME}/.cargo/bin/x", *WRITING)


def test_each_deny_names_every_operation_that_an_allowance_names(full: Profile) -> None:
    """A rule on a nearer operation has been seen to win: a deny must not be above an allowance."""
    named = {name for rule in full.rules if rule.action == "allow" for name in rule.operations}
    files = {name for name in named if lineage(name)[-2] == "file*" or name.startswith("process-exec")}
    (secret,) = {
        rule.operations
        for rule in full.rules
        if rule.action == "deny" and "process-exec*" in rule.operations and "file-read*" in rule.operations
    }
    assert files <= set(secret)


def mutants(judged: Profile) -> Iterator[tuple[str, Profile]]:
    rules = judged.rules
    for at, rule in enumerate(rules):
        if rule.action == "deny" and any(name.startswith(("file", "process-exec")) for name in rule.operations):
            yield f"drop {rule.line}", Profile((*rules[:at], *rules[at + 1 :]))
            yield f"first {rule.line}", Profile((rules[0], rule, *rules[1:at], *rules[at + 1 :]))
            yield f"allow {rule.line}", Profile((*rules[:at], replace(rule, action="allow"), *rules[at + 1 :]))


CLOSED = (
    file("file-read-data", f"{HOME}/.ssh/id"),
    file("file-write-data", f"{APP}/policy.toml"),
    file("file-write-create", f"{APP}/.git/hooks/x"),
    file("file-write-create", f"{APP}/.git"),
    file("file-write-unlink", APP),
    file("file-read-data", f"{APP}/audit.jsonl"),
    file("process-exec", "/bin/launchctl"),
)


@pytest.fixture(scope="module")
def in_one_case(full: Profile) -> Profile:
    """Without the rule that closes the same names once more, in any case."""
    again = [rule for rule in full.rules if rule.action == "deny" and "regex" in str(rule.filter)]
    assert len(again) == 1
    return Profile(tuple(rule for rule in full.rules if rule not in again))


@pytest.mark.attack(141)
@pytest.mark.parametrize(
    "name", [".VSCODE/tasks.json", ".Git", ".gIT/Hooks/x", ".git/CONFIG", ".NetSandbox.toml", ".ENVRC", ".Claude"]
)
def test_a_name_that_does_not_exist_yet_is_closed_in_any_case(full: Profile, in_one_case: Profile, name: str) -> None:
    assert denies(full, f"{APP}/{name}", *WRITING)
    assert allows(in_one_case, f"{APP}/{name}", "file-write-create")
    assert allows(full, f"{APP}/{name}", "file-read-data")
    assert allows(full, f"{APP}/sub/{name}", "file-write-create")


def test_dropping_or_moving_any_deny_of_files_opens_something(in_one_case: Profile) -> None:
    assert all(denied_under_all(in_one_case, request) for request in CLOSED)
    found = list(mutants(in_one_case))
    assert len(found) == 3 * len(CLOSED)
    for name, mutant in found:
        assert not all(denied_under_all(mutant, request) for request in CLOSED), name


def test_a_working_directory_that_holds_our_state_is_writable_and_our_state_is_not() -> None:
    """INV-8."""
    judged = profile(working=f"{HOME}/.local")
    assert allows(judged, f"{HOME}/.local/share/x", "file-read-data", "file-write-create", "file-write-unlink")
    assert denies(judged, f"{STATE}/sessions/1/audit.jsonl", *REACHING)
    assert denies(judged, f"{HOME}/.local/state", "file-write-unlink")
    assert denies(judged, f"{HOME}/.local/bin/x", *WRITING)


@pytest.mark.attack(147)
def test_no_hard_link_is_made_to_anything(full: Profile) -> None:
    for path in (f"{HOME}/.ssh/id", f"{APP}/x", MAP, f"{HOME}/.gitconfig"):
        assert denies(full, path, "file-link")
