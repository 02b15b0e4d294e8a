"""Refused files are explained: by a line of a rule, by explain, by the summary; and the private home is listed."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.integration.test_closed_files import SECRET, git_init, put
from tests.integration.test_file_records import denied, sh

WORK = "~/work"  # the working folder of a test, as messages show it
pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]


def test_what_was_kept_inside_is_told_once(netsandbox: Any) -> None:
    run = sh(netsandbox, "echo x > ~/.npmrc; mkdir -p ~/.cache; echo x > ~/.cache/y")
    assert "kept inside: ~/.npmrc; `netsandbox home` shows it" in run.stderr
    assert "cache" not in run.stderr
    assert "kept inside" not in sh(netsandbox, "cat ~/.npmrc").stderr
    assert "kept" not in netsandbox("run", "-q", "--", "sh", "-c", "echo y > ~/.npmrc").stderr


def test_explain_agrees_with_a_session(netsandbox: Any) -> None:
    home = netsandbox.home()
    git_init(home, home.work)
    for name in ("Documents/plan.md", ".ssh/id_rsa", ".gitconfig", "work/mine", "work/.git/hooks/x"):
        put(home, name, "[a]\nb = c\n")
    paths = [
        *(f"{home.path}/{name}" for name in ("Documents/plan.md", ".ssh/id_rsa", ".gitconfig", "work/mine")),
        *(f"{home.work}/.git/hooks/x", "/etc/passwd", "/usr/bin/env"),
    ]
    script = 'for p; do [ -r "$p" ] && r=0 || r=1; [ -w "$p" ] && w=0 || w=1; echo $r $w; done'
    seen = netsandbox("run", "-q", "--", "sh", "-c", script, "sh", *paths).stdout.splitlines()
    for path, line in zip(paths, seen, strict=True):
        told = json.loads(netsandbox("explain", "--json", path).stdout)
        may_write = told["write"]["allowed"] and os.access(path, os.W_OK)
        assert line == f"{int(not told['read']['allowed'])} {int(not may_write)}", path


def test_explain_last_names_a_refused_file(netsandbox: Any) -> None:
    plan = put(netsandbox.home(), "Documents/plan.md")
    sh(netsandbox, f"cat {plan}; true")
    told = netsandbox("explain", "--last")
    assert told.returncode == 1
    assert "denied    reading ~/Documents/plan.md, by " in told.stdout
    assert "to allow  netsandbox run --allow-read ~/Documents/plan.md\n" in told.stdout


def test_a_path_that_a_rule_denies_names_the_rule(netsandbox: Any) -> None:
    home = netsandbox.home()
    for name in ("work/keep/a", "work/hidden/b"):
        put(home, name)
    closing = ("--deny-write", "keep", "--deny-read", "hidden")
    run = sh(netsandbox, "echo x > keep/new; rm -f keep/a; cat hidden/b; echo x > hidden/b; true", *closing)
    assert {reason for _, _, reason, _ in denied(run)} == {"deny-rule"}
    assert f"denied writing {WORK}/keep/new and 1 more; leave out --deny-write {WORK}/keep to allow it" in run.stderr
    assert f"denied reading {WORK}/hidden/b; leave out --deny-read {WORK}/hidden to allow it" in run.stderr
    assert "--allow-" not in run.stderr
    told = netsandbox("explain", "--last").stdout
    assert f"rule      --deny-read {WORK}/hidden\n" in told
    assert f"to do     leave out --deny-read {WORK}/hidden\n" in told
    freed = sh(netsandbox, "echo x > keep/new; cat hidden/b")
    assert (freed.stdout, denied(freed)) == (SECRET, set())  # what the lines propose helps


def test_the_summary_has_refused_files(netsandbox: Any) -> None:
    home = netsandbox.home()
    for name in ("Documents/a", "Documents/b", "Documents/c"):
        put(home, name)
    sh(netsandbox, "cat ~/Documents/a ~/Documents/a ~/Documents/b ~/Documents/c; true")
    told = netsandbox("audit", "summary").stdout
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert f"reading {home.path}/Documents/a 2x not-shown --allow-read ~/Documents/a" in lines
    assert f"reading {home.path}/Documents/b and 1 more 2x not-shown --allow-read ~/Documents" in lines
    assert "/cat" not in told
    files = json.loads(netsandbox("audit", "summary", "--json").stdout)["denied_files"]
    found = {each["change"]: each for each in files}
    assert found["--allow-read ~/Documents/a"]["paths"] == {f"{home.path}/Documents/a": 2}
    others = {f"{home.path}/Documents/b": 1, f"{home.path}/Documents/c": 1}
    assert found["--allow-read ~/Documents"]["paths"] == others
    shown = netsandbox("audit", "show", "--event", "file").stdout.splitlines()
    assert len(shown) >= 2
    assert all(" deny  file " in line for line in shown)
    unknown = netsandbox("audit", "show", "--event", "foo")
    assert (unknown.returncode, "no event is called 'foo'" in unknown.stderr) == (2, True)


def test_a_path_that_a_file_denies_names_its_line(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, "work/keep/a")
    put(home, "work/.netsandbox.toml", '[filesystem]\ndeny_write = ["keep"]\n')
    run = sh(netsandbox, "echo x > keep/new; true")
    line = f"deny_write {WORK}/keep ({WORK}/.netsandbox.toml:2)"
    assert f"denied writing {WORK}/keep/new; remove {line} to allow it" in run.stderr
    assert [each["rule"] for each in run.audit if each["event"] == "file"] == [line]


def test_what_netsandbox_puts_into_a_git_directory_is_not_told(netsandbox: Any) -> None:
    home = netsandbox.home()
    git_init(home, home.work)
    run = sh(netsandbox, "echo x > .git/commondir; rm -rf .git; true")
    assert f"{home.work}/.git/commondir" in {path for *_, path in denied(run)}
    assert not [line for line in run.stderr.splitlines() if line.startswith("netsandbox:") and "commondir" in line]
    assert "commondir" not in netsandbox("explain", "--last").stdout


def test_a_fresh_home_is_empty_and_not_kept(netsandbox: Any) -> None:
    sh(netsandbox, "echo kept > ~/.npmrc")
    fresh = sh(netsandbox, "cat ~/.npmrc; echo gone > ~/.other; cat ~/.other", "--fresh-home")
    assert fresh.stdout == "gone\n"
    assert "kept inside" not in fresh.stderr
    assert sh(netsandbox, "cat ~/.npmrc ~/.other; true").stdout == "kept\n"
    assert sh(netsandbox, "cat ~/.other; true", "--fresh-home").stdout == ""
    listed = netsandbox("home")
    assert "~/.npmrc" in listed.stdout
    assert ".other" not in listed.stdout


def test_the_private_home_is_listed_and_copied_out(netsandbox: Any) -> None:
    home = netsandbox.home()
    sh(netsandbox, "echo token > ~/.npmrc")
    assert not (home.path / ".npmrc").exists()
    kept = netsandbox("home", "keep", "~/.npmrc", "--yes")
    assert (kept.returncode, kept.stdout) == (0, "token\n")
    assert (home.path / ".npmrc").read_text() == "token\n"
    assert netsandbox("home", "clear", "--yes").returncode == 0
    assert netsandbox("home").stdout == ""


def test_a_file_that_a_rule_hides(netsandbox: Any) -> None:
    home = netsandbox.home()
    secret, folder = put(home, "work/.env"), put(home, "work/keys/a").parent
    script = f"cat {secret} keys/a keys/none; cat mine; echo x > {secret}; true"
    put(home, "work/mine", "shown")
    run = sh(netsandbox, script, "--deny-read", ".env", "--deny-read", "keys")
    assert SECRET not in run.stdout
    assert "shown" in run.stdout
    assert denied(run) == {
        ("file", "read", "deny-rule", str(secret)),
        ("file", "read", "deny-rule", f"{folder}/a"),
        ("file", "change", "deny-rule", str(secret)),
    }
    assert f"denied reading {WORK}/.env; leave out --deny-read {WORK}/.env to allow it" in run.stderr
    assert "--allow" not in run.stderr
    assert SECRET in sh(netsandbox, f"cat {secret}").stdout
