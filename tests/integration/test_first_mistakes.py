"""What people get wrong in their first hour has one line each, before or after the command, that says what to write."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from netsandbox import Policy, Sandbox
from netsandbox.settings import RunSettings
from tests.rig import ports

pytestmark = pytest.mark.usefixtures("user_namespaces")


def test_rules_that_contradict_each_other_are_one_line_that_names_both(netsandbox: Any) -> None:
    place = netsandbox.home()
    rules = place.work / "rules.toml"
    rules.write_text('[network]\nallow_domains = ["b.test"]\n')
    run = netsandbox("run", "--allow-domain", "a.test", "--deny-domain", "a.test", "--", "true")
    assert run.stderr == (
        "netsandbox: --allow-domain: a.test is denied by --deny-domain (a.test), which wins; leave one of them out\n"
    )
    run = netsandbox("run", "--config", rules, "--deny-domain", "*.test", "--deny-domain", "b.test", "--", "true")
    (line,) = run.stderr.splitlines()
    assert re.fullmatch(
        r"netsandbox: \S*rules.toml:2: b.test is denied by --deny-domain \(b.test\), which wins; .*", line
    )
    assert netsandbox("run", "-q", "--allow-domain", "a.test", "--deny-domain", "a.test", "--", "true").stderr == ""
    assert netsandbox("run", "--allow-domain", "*.a.test", "--deny-domain", "x.a.test", "--", "true").stderr == ""


def test_a_rule_for_localhost_names_the_option_that_was_meant(netsandbox: Any) -> None:
    run = netsandbox("run", "--allow-domain", "localhost:3000", "--", "true")
    assert run.stderr.endswith("use --connect-host 3000\n")
    assert run.stderr.count("\n") == 1


MODE = "import os, sys; sys.exit(os.environ['SANDBOX_MODE'] != sys.argv[1])"


def test_an_option_wins_over_the_mode_of_a_file(netsandbox: Any) -> None:
    """D6: it was void, and the refusal advised the same option."""
    (netsandbox.home().work / ".netsandbox.toml").write_text('[network]\nmode = "offline"\n')
    for words, mode in ((["--allow-domain", "a.test"], "filtered"), (["--filtered"], "filtered"), ([], "offline")):
        run = netsandbox("run", *words, "--", "python3", "-c", MODE, mode)
        assert (run.returncode, run.stderr) == (0, "")
    dig = netsandbox("run", "--", "python3", "-c", "import socket; socket.getaddrinfo('a.test', 80)")
    assert "allow it with --allow-domain a.test\n" in dig.stderr
    dig = netsandbox("run", "--offline", "--", "python3", "-c", "import socket; socket.getaddrinfo('a.test', 80)")
    assert "allow it with --allow-domain a.test without --offline\n" in dig.stderr


def test_a_variable_that_is_not_set_is_named(netsandbox: Any) -> None:
    run = netsandbox("run", "--pass-env", "NOPE_TOKEN", "--", "true")
    assert run.stderr.startswith("netsandbox: --pass-env NOPE_TOKEN: this variable is not set here")
    assert netsandbox("run", "--pass-env", "PATH", "--", "true").stderr == ""


DIAL = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10).recv(1)
except OSError:
    pass
"""


def test_a_port_of_the_host_where_nobody_listens_is_said(netsandbox: Any, canary: Any) -> None:
    port = ports.free_port()
    run = netsandbox("run", "--connect-host", str(port), "--", netsandbox.python, "-c", DIAL, str(port))
    first, then = run.stderr.splitlines()
    assert first.startswith(f"netsandbox: --connect-host {port}: nothing listens at port {port}")
    assert then.startswith(f"netsandbox: nothing listens at port {port} of this machine's localhost; start its server")
    server = canary.tcp(greeting=b"x")
    run = netsandbox("run", "--connect-host", str(server.port), "--", netsandbox.python, "-c", DIAL, str(server.port))
    assert (run.stderr, server.accepts) == ("", 1)


HABIT = "import socket\ntry:\n    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)\nexcept OSError:\n    pass\n"


def test_what_programs_try_by_habit_neither_fails_a_build_nor_explains_it(netsandbox: Any) -> None:
    log = netsandbox.home().work / "audit.jsonl"
    dial = "import socket\ntry:\n    socket.create_connection(('a.test', 443), 5)\nexcept OSError:\n    pass\n"
    netsandbox("run", "--audit-log", log, "--", netsandbox.python, "-c", HABIT)
    summary = netsandbox("audit", "summary", "--fail-on-denied", log)
    assert (summary.returncode, "Denied: nothing" in summary.stdout, "Tried by habit" in summary.stdout) == (
        0,
        True,
        True,
    )
    assert "by habit" in netsandbox("explain", "--last", log).stdout
    other = log.with_name("other.jsonl")
    netsandbox("run", "--audit-log", other, "--", netsandbox.python, "-c", dial + HABIT)
    assert netsandbox("audit", "summary", "--fail-on-denied", other).returncode == 1
    assert "a.test" in netsandbox("explain", "--last", other).stdout.splitlines()[0]


@pytest.mark.parametrize("leave_out", [True, False])
def test_the_dashes_can_be_left_out_before_a_program(netsandbox: Any, *, leave_out: bool) -> None:
    """Options behind the program are the program's, not ours."""
    words = ["sh", "-c", "echo ran $1", "sh", "--offline"]
    run = netsandbox("run", *([] if leave_out else ["--"]), *words)
    assert (run.returncode, run.stdout, run.stderr) == (0, "ran --offline\n", "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sh", "-c", "true"], "to run a command write `netsandbox run -- sh -c true`"),
        (["run", "sh", "-x", "--", "a"], "unknown option '-x'; see `netsandbox run --help`"),
        (["run", "--net=none", "--", "true"], "unknown option '--net'; did you mean --offline?"),
        (["run", "--init"], "unknown option '--init'; did you mean `netsandbox init`?"),
        (["run", "--"], "the command is empty; write it after --, or leave -- out to start your shell"),
        (["run", "--allow-domain", "a.test/path", "--", "true"], "a rule has no path: write the host alone"),
        (["run", "--allow-domain", "a.test,b.test", "--", "true"], "repeat the option, or write a list in a file"),
    ],
)
def test_a_mistake_runs_nothing_and_its_line_has_what_to_write(netsandbox: Any, words: list[str], line: str) -> None:
    run = netsandbox(*words)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert line in run.stderr


SECRETS = {
    "SECRET_KEY": "k",
    "DB_URL": "postgres://u:p@db.test/x",
    "AWS_PROFILE": "a",
    "GITHUB_TOKEN": "t",
    "SSH_AUTH_SOCK": "/x",
    "E_KEY": "",
}


def test_a_failed_command_names_the_variables_that_it_did_not_get(netsandbox: Any) -> None:
    """The connection string has a password, so the command does not get it; a command that succeeds needed none."""
    shown = netsandbox("run", "--", "sh", "-c", "echo ${SECRET_KEY-no} ${DB_URL-no}; exit 3", env=SECRETS)
    assert (shown.returncode, shown.stdout) == (3, "no no\n")
    assert shown.stderr == (
        "netsandbox: withheld: AWS_PROFILE, DB_URL, GITHUB_TOKEN, SECRET_KEY; --pass-env NAME passes one\n"
    )
    command = ("--", "sh", "-c", "echo ${DB_URL-no}; exit 3")
    given = ("DB_URL", "AWS_*", "SECRET_KEY")
    passed = netsandbox("run", *(word for name in given for word in ("--pass-env", name)), *command, env=SECRETS)
    assert passed.stdout == "postgres://u:p@db.test/x\n"
    assert passed.stderr == "netsandbox: withheld: GITHUB_TOKEN; pass it with --pass-env GITHUB_TOKEN\n"
    assert netsandbox("run", "-q", *command, env=SECRETS).stderr == ""
    for end in ("exit 0", "exit 127", "kill -9 $$"):
        assert netsandbox("run", "--", "sh", "-c", end, env=SECRETS).stderr == ""


NOISE = """
import logging.handlers, pwd, syslog, time
syslog.syslog("x")
logging.handlers.SysLogHandler("/dev/log")
try:
    pwd.getpwnam("nosuchuser")
except KeyError:
    pass
print("ready", flush=True)
time.sleep(600)
"""


def test_noise_of_the_c_library_is_a_denial_nowhere(netsandbox: Any) -> None:
    """It is in the log, and in no count, list, exit status or line that speaks of denials."""
    log = netsandbox.home().work / "noise.jsonl"
    words = ("run", "--name", "noise", "--audit-log", log, "--", netsandbox.python, "-c", NOISE)
    running = netsandbox.spawn(*words)
    running.read_until(b"ready")
    (status,) = json.loads(netsandbox("ps", "--json").stdout)
    assert status["denied"] == 0
    netsandbox("stop", "noise")
    running.wait()
    assert '"verdict":"deny"' in log.read_text()
    assert netsandbox("audit", "summary", "--fail-on-denied", log).returncode == 0


@pytest.mark.usefixtures("private_home")
def test_noise_of_the_c_library_is_not_in_the_result_of_the_api(tmp_path: Path) -> None:
    box = Sandbox(Policy(), RunSettings(audit_log=str(tmp_path / "log.jsonl")))
    dial = "import socket\ntry:\n    socket.create_connection(('a.test', 443), 5)\nexcept OSError:\n    pass\n"
    script = "import syslog\nsyslog.syslog('x')\n"
    assert box.run([sys.executable, "-c", script]).denied == ()
    assert {denial.host for denial in box.run([sys.executable, "-c", script + dial]).denied} == {"a.test"}


def test_options_that_do_less_together_get_a_line(netsandbox: Any) -> None:
    line = "the session is online, so you are asked about files only; with --filtered instead about names too"
    assert netsandbox("run", "--ask", "--online", "--", "true").stderr == f"netsandbox: {line}\n"
    for words in (["--ask"], ["--ask", "--filtered"], ["--online"], ["--ask", "--online", "-q"]):
        assert netsandbox("run", *words, "--", "true").stderr == ""


@pytest.mark.ordinary_user(only=True)
def test_a_folder_that_the_user_cannot_read_is_named_only_if_asked(netsandbox: Any) -> None:
    """A database keeps such a folder in the project, and each run named it as one of too many repositories."""
    work = netsandbox.home().work
    (work / "data").mkdir()
    os.chown(work / "data", work.stat().st_uid, work.stat().st_gid)
    (work / "data").chmod(0)
    assert netsandbox("run", "--", "ls").stderr == ""
    line = f"netsandbox: ~/{work.name}/data cannot be read by you, so the session has it read-only\n"
    assert line in netsandbox("run", "-v", "--", "ls").stderr
