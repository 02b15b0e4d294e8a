"""Options that do less than they seem to get a line each before the command runs."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.backends.linux import socket_diag
from netsandbox.backends.seatbelt.signing import Parts
from netsandbox.cli import setting_notices
from netsandbox.cli.setting_notices import (
    MAX_LINES,
    TOOLS,
    bare_name_lines,
    checked_doors,
    contradiction_lines,
    localhost_lines,
    no_socket_lines,
    session_lines,
    unheard_lines,
    unset_lines,
)
from netsandbox.config.profiles.profile_files import BUILT_IN_FOLDER, find
from netsandbox.policy.overruled import overruled
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_domain
from netsandbox.settings import RunSettings
from netsandbox.system import IS_LINUX
from tests.rig.live import sessions


def test_verbose_names_the_weaker_backend() -> None:
    lines = session_lines(Policy(), RunSettings(backend="broker"))
    assert lines[1].startswith("backend broker, which is weaker than namespaces: ")
    assert not any(line.startswith("backend ") for line in session_lines(Policy(), RunSettings()))


def test_contradictory_rules_are_named_both() -> None:
    policy = Policy([parse_domain("a.test", "rules.toml:3")], [parse_domain("a.test", "--deny-domain")])
    assert contradiction_lines(overruled(policy), verbose=False) == [
        "rules.toml:3: a.test is denied by --deny-domain (a.test), which wins; leave one of them out"
    ]


def test_a_part_of_a_profile_may_be_denied_without_a_line() -> None:
    policy = Policy([parse_domain("a.test", f"{BUILT_IN_FOLDER}/x.profile.toml:3")], ["a.test"])
    assert contradiction_lines(overruled(policy), verbose=False) == []
    assert len(contradiction_lines(overruled(policy), verbose=True)) == 1


def test_a_rule_for_localhost_is_answered_with_the_option_that_was_meant() -> None:
    names = ("localhost:3000", "a.localhost", "notlocalhost", "a.test")
    rules = Policy([parse_domain(name, "--allow-domain") for name in names]).allow_domains
    assert localhost_lines(rules) == [
        "--allow-domain: localhost:3000 is the session's own, and needs no rule; to reach a server of this machine use"
        " --connect-host 3000",
        "--allow-domain: a.localhost is the session's own, and needs no rule; to reach a server of this machine use"
        " --connect-host PORT",
    ]


def test_a_name_without_a_dot_says_what_may_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "hosts"
    listed.write_text("127.0.0.1 localhost\n192.0.2.7 Mirror other # cache\n")
    monkeypatch.setattr("netsandbox.cli.setting_notices.HOSTS", str(listed))
    names = ("registry", "uv", "intranet", "mirror", "localhost", "git:8443", "cache")
    rules = [parse_domain(name, "--allow-domain") for name in names]
    assert bare_name_lines(rules) == [
        "--allow-domain: registry is one host called registry; for its hosts use the profile: -p node",
        "--allow-domain: uv is one host called uv; for its hosts use the profile: -p uv",
        "--allow-domain: intranet is one host called intranet; write the whole name",
        "--allow-domain: cache is one host called cache; write the whole name",
    ]
    for missing in (tmp_path / "missing", tmp_path):
        monkeypatch.setattr("netsandbox.cli.setting_notices.HOSTS", str(missing))
        assert len(bare_name_lines(rules)) == 5


def test_every_profile_that_a_word_stands_for_exists() -> None:
    assert all(find(profile) for profile in TOOLS.values())


def test_many_contradictions_stay_few_plain_lines() -> None:
    names = [f"x{number}.test" for number in range(MAX_LINES + 2)]
    lines = contradiction_lines(overruled(Policy(names, names)), verbose=False)
    assert len(lines) == MAX_LINES + 1
    assert lines[-1].startswith("and 2 more names")
    hostile = parse_domain("a.test", "\x1b[2J.toml:1")
    (line,) = contradiction_lines([(hostile, hostile)], verbose=False)
    assert line.isprintable()


def test_a_variable_that_nobody_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "x")
    assert unset_lines(["SHOP_TOKEN", "shop_token", "SHOP_*"]) == []
    monkeypatch.delenv("SHOP_TOKEN")
    assert unset_lines(["SHOP_TOKEN", "SHOP_TOKEN"]) == [
        "--pass-env SHOP_TOKEN: this variable is not set here, so nothing is passed; set and export it, or leave it out"
    ]
    assert "no variable here has such a name" in unset_lines(["SHOP_*"])[0]


@pytest.mark.skipif(not IS_LINUX, reason="queries the kernel of Linux")
def test_a_port_where_nobody_listens_is_named_and_one_with_a_server_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert unheard_lines([HostPort(port)]) == []
    (line,) = unheard_lines([HostPort(port)])
    assert line.startswith(f"--connect-host {port}: nothing listens at port {port} of this machine's localhost yet")
    assert line.endswith(f"use --publish {port}")

    def refuse(*_: object) -> object:
        raise OSError("the kernel refuses to list sockets")

    monkeypatch.setattr(socket_diag, "dump", refuse)
    assert unheard_lines([HostPort(port)]) == []
    monkeypatch.setattr(setting_notices, "IS_LINUX", False)
    assert unheard_lines([HostPort(port)]) == []


def test_a_path_without_a_socket_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s"
    assert no_socket_lines([str(path), str(path), "relative"]) == [
        f"--allow-unix-socket {path}: nothing is there yet; start its server first, or correct the path"
    ]
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert no_socket_lines([str(path)]) == []
    path.unlink()
    path.touch()
    assert "this is not a socket" in no_socket_lines([str(path)])[0]


@pytest.mark.skipif(not IS_LINUX, reason="only sessions of Linux reach one another")
def test_a_session_that_is_not_there_yet_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (line,) = unheard_lines(checked_doors((HostPort(5432, session="db"),)))
    assert line == "--connect-host db:5432: no session is called db yet; start it with `netsandbox run --name db`"
    with sessions({"name": "db"}):
        assert unheard_lines(checked_doors((HostPort(3000, session="db"),))) == []
        (line,) = unheard_lines(checked_doors((HostPort(1, 5432, session="db"),)))
    assert line == "--connect-host 1:db:5432: the session db publishes no port 5432 yet; start its server there"
    with sessions({"name": "db", "ports": [], "publishes": False}):
        (line,) = unheard_lines(checked_doors((HostPort(5432, session="db"),)))
    assert line == "--connect-host db:5432: the session db does not publish port 5432; start it with --publish 5432"


@pytest.mark.parametrize("why", ["", "there is no codesign"])
def test_verbose_says_on_a_mac_why_it_did_not_sign(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.signing.signed_parts", lambda: Parts(unsigned=why))
    monkeypatch.setattr("netsandbox.cli.setting_notices.IS_MACOS", True)
    monkeypatch.setattr("netsandbox.cli.file_notices.IS_MACOS", True)
    told = "\n".join(session_lines(Policy(), RunSettings()))
    assert ("not signed by this Mac" in told) == bool(why)
    assert why in told
