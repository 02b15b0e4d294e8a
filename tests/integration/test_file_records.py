"""Refused files are told as refused hosts are: a record, a line at the end, and an explanation."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_closed_files import SECRET, git_init, put
from tests.rig.localhost import eventually

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]


def denied(run: Any) -> set[tuple[str, str, str, str]]:
    return {
        (each["event"], each["operation"], each["reason"], each["path"])
        for each in run.audit
        if each["event"] in ("file", "exec") and each.get("verdict") == "deny"
    }


def sh(netsandbox: Any, script: str, *options: str, **more: Any) -> Any:
    return netsandbox("run", *options, "--", "sh", "-c", script, **more)


def test_a_read_of_what_is_not_shown_is_recorded_and_told(netsandbox: Any) -> None:
    plan = put(netsandbox.home(), "Documents/plan.md")
    run = sh(netsandbox, f"cat {plan}; true")
    assert SECRET not in run.stdout
    assert denied(run) == {("file", "read", "not-shown", str(plan))}
    assert "denied reading ~/Documents/plan.md; show it with --allow-read ~/Documents/plan.md" in run.stderr
    again = sh(netsandbox, f"cat {plan}", "--allow-read", str(plan))
    assert again.stdout == SECRET  # what the line proposes helps
    assert denied(again) == set()
    assert "denied" not in again.stderr


def test_a_path_that_only_the_host_sees_is_named_although_nothing_was_opened(netsandbox: Any) -> None:
    home = netsandbox.home()
    (home.path / "Documents").mkdir()
    run = netsandbox("run", "--", "ls", str(home.path / "Documents"))
    assert run.returncode == 2
    expected = "~/Documents exists, but this session does not see it; show it with --allow-read ~/Documents"
    assert run.stderr.splitlines()[-1] == f"netsandbox: {expected}"
    run = netsandbox("run", "--allow-read", "~/Documents", "--", "ls", str(home.path / "Documents"))
    assert (run.returncode, run.stderr) == (0, ""), "what it advises helps"
    assert "exists" not in netsandbox("run", "--", "ls", "/none", "--color=/x").stderr
    git = netsandbox("run", "--", "git", "clone", "../Documents", "copy")
    assert (git.returncode, git.stderr.splitlines()[-1]) == (128, f"netsandbox: {expected}")


@pytest.mark.parametrize("way", ["../Documents/plan.md", "link", "{home}//Documents/./plan.md"])
def test_every_way_to_it_is_the_same(netsandbox: Any, way: str) -> None:
    home = netsandbox.home()
    plan = put(home, "Documents/plan.md")
    (home.work / "link").symlink_to(plan)
    run = sh(netsandbox, f"cat {way.format(home=home.path)}; true")
    assert SECRET not in run.stdout
    ((event, operation, reason, path),) = denied(run)
    assert (event, operation, reason) == ("file", "read", "not-shown")
    assert os.path.realpath(path) == str(plan)


def test_what_the_host_has_not_either_is_no_refusal(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, "Documents/plan.md")
    gone = f"{home.path}/Documents/none"
    run = sh(netsandbox, f"cat none {home.path}/none {gone}; rm -f {gone} none; chmod 600 {gone}; {gone}; true")
    assert denied(run) == set()
    assert "denied" not in run.stderr


def test_the_session_s_own_files_are_no_refusals(netsandbox: Any) -> None:
    files = "echo a > mine; cat mine; mv mine yours; rm yours; mkdir f; rmdir f"
    run = sh(netsandbox, f"{files}; echo b > ~/own; cat ~/own; ls > /tmp/x")
    assert run.stdout == "a\nb\n"
    assert denied(run) == set()


@pytest.fixture
def lock_in_tmp() -> Iterator[Path]:
    """A file of the host in /tmp, of which the session has its own."""
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="nsb-lock-") as file:
        os.chmod(file.name, 0o666)
        yield Path(file.name)


OPENS = "import os, sys\ntry: os.open(sys.argv[1], os.O_RDWR)\nexcept FileNotFoundError: print('missing')\n"
MAKES = "os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL)\nprint('made')\n"


def test_a_file_that_the_session_may_make_is_no_refused_write(netsandbox: Any, lock_in_tmp: Path) -> None:
    """uv opens its lock in /tmp, and makes it if it is missing; the host has one of the same name."""
    own = put(netsandbox.home(), ".lock")
    for path in (lock_in_tmp, own):
        run = netsandbox("run", "--", netsandbox.python, "-c", OPENS + MAKES, str(path))
        assert run.stdout == "missing\nmade\n", run.stderr
        assert denied(run) == set()
        assert "denied" not in run.stderr
    removed = sh(netsandbox, f"rm {lock_in_tmp}; true")
    assert denied(removed) == set()
    assert lock_in_tmp.exists()
    assert own.read_text() == SECRET


NESTED = """
import os, sys
for act in (lambda: os.mkdir(sys.argv[1] + "/b"), lambda: os.open(sys.argv[1] + "/c", os.O_CREAT | os.O_WRONLY)):
    try: act()
    except FileNotFoundError: print("missing")
os.mkdir(sys.argv[1])
os.mkdir(sys.argv[1] + "/b")
print("made")
"""


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp"])
def test_a_folder_that_is_made_after_a_first_attempt_is_no_refused_write(netsandbox: Any, place: str) -> None:
    """Rust and Node.js make the last folder of a path first, and the others if that fails."""
    with tempfile.TemporaryDirectory(dir=place, prefix="nsb-nested-") as folder:
        os.chmod(folder, 0o777)
        run = netsandbox("run", "--", netsandbox.python, "-c", NESTED, folder)
        assert run.stdout == "missing\nmissing\nmade\n", run.stderr
        assert denied(run) == set()
        assert os.listdir(folder) == []


HOME_NESTED = """
import os, sys
path = sys.argv[1]
def attempt(act):
    try: act()
    except FileNotFoundError: print("missing")
attempt(lambda: os.open(path + "/a/b", os.O_RDONLY))
attempt(lambda: os.open(path + "/a/b/c", os.O_CREAT | os.O_WRONLY))
attempt(lambda: os.mkdir(path + "/a/b"))
attempt(lambda: os.mkdir(path + "/a"))
os.makedirs(path + "/a/b")
os.open(path + "/a/b/c", os.O_CREAT | os.O_WRONLY)
print("made")
"""


def test_what_the_session_makes_in_its_home_after_a_first_attempt_is_no_refusal(netsandbox: Any) -> None:
    """The host has folders of the same names, as of a cache of npm; Node.js makes the last folder first."""
    own = put(netsandbox.home(), ".cache/tool/a/b/c")
    tool = own.parents[2]
    run = netsandbox("run", "--", netsandbox.python, "-c", HOME_NESTED, str(tool))
    assert run.stdout == "missing\n" * 4 + "made\n", run.stderr
    assert denied(run) == {("file", "read", "made-later", f"{tool}/a/b")}
    assert "denied" not in run.stderr
    assert own.read_text() == SECRET
    never_made = "import os, sys\ntry: os.mkdir(sys.argv[1] + '/a/new')\nexcept FileNotFoundError: pass"
    twin = netsandbox("run", "--fresh-home", "--", netsandbox.python, "-c", never_made, str(tool))
    assert denied(twin) == {("file", "folder", "not-shown", f"{tool}/a/new")}


def test_an_open_for_writing_where_nothing_is_shown_is_a_refused_write(netsandbox: Any) -> None:
    """The twin of the one above: the session does not have its folder."""
    plan = put(netsandbox.home(), "Documents/plan.md")
    run = netsandbox("run", "--", netsandbox.python, "-c", OPENS, str(plan))
    assert run.stdout == "missing\n"
    assert denied(run) == {("file", "change", "not-shown", str(plan))}


WRITES = {
    "echo x > {0}/new": ("make", "new"),
    "echo x > {0}/plan.md": ("make", "plan.md"),
    "mkdir {0}/folder": ("folder", "folder"),
    "rm -f {0}/plan.md": ("make", "plan.md"),
    "mv mine {0}/moved": ("make", "moved"),
    "ln -s mine {0}/link": ("make", "link"),
    "truncate -s 0 {0}/plan.md": ("make", "plan.md"),
}


@pytest.mark.parametrize("script", WRITES)
def test_a_write_to_what_is_not_shown(netsandbox: Any, script: str) -> None:
    home = netsandbox.home()
    plan = put(home, "Documents/plan.md")
    operation, name = WRITES[script]
    run = sh(netsandbox, f"echo x > mine; {script.format(plan.parent)}; true")
    told = [each for each in denied(run) if each[1] != "read"]
    assert told == [("file", operation, "not-shown", f"{plan.parent}/{name}")]
    assert f"denied writing ~/Documents/{name}; allow it with --allow-write ~/Documents" in run.stderr
    assert os.listdir(plan.parent) == ["plan.md"]
    assert plan.read_text() == SECRET
    again = sh(netsandbox, f"echo x > mine; {script.format(plan.parent)}; true", "--allow-write", str(plan.parent))
    assert denied(again) == set()


@pytest.mark.parametrize("script", WRITES)
def test_a_write_to_what_is_read_only(netsandbox: Any, script: str) -> None:
    home = netsandbox.home()
    plan = put(home, "Documents/plan.md")
    operation, name = WRITES[script]
    if name == "plan.md" and operation == "make" and not script.startswith("rm"):
        operation = "change"  # it is there, so it would be opened and changed
    run = sh(netsandbox, f"echo x > mine; {script.format(plan.parent)}; true", "--allow-read", str(plan.parent))
    assert denied(run) == {("file", operation, "read-only", f"{plan.parent}/{name}")}
    assert plan.read_text() == SECRET
    assert os.listdir(plan.parent) == ["plan.md"]


def test_a_protected_file_of_the_project(netsandbox: Any) -> None:
    home = netsandbox.home()
    git_init(home, home.work)
    run = sh(netsandbox, "echo x > .git/hooks/pre-push; true")
    assert denied(run) == {("file", "make", "read-only", f"{home.work}/.git/hooks/pre-push")}
    assert f"denied writing ~/{home.work.name}/.git/hooks/pre-push" in run.stderr


def test_an_exec_of_what_is_not_shown(netsandbox: Any) -> None:
    tool = put(netsandbox.home(), "tools/tool", f"#!/bin/sh\necho {SECRET}\n")
    tool.chmod(0o755)
    run = netsandbox("run", "--", "env", str(tool))
    assert SECRET not in run.stdout
    assert denied(run) == {("exec", "execute", "not-shown", str(tool))}
    assert "denied executing ~/tools/tool; show it with --allow-read ~/tools/tool" in run.stderr
    again = netsandbox("run", "--allow-read", str(tool), "--", "env", str(tool))
    assert again.stdout == f"{SECRET}\n"


def test_what_the_user_may_not_write_either_is_no_refusal(netsandbox: Any) -> None:
    run = sh(netsandbox, "echo x > /usr/lib/new; echo x > /etc/hostname; true")
    paths = {path for _, _, reason, path in denied(run) if reason == "read-only"}
    assert paths == ({"/usr/lib/new", "/etc/hostname"} if netsandbox.identity.uid == 0 else set())


@pytest.mark.attack(115)
def test_a_command_cannot_take_its_attempt_out_of_the_log(netsandbox: Any) -> None:
    """It makes what it could not read, or a folder above, right afterwards."""
    plan, key = put(netsandbox.home(), "Documents/plan.md"), put(netsandbox.home(), ".ssh/id_rsa")
    hide = "mkdir ~ ~/Documents ~/.ssh; echo x > ~/Documents/plan.md; mkdir -p ~/.ssh/id_rsa"
    run = sh(netsandbox, f"cat {plan} {key}; {hide}; true")
    reads = {path for _, operation, _, path in denied(run) if operation == "read"}
    assert reads == {str(plan), str(key)}


def test_a_start_up_file_that_the_host_does_not_have_is_refused_and_told_too(netsandbox: Any) -> None:
    rc = netsandbox.home().path / ".bashrc"
    run = sh(netsandbox, "echo planted >> ~/.bashrc; true")
    assert not rc.exists()
    assert [path for _, _, reason, path in denied(run) if reason == "read-only"] == [str(rc)]
    assert "denied writing ~/.bashrc" in run.stderr


def test_a_start_up_file_that_is_only_read_is_not_recorded(netsandbox: Any) -> None:
    """Every shell looks for its start-up files, which are empty inside."""
    rc = put(netsandbox.home(), ".bashrc")
    run = sh(netsandbox, f"cat {rc}; true")
    assert run.stdout == ""
    assert denied(run) == set()
    written = sh(netsandbox, f"echo x >> {rc}; true")
    assert denied(written) == {("file", "change", "read-only", str(rc))}


def test_a_secret_is_told_as_one(netsandbox: Any) -> None:
    key = put(netsandbox.home(), ".ssh/id_rsa")
    run = sh(netsandbox, f"cat {key}; false")
    assert SECRET not in run.stdout
    assert "--allow-read" not in run.stderr
    assert "denied reading ~/.ssh/id_rsa; private keys stay closed; use your agent" in run.stderr


def test_a_flood_is_folded_and_bounded(netsandbox: Any) -> None:
    """Neither the same path nor many paths fill the log, and the session goes on."""
    plan = put(netsandbox.home(), "Documents/plan.md")
    script = f"""
import os
for number in range(6000):
    flags = os.O_RDONLY if number < 3000 else os.O_WRONLY | os.O_CREAT
    try: os.open({str(plan)!r} if number < 3000 else f"{plan.parent}/{{number}}", flags)
    except OSError: pass
"""
    run = netsandbox("run", "--", netsandbox.python, "-c", script)
    assert run.returncode == 0
    records = [each for each in run.audit if each["event"] == "file"]
    assert len(records) < 1200
    same = [each for each in records if each.get("path") == str(plan)]
    assert sum(each["count"] for each in same) > 1000
    assert [each for each in records if each.get("detail") == "more refused paths than are listed"]


def observer_of(family: Any) -> int:
    for each in family:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if Path(f"/proc/{each.pid}/comm").read_text() == "netsandbox-trap\n":
                return int(each.pid)
    pytest.fail("the session has no observer")


def test_without_its_observer_a_session_ends(netsandbox: Any, canary: Any, leftovers: Any) -> None:
    """The process that receives trapped calls is killed: no call goes on without it, and the command is ended."""
    server = canary.tcp()
    plan = put(netsandbox.home(), "Documents/plan.md")
    script = f"echo ready; while [ ! -e over ]; do sleep 0.05; done; cat {shlex.quote(str(plan))}; echo survived"
    running = netsandbox.spawn("run", "--connect-host", str(server.port), "--", "sh", "-c", script)
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    os.kill(observer_of(watch.family), signal.SIGKILL)
    (netsandbox.home().work / "over").touch()
    assert running.wait(20) in (-signal.SIGKILL, 128 + signal.SIGKILL)
    watch.assert_gone()
    assert b"survived" not in running.process.stdout.read()
    (record,) = [each for each in running.audit if each["event"] == "policy"]
    assert (record["verdict"], record["reason"]) == ("deny", "internal")
    assert server.accepts == 0


def test_with_its_observer_it_goes_on(netsandbox: Any) -> None:
    """The twin of the one above."""
    script = "echo ready; while [ ! -e over ]; do sleep 0.05; done; echo survived"
    running = netsandbox.spawn("run", "--", "sh", "-c", script)
    running.read_until(b"ready")
    (netsandbox.home().work / "over").touch()
    running.read_until(b"survived")
    assert running.wait(20) == 0


def test_an_observer_dies_with_its_supervisor(netsandbox: Any, leftovers: Any) -> None:
    running = netsandbox.spawn("run", "--", "sh", "-c", "echo ready; sleep 60")
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    observer = observer_of(watch.family)
    running.process.kill()
    running.wait(20)
    watch.assert_gone()
    eventually(lambda: not os.path.exists(f"/proc/{observer}"))


def test_refused_sockets_are_still_refused_and_recorded(netsandbox: Any) -> None:
    """Other trapped calls pass through the observer to the supervisor, which decides as before."""
    script = "import socket\ntry: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nexcept OSError as e: print(e.errno)"
    run = netsandbox("run", "--", netsandbox.python, "-c", script)
    assert run.stdout == "1\n"
    assert [each["reason"] for each in run.audit if each["event"] == "socket"] == ["socket-family"]
