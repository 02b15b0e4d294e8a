"""Ways out of other sandboxes, tried on the profile of a session in which about as much is open as a user can open.

Each is denied under every model, beside a twin that every model allows.
"""

from __future__ import annotations

import pytest

from tests.rig.seatbelt_promises import APP, CODE, HOME, SOCKET, STATE, TEXT, named, target
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import Request, connect_unix, file, lookup

PROFILE = load(TEXT)
TEMPORARY = "/private/var/folders/ab/cd/T"


def shut(*requests: Request) -> None:
    assert [request for request in requests if not denied_under_all(PROFILE, request)] == []


def open_(*requests: Request) -> None:
    assert [request for request in requests if not allowed_under_all(PROFILE, request)] == []


@pytest.mark.attack(138)
@pytest.mark.parametrize(
    "service",
    [
        "com.apple.cfprefsd.agent",  # defaults
        "com.apple.cfprefsd.daemon",
        "com.apple.coreservices.launchservicesd",  # open -a
        "com.apple.coreservices.appleevents",  # osascript
        "com.apple.xpc.smd",  # launchctl submit
        "com.apple.SecurityServer",  # security
        "com.apple.pasteboard.1",
        "com.apple.trustd.agent",
        "com.apple.tccd",
        "com.apple.usernoted",
        "com.apple.screencapture.interactive",
        "com.apple.diskarbitrationd",
        "com.apple.DiskManagement",
    ],
)
def test_no_service_acts_for_the_command_outside(service: str) -> None:
    shut(lookup(service))
    open_(lookup("com.apple.system.notification_center"))


@pytest.mark.attack(140)
@pytest.mark.attack(149)
def test_nothing_protected_is_moved_away_or_replaced_by_a_link() -> None:
    for path in (APP, f"{APP}/.git", f"{APP}/.git/hooks", f"{APP}/.vscode", f"{APP}/.venv", CODE, SOCKET, TEMPORARY):
        shut(file("file-write-unlink", path))
    for path in (f"{APP}/.git/hooks", f"{APP}/.vscode", CODE, f"{APP}/.git"):
        shut(file("file-write-create", path))
    open_(file("file-write-unlink", f"{APP}/build"), file("file-write-create", f"{APP}/build"))


@pytest.mark.attack(148)
@pytest.mark.parametrize(
    "name",
    [
        *(".netsandbox.toml", ".sandbox.toml", ".sandbox/profiles/x.toml", ".claude-sandbox.json"),
        *(".agent-os/sandbox-config.json", ".claude/settings.json", ".git/hooks/post-merge", ".git/config.worktree"),
        *(".vscode/tasks.json", ".cursor/mcp.json", ".idea/workspace.xml", ".devcontainer/devcontainer.json", ".envrc"),
        *(".mcp.json", ".zed/tasks.json"),
    ],
)
def test_what_the_host_would_believe_is_not_created_where_it_is_absent(name: str) -> None:
    shut(*(file(operation, f"{APP}/{name}") for operation in ("file-write-create", "file-write-data")))
    open_(file("file-write-create", f"{APP}/src/{name}"))


@pytest.mark.attack(152)
def test_special_files_are_neither_made_nor_opened() -> None:
    shut(file("file-mknod", f"{APP}/x"), file("file-mount", f"{APP}/x"), file("file-write-create", f"{STATE}/fifo"))
    for device in ("mem", "kmem", "disk0", "rdisk0", "bpf0", "auditpipe", "pf", "fsevents", "io8log", "cu.usbserial"):
        shut(*(file(operation, f"/dev/{device}") for operation in ("file-read-data", "file-write-data", "file-ioctl")))
    open_(file("file-read-data", "/dev/urandom"), file("file-write-create", f"{APP}/x"))


@pytest.mark.attack(164)
@pytest.mark.attack(167)
@pytest.mark.parametrize(
    "path",
    [
        "/private/var/run/docker.sock",
        f"{HOME}/.docker/run/docker.sock",
        f"{HOME}/.colima/default/docker.sock",
        f"{HOME}/.orbstack/run/docker.sock",
        f"{HOME}/.gnupg/S.gpg-agent",
        f"{HOME}/Library/Group Containers/2BUA8C4S2C.com.1password/t/agent.sock",
        "/private/tmp/com.apple.launchd.abc/Listeners",
        "/private/tmp/.X11-unix/X0",
        "/private/tmp/tmux-501/default",
        f"{TEMPORARY}/vscode-ipc-1.sock",
        f"{APP}/made-later.sock",
        "/private/var/run/syslog",
        "/private/var/run/usbmuxd",
        f"{STATE}/sessions/1/control",
    ],
)
def test_no_socket_of_the_host_is_reached_but_the_one_that_was_opened(path: str) -> None:
    shut(connect_unix(path), Request("network-bind", path=path), Request("network-inbound", path=path))
    open_(connect_unix(SOCKET))


@pytest.mark.attack(169)
def test_memory_and_queues_are_not_shared_with_other_sessions() -> None:
    for operation in ("ipc-sysv-shm", "ipc-sysv-msg", "ipc-sysv-sem"):
        shut(Request(operation))
    for operation in ("ipc-posix-shm-read-data", "ipc-posix-shm-write-create", "ipc-posix-shm-write-data"):
        shut(named(operation, "ipc-posix-name", "/other-session"))
    open_(named("ipc-posix-sem-create", "ipc-posix-name", "/mine"))


@pytest.mark.attack(170)
def test_an_unconfined_neighbour_is_neither_signalled_nor_looked_into() -> None:
    for operation in ("signal", "process-info-pidinfo", "process-info-rusage", "mach-priv-task-port", "mach-task-read"):
        shut(target(operation, "others"))
    open_(target("signal", "same-sandbox"))


@pytest.mark.attack(171)
def test_our_own_socket_and_files_are_out_of_reach() -> None:
    """INV-8."""
    shut(connect_unix(f"{STATE}/sessions/1/control"), file("file-read-data", f"{STATE}/sessions/1/audit.jsonl"))
    shut(file("file-write-data", f"{CODE}/gate.py"))
    open_(file("file-read-data", f"{CODE}/gate.py"))


@pytest.mark.attack(153)
@pytest.mark.attack(161)
def test_the_environment_of_the_supervisor_is_not_read() -> None:
    shut(
        named("sysctl-read", "sysctl-name", "kern.procargs2"), named("sysctl-read", "sysctl-name", "kern.procargs2.42")
    )
    open_(named("sysctl-read", "sysctl-name", "kern.argmax"))
