"""`netsandbox run`: a mistake is one line on stderr and the command never starts; a denial is told at the end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netsandbox.cli.run import GROUPS, NOT_SHOWN, OPTIONS, main, starts_command
from netsandbox.cli.run_options import policy_of, read_config, settings_of
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import parse

pytestmark = pytest.mark.usefixtures("user_namespaces")

MISTAKES = {
    "unknown option": ["--allow-domian", "example.com"],
    "unknown short option": ["-Z"],
    "value where none is taken": ["--online=yes"],
    "option without its value": ["--allow-domain"],
    "unknown profile": ["no-such-profile"],
    "overlay and its folder without =": ["--overlay", "/usr"],
    "command without --": ["curl", "https://example.com/"],
    "unknown backend": ["--backend", "magic"],
    "malformed pattern": ["--allow-domain", "exa mple.com"],
    "pattern with a bad label": ["--allow-domain", "a..b.test"],
    "wildcard inside": ["--allow-domain", "a.*.test"],
    "everything": ["--allow-domain", "*"],
    "a whole top-level domain": ["--allow-domain", "*.com"],
    "port zero": ["--allow-domain", "example.com:0"],
    "port too big": ["--allow-domain", "example.com:65536"],
    "port that is no number": ["--allow-domain", "example.com:http"],
    "port with a sign": ["--allow-domain", "example.com:+443"],
    "address as a domain": ["--allow-domain", "192.0.2.1"],
    "bad deny pattern": ["--deny-domain", "exa mple.com"],
    "bad address": ["--allow-address", "192.0.2.256"],
    "bad network": ["--allow-address", "192.0.2.1/24"],
    "two modes": ["--online", "--offline"],
    "a mode that allows nothing with a rule": ["--offline", "--allow-domain", "example.com"],
    "missing configuration": ["--config", "/no/such/file.toml"],
    "configuration that is a folder": ["--config", "/"],
    "bad name server": ["--upstream-dns", "dns.example.com"],
    "bad name server port": ["--upstream-dns", "192.0.2.1:0"],
    "upstream proxy that is no URL": ["--upstream-proxy", "proxy.example.com"],
    "upstream proxy with another scheme": ["--upstream-proxy", "socks5://127.0.0.1:1080"],
    "relative unix socket": ["--allow-unix-socket", "run/socket"],
    "unknown query type": ["--allow-query-type", "NOPE"],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_status_2_and_nothing_starts(netsandbox: Any, mistake: str) -> None:
    marker = netsandbox.home().work / "started"
    run = netsandbox("run", *MISTAKES[mistake], "--", "touch", marker)
    assert run.returncode == 2, run.stderr
    assert run.stdout == ""
    assert run.stderr.startswith("netsandbox: ")
    assert run.stderr.count("\n") == 1
    assert run.stderr.rstrip("\n").isprintable()
    assert not marker.exists()


@pytest.mark.parametrize("word", ["\x1b[31m", "a\nb", "\udcff", "\u2028", "\u202e."])
def test_hostile_words_are_printed_harmlessly(netsandbox: Any, word: str) -> None:
    for option in (
        ["--allow-domain", word],
        [f"--{word}"],
        [word],
        ["--config", word],
        ["--upstream-dns", word],
    ):
        run = netsandbox("run", *option, "--", "true")
        assert run.returncode == 2, (option, run.stderr)
        assert run.stderr.count("\n") == 1
        assert run.stderr.rstrip("\n").isprintable()
    missing = netsandbox("run", "--", word)
    assert (missing.returncode, missing.stderr.count("\n")) == (127, 1)
    assert missing.stderr.rstrip("\n").isprintable()


def test_an_unreadable_configuration_is_a_mistake_too(netsandbox: Any) -> None:
    home = netsandbox.home()
    config, marker = home.work / "rules.toml", home.work / "started"
    config.write_text("[network]\nallow_domains = ['example.com']\n")
    config.chmod(0)
    run = netsandbox("run", "--config", config, "--", "touch", marker)
    if os.geteuid() == 0:  # nothing is unreadable for root
        assert run.returncode == 0
        return
    assert (run.returncode, marker.exists()) == (2, False)


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("no-such-command-here", 127),
        ("/no/such/command", 127),
        ("/", 126),
        ("/etc/hosts/x", 127),
    ],
)
def test_a_command_that_cannot_run_is_126_or_127_and_one_line(netsandbox: Any, command: str, status: int) -> None:
    run = netsandbox("run", "--", command)
    assert run.returncode == status
    assert run.stderr.startswith(f"netsandbox: {command}: ")
    assert run.stderr.count("\n") == 1


def test_a_file_that_is_no_program_is_126(netsandbox: Any) -> None:
    notes = netsandbox.home().work / "notes"
    notes.write_text("no program")
    notes.chmod(0o644)
    run = netsandbox("run", "--", notes)
    assert (run.returncode, run.stderr.count("\n")) == (126, 1)


def test_a_working_folder_that_is_gone_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command began in `/` instead, and said nothing."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match=r"^the working folder is gone; enter another$"):
        main(["--no-config", "--", "true"])


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is also a profile."""
    (tmp_path / "node").write_text("")
    (tmp_path / "node").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("option", ["-v", "-h", "-n", "--help", "--quiet"])
def test_an_option_behind_a_profile_that_is_a_program_may_be_the_programs(option: str) -> None:
    expected = (
        f"node is a profile and a program; to run a command write `netsandbox run -- node {option}`,"
        f" else write the options first: `netsandbox run {option} node`"
    )
    with pytest.raises(UsageError) as raised:
        main(["node", option])
    assert str(raised.value) == expected


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("words", [["-n", "node"], ["node", "-n", "--offline"], ["node", "-n", "--", "true"]])
def test_other_options_and_profiles_are_ours(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words]) == 0
    assert "Nothing was started." in capsys.readouterr().out


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("words", "is_command"),
    [
        (["node", "server.js"], True),
        (["node", "server.js", "-v"], True),
        (["node", "--no-such-option"], True),
        (["node", "git", "-e", "1"], True),
        (["node"], False),
        (["node", "git"], False),
        (["node", "--allow-domain", "server.js", "git"], False),
        (["java", "node", "server.js"], False),  # java is no program here, so it cannot be the command
    ],
)
def test_the_first_word_is_the_command_unless_all_are_profiles(words: list[str], is_command: bool) -> None:
    assert starts_command(words) is is_command


def test_git_status_is_a_command_and_git_alone_a_profile(netsandbox: Any) -> None:
    work = netsandbox.home().work
    subprocess.run(["git", "init", "-q", work], check=True)
    run = netsandbox("run", "git", "status", "--short", "--branch", cwd=work)
    assert (run.returncode, run.stdout[:3]) == (0, "## ")
    shell = netsandbox("run", "git", input="echo $NETSANDBOX_SESSION\n", env={"SHELL": "/bin/sh"})
    assert shell.stdout.startswith("2")


@pytest.mark.usefixtures("node")
def test_a_profile_that_is_no_program_takes_options_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["java", "-h"]) == 0
    assert capsys.readouterr().out.startswith("usage: netsandbox run ")


def test_an_empty_command_is_a_mistake(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)


def test_without_a_command_the_users_shell_runs(netsandbox: Any) -> None:
    run = netsandbox("run", input="echo inside $NETSANDBOX_SESSION\n", env={"SHELL": "/bin/sh"})
    assert run.stdout.startswith("inside 2")


def test_a_shell_that_could_read_nothing_is_not_started() -> None:
    """A script whose variable with the command is empty must not seem to succeed."""
    with open(os.devnull) as nothing:
        kept = os.dup(0)
        try:
            os.dup2(nothing.fileno(), 0)
            with pytest.raises(UsageError, match="no terminal for a shell; write `netsandbox run -- CMD`"):
                main([])
            os.close(0)
            with pytest.raises(UsageError, match="no terminal for a shell"):
                main(["--no-config"])
        finally:
            os.dup2(kept, 0)
            os.close(kept)


def test_denials_are_told_at_the_end_once_a_host_and_quiet_says_nothing(netsandbox: Any) -> None:
    script = "for i in 1 2 3; do getent hosts denied.test other.test; done; true"
    run = netsandbox("run", "--allow-domain", "allowed.test", "--", "sh", "-c", script)
    lines = run.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("netsandbox: denied denied.test")
    assert lines[0].endswith("--allow-domain denied.test")
    assert netsandbox("run", "-q", "--", "sh", "-c", script).stderr == ""


def test_a_quiet_run_that_fails_still_says_why(netsandbox: Any) -> None:
    assert netsandbox("run", "-q", "--", "no-such-command-here").stderr.startswith("netsandbox: ")


def test_verbose_says_what_is_allowed_and_where_the_log_is(netsandbox: Any) -> None:
    run = netsandbox("run", "-v", "--allow-domain", "allowed.test", "--connect-host", "5432", "--", "true")
    assert "mode filtered, allowed: allowed.test, port 5432 of the host's localhost\n" in run.stderr
    assert str(run.log_path) in run.stderr
    assert "`netsandbox ps` shows the session's name and window, `netsandbox ports` where" in run.stderr
    assert all(line.startswith("netsandbox: ") for line in run.stderr.splitlines())


def test_verbose_calls_no_rule_open_that_the_mode_closes(netsandbox: Any, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('[network]\nallow_domains = ["allowed.test"]\n')
    words = ("-v", "--config", str(tmp_path / "rules.toml"))
    assert "mode offline, allowed: nothing\n" in netsandbox("run", "offline", *words, "--", "true").stderr
    assert "mode filtered, allowed: allowed.test\n" in netsandbox("run", *words, "--", "true").stderr


def test_verbose_names_the_session_that_was_named_and_no_ports_where_none_are_shown(netsandbox: Any) -> None:
    run = netsandbox("run", "-v", "--name", "shop", "--", "true")
    assert "session shop, `netsandbox ps` shows its window, `netsandbox ports shop` where" in run.stderr
    run = netsandbox("run", "-v", "--name", "shop", "--no-publish", "--", "true")
    assert "netsandbox ports" not in run.stderr


def test_the_help_has_every_option_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(option.name for option in OPTIONS)
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{title}:\n" in shown for title in GROUPS if title != NOT_SHOWN)
    assert not any(f"--{name} " in shown for name in GROUPS[NOT_SHOWN])
    assert max(map(len, shown.splitlines())) <= 120


def test_the_session_is_named_in_its_log_and_in_no_path(netsandbox: Any) -> None:
    run = netsandbox("run", "--name", "build", "--", "true")
    assert run.returncode == 0
    assert run.audit[0]["name"] == "build"
    assert run.log_path.parent.parent == netsandbox.home().state / "netsandbox" / "sessions"


@pytest.mark.attack(190)
@pytest.mark.parametrize("name", ["../../../escaped", "/tmp/escaped", "a\x1b[31mb", "a\nb", "3000", "localhost", ""])
def test_what_cannot_be_a_name_is_refused_and_nothing_runs(netsandbox: Any, tmp_path: Path, name: str) -> None:
    run = netsandbox("run", "--name", name, "--", "touch", str(tmp_path / "ran"))
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "--name" in run.stderr
    assert not (tmp_path / "ran").exists()


def test_a_session_in_a_session_is_refused_in_so_many_words(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "true", env={"NETSANDBOX_SESSION": "x"})
    assert run.returncode == 1
    assert run.stderr.startswith("netsandbox: this is a session of netsandbox already, and the kernel lets only one ")
    assert run.stderr.endswith("; start the second one outside of it\n")
    assert run.stderr.count("\n") == 1


def test_arguments_of_the_command_are_counted_not_recorded(netsandbox: Any) -> None:
    """Attack 179: a token on the command line is in no record."""
    run = netsandbox("run", "--", "true", "--token", "canary-secret")
    assert run.audit[0]["args"] == 2
    assert "canary-secret" not in run.log_path.read_text()


def settings(*words: str) -> Any:
    parsed = parse(words, OPTIONS, "netsandbox run")
    return settings_of(parsed, read_config(parsed))


def policy(*words: str) -> Any:
    parsed = parse(words, OPTIONS, "netsandbox run")
    return policy_of(parsed, read_config(parsed))


class TestFileAndOptionsTogether:
    @pytest.fixture
    def config(self, tmp_path: Path) -> str:
        file = tmp_path / "rules.toml"
        file.write_text(
            '[network]\nallow_domains = ["file.test"]\ndeny_domains = ["bad.test"]\nallow_addresses = ["192.0.2.1"]\n'
            'upstream_dns = ["192.0.2.53"]\nupstream_proxy = "http://192.0.2.9:3128"\nproxy_env = false\n'
            'allow_unix_sockets = ["/run/x.sock"]\n[audit]\nlog = "/var/log/from-file.jsonl"\n'
        )
        return str(file)

    def test_lists_add_up(self, config: str) -> None:
        both = policy("--config", config, "--allow-domain", "option.test", "--deny-domain", "worse.test")
        assert [rule.text for rule in both.allow_domains] == ["file.test", "option.test"]
        assert [rule.text for rule in both.deny_domains] == ["bad.test", "worse.test"]

    def test_the_mode_on_the_command_line_wins(self, config: str) -> None:
        assert policy("--config", config, "--online").mode == "online"
        assert policy("--config", config, "--offline").mode == "offline"
        assert policy("--config", config).mode == "filtered"

    def test_single_values_of_the_command_line_win(self, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SANDBOX_AUDIT_LOG", raising=False)
        from_file = settings("--config", config)
        assert from_file.upstream_dns == (("192.0.2.53", 53),)
        assert from_file.upstream_proxy == "http://192.0.2.9:3128"
        assert from_file.audit_log == "/var/log/from-file.jsonl"
        assert (from_file.proxy_env, from_file.unix_sockets) == (False, ("/run/x.sock",))
        told = settings("--config", config, "--upstream-dns", "[::1]:5353", "--audit-log", "/tmp/log")
        assert (told.upstream_dns, told.audit_log) == ((("::1", 5353),), "/tmp/log")

    def test_the_variable_stands_between_option_and_file(self, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SANDBOX_AUDIT_LOG", "/tmp/from-variable")
        assert settings("--config", config).audit_log == "/tmp/from-variable"
        assert settings("--audit-log", "/tmp/option").audit_log == "/tmp/option"

    def test_a_file_whose_rules_are_wrong_names_file_and_line(self, tmp_path: Path) -> None:
        file = tmp_path / "rules.toml"
        file.write_text('[network]\nallow_domains = [\n  "fine.test",\n  "*.com",\n]\n')
        with pytest.raises(UsageError) as caught:
            policy("--config", str(file))
        assert f"{file}:4" in str(caught.value)
