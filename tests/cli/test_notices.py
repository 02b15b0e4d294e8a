"""What a user reads after a run: one line a host, with what to do about it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.notices import (
    MAX_FILE_LINES,
    MAX_LINES,
    PROXY_VARIABLES,
    denial_lines,
    file_denial_lines,
    ignored_lines,
    kept_lines,
    outcome_lines,
    shell_word,
)
from netsandbox.paths import PACKAGE
from netsandbox.session.launch import Denial, FileDenial, Outcome


def denial(host: str | None, port: int | None = 443, reason: str = "not-allowed", flag: str | None = "--x") -> Denial:
    return Denial(host, port, reason, flag, 1)


def test_a_deny_rule_is_told_with_the_way_to_its_name() -> None:
    (line,) = denial_lines([denial("a.corp.test", 443, "deny-rule", None)])
    assert line.startswith("denied a.corp.test:443 (deny-rule: it wins over every allow); `netsandbox explain --last`")


def test_a_line_names_host_port_reason_and_the_option_that_would_allow_it() -> None:
    lines = denial_lines([denial("denied.test", 8443, flag="--allow-domain denied.test:8443")])
    assert lines == ["denied denied.test:8443 (not-allowed); allow it with --allow-domain denied.test:8443"]


@pytest.mark.parametrize(
    ("command", "port"),
    [
        (["ssh", "a.test"], ":22"),
        (["/usr/bin/scp", "f", "a.test:"], ":22"),
        (["git", "clone", "ssh://a.test/x"], ":22"),
        (["git", "clone", "git@a.test:x"], ":22"),
        (["git", "clone", "https://a.test/x"], ""),
        (["curl", "a.test"], ""),
        ([], ""),
    ],
)
def test_a_name_that_ssh_looked_up_is_allowed_with_its_port(command: list[str], port: str) -> None:
    """Where the port is known it is in the option already."""
    looked_up = denial("a.test", None, flag="--allow-domain a.test")
    assert denial_lines([looked_up], command)[0].endswith(f"; allow it with --allow-domain a.test{port}")
    dialled = denial("a.test", 8080, flag="--allow-domain a.test:8080")
    assert denial_lines([looked_up, dialled], command)[0].endswith("--allow-domain a.test:8080")


def test_a_proxy_of_the_hosts_variables_is_named_where_a_host_was_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    unreached = denial("a.test", 443, "lookup-failed", None)
    assert denial_lines([unreached])[0].endswith("; check the name and the host's own network")
    monkeypatch.setenv("https_proxy", "http://user:password@proxy.example.com:3128")
    (line,) = denial_lines([unreached])
    assert line.endswith(
        'https_proxy is not used by itself: to connect through it, write --upstream-proxy "$https_proxy"'
    )
    assert "password" not in line


@pytest.mark.parametrize(
    ("address", "warns"),
    [("169.254.169.254", True), ("[fd00:ec2::254]", True), ("10.0.0.1", False), ("169.254.0.1", False), ("x", False)],
)
def test_advice_to_open_a_metadata_service_says_what_that_is(address: str, warns: bool) -> None:
    """By its address, or by a name that resolves to it."""
    for host in (address, "a.test"):
        reason = "offline" if host == address else "address-guard"
        (line,) = denial_lines([denial(host, 80, reason, f"--allow-address {address}:80")])
        assert f"allow it with --allow-address {address}:80" in line
        assert line.endswith(", a service of the cloud that gives out credentials") == warns


def test_where_no_option_helps_the_line_says_so() -> None:
    (line,) = denial_lines([denial("resolver.test", reason="doh-endpoint", flag=None)])
    assert "no option" in line
    assert "--allow" not in line


def test_a_host_refused_at_several_doors_gets_one_line_the_one_with_the_port() -> None:
    lines = denial_lines([denial("a.test", None), denial("a.test", 443), denial("a.test", 80), denial("b.test", None)])
    assert [line.split()[1] for line in lines] == ["a.test:443", "b.test"]


def test_a_refused_unix_socket_or_a_record_without_a_host_is_left_to_the_log() -> None:
    assert denial_lines([denial(None, None, "unix-socket", None), denial(None)]) == []


def test_a_socket_that_an_option_opens_gets_a_line_unless_it_is_a_name_services() -> None:
    refused = denial(None, None, "unix-socket", "--allow-unix-socket /run/user/1/bus")
    habit = denial(None, None, "unix-socket", "--allow-unix-socket /run/nscd/socket")
    assert denial_lines([habit, refused]) == [
        "denied the socket /run/user/1/bus (unix-socket); allow it with --allow-unix-socket /run/user/1/bus"
    ]


def test_what_seatbelt_refused_on_the_network_gets_a_line_by_address_or_port() -> None:
    refused = [denial(None, 443, "seatbelt", None), denial("2001:db8::7", 22, "seatbelt", None)]
    lines = denial_lines([*refused, denial(None, 443, "seatbelt", None)])
    assert [line.partition(";")[0] for line in lines] == [
        "denied port 443 (seatbelt)",
        "denied [2001:db8::7]:22 (seatbelt)",
    ]
    assert all("netsandbox audit" in line for line in lines)


def test_a_file_that_seatbelt_refused_is_left_to_the_log() -> None:
    assert denial_lines([denial(None, None, "seatbelt", None)]) == []


def test_a_flood_of_hosts_is_cut_and_counted() -> None:
    lines = denial_lines(denial(f"n{number}.test") for number in range(MAX_LINES + 5))
    assert len(lines) == MAX_LINES + 1
    assert "5 more" in lines[-1]
    assert "netsandbox audit" in lines[-1]


def test_nothing_denied_nothing_said() -> None:
    assert denial_lines([]) == []


def test_a_line_a_file_with_what_to_do() -> None:
    assert ignored_lines(
        [
            ("network.allow_domains", "/p/.netsandbox.toml:3"),
            ("shell.set_env", "/p/.netsandbox.toml:5"),
            ("network.allow_domains", "/p/.netsandbox.toml:3"),
            ("evil.test:443", "/p/.npmrc:1"),
        ]
    ) == [
        "/p/.netsandbox.toml would open network.allow_domains, shell.set_env; ignored until you run `netsandbox trust`",
        "/p/.npmrc would open evil.test:443; ignored until you run `netsandbox trust /p/.npmrc`",
    ]


def test_a_hostile_path_is_printed_harmlessly() -> None:
    (line,) = ignored_lines([("x.test:443", "/p\x1b[2J/.npmrc:1")])
    assert line.isprintable()


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_the_words_to_say_it_are_one_word_of_the_shell_whatever_the_folder_is_called(name: str) -> None:
    (line,) = ignored_lines([("x.test:443", f"/p/{name}/.npmrc:1")])
    words = line.partition("; ignored until you run `")[2][:-1]
    assert shlex.split(words) == ["netsandbox", "trust", f"/p/{name}/.npmrc"]


def test_a_path_that_needs_no_quotes_begins_with_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert shell_word("/home/me/.npmrc") == "~/.npmrc"
    assert shell_word("/home/me/a;b/.npmrc") == "'/home/me/a;b/.npmrc'"


def test_refused_files_get_one_line_for_each_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    denials = [
        FileDenial(f"{tmp_path}/Documents/a", "read", 3, "not-shown"),
        FileDenial(f"{tmp_path}/Documents/b", "read", 1, "not-shown"),
        FileDenial(f"{tmp_path}/Documents/b", "make", 1, "not-shown"),
        FileDenial(f"{tmp_path}/.bashrc", "read", 1, "not-shown"),
        FileDenial(f"{tmp_path}/tools/t", "execute", 1, "not-shown"),
    ]
    assert file_denial_lines(denials) == [
        "denied reading ~/Documents/a and 1 more; show them with --allow-read ~/Documents",
        "denied writing ~/Documents/b; allow it with --allow-write ~/Documents",
        "denied executing ~/tools/t; show it with --allow-read ~/tools/t",
    ]


def test_one_refused_file_does_not_open_its_neighbours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    denials = [FileDenial(f"{tmp_path}/tls/ca.pem", done, 1, "not-shown") for done in ("read", "execute", "change")]
    assert file_denial_lines(denials) == [
        "denied reading ~/tls/ca.pem; show it with --allow-read ~/tls/ca.pem",
        "denied writing ~/tls/ca.pem; allow it with --allow-write ~/tls/ca.pem",
    ]


def test_what_the_user_refused_is_named_without_an_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    denials = [
        FileDenial(f"{tmp_path}/tls/ca.key", "read", 1, "denied-by-user"),
        FileDenial(f"{tmp_path}/tls/ca.pem", "read", 1, "unanswered"),
    ]
    assert file_denial_lines(denials) == [
        "denied reading ~/tls/ca.key (denied-by-user); your answer held for this session",
        "denied reading ~/tls/ca.pem; show it with --allow-read ~/tls/ca.pem",
    ]


def test_a_login_that_a_successful_command_did_not_need_is_not_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    denials = [FileDenial(f"{tmp_path}/{name}", "read", 1, "not-shown") for name in (".npmrc", ".ssh/id_rsa")]
    told = file_denial_lines(denials, succeeded=True)
    assert told == []
    login, _ = file_denial_lines(denials)
    assert login == (
        "denied reading ~/.npmrc, which package managers look for at each start; show it with --allow-read ~/.npmrc,"
        " which holds secrets"
    )


def test_what_was_printed_when_it_happened_is_not_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    files = tuple(FileDenial(f"{tmp_path}/{name}", "read", 1, "not-shown") for name in (".npmrc", "plan.md"))

    def lines(status: int, *, debug: bool) -> str:
        return "\n".join(outcome_lines(Outcome(status, "s", "log", (denial("a.test"),), files), ["npm"], debug=debug))

    assert [word in lines(1, debug=False) for word in ("a.test", ".npmrc", "plan.md")] == [True, True, True]
    assert [word in lines(1, debug=True) for word in ("a.test", ".npmrc", "plan.md")] == [False, True, False]
    assert lines(0, debug=True) == ""


def test_many_refused_files_and_bad_names_stay_few_plain_lines() -> None:
    lines = file_denial_lines([FileDenial(f"/srv/{n}/a\x1b[2J", "read", 1, "not-shown") for n in range(100)])
    assert len(lines) == MAX_FILE_LINES + 1
    assert all(line.isprintable() and line.isascii() for line in lines)
    assert "95 more paths" in lines[-1]


def test_a_file_that_a_rule_denies_names_the_rule() -> None:
    rule = "deny_write /srv/a (/srv/f.toml:3)"
    denials = [
        FileDenial("/srv/a/b", "make", 1, "deny-rule", "--deny-write /srv/a"),
        FileDenial("/srv/a/c", "change", 1, "deny-rule", "--deny-write /srv/a"),
        FileDenial("/srv/a/c", "change", 1, "deny-rule", rule),
        FileDenial("/srv/p/.git/commondir", "change", 1, "read-only"),
    ]
    assert file_denial_lines(denials) == [
        "denied writing /srv/a/b and 1 more; leave out --deny-write /srv/a to allow it",
        f"denied writing /srv/a/c; remove {rule} to allow it",
    ]


def test_kept_files_are_one_line() -> None:
    assert kept_lines(()) == []
    (line,) = kept_lines([f"/srv/{n}" for n in range(5)])
    assert line == "kept inside: /srv/0, /srv/1, /srv/2 and 2 more; `netsandbox home` shows it"


def test_a_link_is_named_with_where_it_leads_and_ours_with_why_nothing_opens_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data/in").mkdir(parents=True)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/link").symlink_to(tmp_path / "data/in")
    denials = [
        FileDenial(f"{os.path.realpath(tmp_path)}/shop/link/f", "read", 1, "not-shown"),
        FileDenial(f"{os.path.realpath(PACKAGE)}/x.py", "make", 1, "read-only"),
    ]
    link, ours = file_denial_lines(denials)
    assert link == "denied reading ~/shop/link/f, a link to ~/data/in/f; show it with --allow-read ~/data/in/f"
    assert ours.endswith("x.py; no option allows it, because it belongs to netsandbox")


def test_a_budget_is_said_to_be_used_up() -> None:
    (line,) = denial_lines([denial("a.test", 443, "budget", None)])
    assert line == "denied a.test:443 (budget: it is used up); `netsandbox explain --last` names it"


def test_refused_requests_are_named_one_by_one() -> None:
    flag = "--allow-http 'POST https://a.test/x'"
    lines = denial_lines(
        [
            Denial("a.test", 443, "request-not-allowed", flag, 2, "POST https://a.test/x"),
            Denial("a.test", 443, "request-denied", None, 1, "GET https://a.test/y"),
            Denial("a.test", 443, "request-unclear", None, 1, "GET https://a.test//z"),
        ]
    )
    assert lines[0] == f"denied POST https://a.test/x (request-not-allowed), 2 times; allow it with {flag}"
    assert lines[1].startswith("denied GET https://a.test/y (request-denied); a --deny-http rule wins over every allow")
    assert lines[2].startswith("denied GET https://a.test//z (request-unclear); send the path without ")


def test_a_flood_of_denials_does_not_pass_for_all_of_them() -> None:
    """Attack: requests that are refused fill the list, and a host that is refused later is not in it."""
    flood = [Denial("a.test", 443, "request-denied", None, 1, f"GET https://a.test/{each}") for each in range(256)]
    told = "only the first 256 kinds of denials are named here; see `netsandbox audit summary`"
    assert denial_lines(flood)[-1] == told
    assert told not in denial_lines(flood[:255])


def test_many_refused_requests_of_a_host_are_counted() -> None:
    denials = [Denial("a.test", 443, "request-not-allowed", "--x", 1, f"GET https://a.test/{n}") for n in range(30)]
    lines = denial_lines(denials)
    assert len(lines) == 5
    assert lines[-1] == "denied 26 more requests to a.test; see `netsandbox audit show --http --denied`"


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("certificate", "add the server's CA to the system's or to the file in SSL_CERT_FILE, or correct the server"),
        (
            "client-tls",
            "let it trust the file in SSL_CERT_FILE, or exempt the host: --inspect-except a.test:443 --allow-domain"
            " a.test:443",
        ),
        (
            "secret-misplaced",
            "send it to its host, in its header or parameter; add places with --secret NAME@HOST,header=NAME",
        ),
        ("request-method", "no option allows it; see `netsandbox audit show`"),
    ],
)
def test_a_refused_connection_that_no_option_allows_says_what_helps(reason: str, remedy: str) -> None:
    assert denial_lines([denial("a.test", reason=reason, flag=None)]) == [f"denied a.test:443 ({reason}); {remedy}"]
