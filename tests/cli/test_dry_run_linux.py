"""`netsandbox run --dry-run` on Linux: the plan of a session as text, from the same values; nothing is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.linux.session_root import DENIED, PROJECT, PROTECTED, SessionRoot
from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.plan import View
from netsandbox.cli.dry_run_linux import NAMESPACES, Planned, _process_rules, mount_lines, plan_lines, root_lines
from netsandbox.cli.run import main
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_domain
from netsandbox.settings import RunSettings

ROOT = Path(__file__).resolve().parents[2]
LOCAL = LocalhostSettings("isolate", connect_host=(HostPort(5432),), publish=((3000, 8000), (4000, None)))
VIEW = View(
    1000,
    1000,
    (("/ours/hosts", "/etc/hosts"), ("/dev/null", "/dev/sda")),
    ("/home/me/state",),
    ("/ours",),
    ("/home/me/.config",),
    (("/ours/nothing", "/home/me/.npmrc"),),
    ("/dev", "/tmp"),
)
PLANNED = Planned(
    ("curl", "\x1b[2J"),
    tuple(mount_lines(VIEW)),
    (plan.doors()[0], plan.doors()[9], *plan.localhost_doors((5432,), requests=False)[:1]),
    syscall_table("x86_64"),
    ("listen",),
    ("HTTP_PROXY", "SANDBOX_MODE"),
    ["NPM_TOKEN"],
    "/state/SESSION/audit.jsonl",
)
GOLDEN = """\
# What `netsandbox run` would set up. Nothing was started.

command   curl \\x1b[2J
spaces    new namespaces: user, net, mnt, pid, ipc; no capability; your own user and group
network   loopback alone; every IPv4 and IPv6 address is routed to it (table local)
          nft table netsandbox, chain capture, first match:
            port 53: to the session's resolver
            127.0.0.0/8 and ::1: stay in the session
            TCP to anywhere else: tproxy to the door at 1009
            UDP to anywhere else: tproxy to 1010, recorded and dropped
doors     mixed         TCP IPv4 port 1008  loopback
          udp6          UDP IPv6 port 1010  any address
          host-5432     TCP IPv4 port 5432  loopback
localhost strategy isolate, engine kernel
          a window of up to 100 ports of the host that is free between 20000 and 29999
          published: 3000 at 8000, 4000
calls     refused (EPERM): setns, mount, umount2, pivot_root, chroot, bpf, perf_event_open, userfaultfd,
            open_by_handle_at, name_to_handle_at, init_module, finit_module, delete_module, kexec_load,
            kexec_file_load, reboot, swapon, swapoff, acct, quotactl, syslog, settimeofday, clock_settime,
            vhangup, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr, open_tree_attr
          reported as missing (ENOSYS): clone3, io_uring_setup, io_uring_enter, io_uring_register, keyctl,
            add_key, request_key
          judged by their arguments: socket, socketpair, clone, unshare, ioctl, setpriority, ioprio_set
          decided by the supervisor: listen, sockets other than TCP and UDP
mounts    own /proc, /dev/shm and /dev/mqueue; /sys and the kernel's switches read-only
          ours       /etc/hosts
          empty      /dev/sda
          covered    /tmp/netsandbox-ports, where it is
          kept       /home/me/.config (cannot be moved)
          read-only  /ours
          hidden     /home/me/state
          closed     /home/me/.npmrc
          the rest is read-only but for:
          writable   /dev
          writable   /tmp
variables set: HTTP_PROXY, SANDBOX_MODE
          withheld: NPM_TOKEN
limits    4096 connections at each door, 3600 s without a byte, 64 MB a file of the log
log       /state/SESSION/audit.jsonl

# The policy:
mode      filtered: what a rule allows, and nothing else
allow     example.com                      ports 80, 443    --allow-domain"""


def test_people_read_what_a_session_is_made_of() -> None:
    lines = plan_lines(PLANNED, Policy([parse_domain("example.com", "--allow-domain")]), RunSettings(localhost=LOCAL))
    golden = GOLDEN.splitlines()
    assert lines[: len(golden)] == golden


def test_writing_as_open_as_outside_is_said() -> None:
    assert "the rest can be written as you can" in mount_lines(copy_with(VIEW, writable=None))


def test_the_root_of_a_session_is_printed_by_what_can_be_done_there() -> None:
    root = SessionRoot()
    root.show("/usr")
    root.show("/usr/share")  # adds nothing
    root.link("usr/bin", "/bin")
    root.link("lib", "/usr/lib64")  # is shown with /usr
    root.place("/state/home", "/home/me", writable=True)
    root.show("/home/me/p", writable=True, rank=PROJECT)
    root.show("/home/me/p/.git/hooks", rank=PROTECTED)
    root.cover("/run/copy", "/home/me/p/.git/config")
    root.fresh("/home/me/p/keys", rank=DENIED)
    root.cache("/home/me/.npm", "/state/cache", "/home/me/.npm")
    root.fresh("/tmp", "mode=1777")
    assert root_lines(root) == [
        "a root of its own: nothing else of this machine is there; own /proc and /dev",
        "writable   /home/me/p",
        "cache      /home/me/.npm (the host's, with changes that are kept for the project)",
        "private    /home/me",
        "private    /tmp",
        "protected  /home/me/p/.git/config (in what is writable)",
        "protected  /home/me/p/.git/hooks (in what is writable)",
        "hidden     /home/me/p/keys",
        "read-only  /usr",
        "link       /bin -> usr/bin",
    ]


def test_the_namespaces_are_those_that_the_helper_makes() -> None:
    source = (ROOT / "netsandbox" / "backends" / "namespaces" / "native" / "init.c").read_text()
    (line,) = [line for line in source.splitlines() if "unsigned long namespaces =" in line]
    names = {"USER": "user", "NET": "net", "NS": "mnt", "PID": "pid", "IPC": "ipc"}
    made = [names[word.strip(" ;").removeprefix("CLONE_NEW")] for word in line.partition("=")[2].split("|")]
    assert tuple(made) == NAMESPACES


def test_the_calls_that_are_asked_about_are_those_of_the_filter() -> None:
    abi = syscall_table("x86_64")
    for extra in ((), ("listen",), ("bind", "listen")):
        added = len(seccomp.trapped(extra)) - len(seccomp.trapped(()))
        assert len(seccomp.build(abi, extra=extra)) == len(seccomp.build(abi)) + 8 * added


@pytest.mark.skipif(sys.platform != "linux", reason="shows the plan of this machine")
def test_it_looks_at_this_machine_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    options = [
        "--no-config",
        "--files",
        "open",
        "--connect-host",
        "5432",
        "--audit-log",
        "log.jsonl",
        "--debug-log",
        "denials",
    ]
    assert main(["--dry-run", *options, "--", "touch", "ran"]) == 0
    first = capsys.readouterr().out
    for line in (
        f"          hidden     {home}/.ssh",
        f"          hidden     {home}/.local/state/netsandbox",
        f"          read-only  {home}/.config/netsandbox",
        f"          read-only  {os.getcwd()}/log.jsonl",
        f"          read-only  {os.getcwd()}/denials",
        "          host6-5432    TCP IPv6 port 5432  loopback",
        f"log       {os.getcwd()}/log.jsonl",
    ):
        assert line in first.splitlines()
    assert "GITHUB_TOKEN" in first.partition("withheld: ")[2]
    assert "hush" not in first
    assert os.listdir() == []
    assert os.listdir(home) == [".ssh"]
    main(["--dry-run", *options, "--", "touch", "ran"])
    assert capsys.readouterr().out == first


def test_rules_about_processes_are_printed() -> None:
    files = FileRules(allow_execute=(PathRule("/usr/bin/id", "test"),), listed_only=True)
    assert _process_rules(RunSettings(limits=(("memory", 2 << 30),), no_debug=True, files=files)) == [
        "--limit memory=2G",
        "no program reads or traces another one",
        "nothing is executed but the command, /usr/bin/id, and what they need to start",
    ]
    assert _process_rules(RunSettings()) == []
