"""What people get wrong in their first hour has one line each, before or after the command, that says what to write."""

from __future__ import annotations

import re
from typing import Any

import pytest

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


def test_an_option_against_the_mode_of_a_file_is_not_silent(netsandbox: Any) -> None:
    (netsandbox.home().work / ".netsandbox.toml").write_text('[network]\nmode = "offline"\n')
    run = netsandbox("run", "--allow-domain", "a.test", "--", "true")
    assert "--allow-domain: a.test opens nothing, because a file or profile sets the mode offline" in run.stderr
    assert netsandbox("run", "--no-config", "--allow-domain", "a.test", "--", "true").stderr == ""


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
