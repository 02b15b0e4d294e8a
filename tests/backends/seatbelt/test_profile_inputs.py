"""The profile of a session that is about to run: its real doors and places, and nothing that was not meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from netsandbox_interpose.library import LIBRARY
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

from netsandbox.backends.seatbelt.case_paths import true_path
from netsandbox.backends.seatbelt.localhost_settings import mac_settings
from netsandbox.backends.seatbelt.profile import mac_paths
from netsandbox.backends.seatbelt.profile_inputs import (
    ProfilePaths,
    SessionPorts,
    has_door,
    profile_text,
    temporary_folder,
)
from netsandbox.backends.seatbelt.reservation import SeatbeltReservation
from netsandbox.cli.dry_run import SESSION, dry_profile, stand_ins
from netsandbox.errors import HostError, UsageError
from netsandbox.frozen import copy_with
from netsandbox.paths import log_path, new_session_id
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.policy.policy import Policy
from netsandbox.settings import Command, RunSettings
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import Endpoint, Request

ALLOWING = Policy(allow_domains=["example.com"])


@pytest.fixture
def held(place: Path) -> Iterator[SeatbeltReservation]:
    (place / "state").mkdir()
    made = take(place, opens=True)
    yield made
    made.close()


def take(place: Path, *, opens: bool) -> SeatbeltReservation:
    wanted = LocalhostSettings(strategy="fail", count=3, connect_host=(HostPort(5432),))
    settings = mac_settings(wanted, library=os.path.exists(LIBRARY))
    return SeatbeltReservation(settings, str(place / "state"), new_session_id(), opens=opens)


def text(
    held: SeatbeltReservation, policy: Policy = ALLOWING, command: str = "sh", log: str = "", **settings: Any
) -> str:
    temporary = settings.pop("temporary", "")
    with open(os.devnull) as nothing:
        paths = ProfilePaths(
            log or settings.get("audit_log") or "/nowhere",
            held.map.path if held.map is not None else "",
            temporary=temporary,
        )
        words = Command([command], os.environb, (nothing.fileno(), 1, 2))
        wanted = RunSettings(localhost=held.settings, **settings)
        return profile_text(policy, wanted, words, held.ports(), paths)


def outbound(protocol: str, address: str, port: int) -> Request:
    return Request("network-outbound", remote=Endpoint(protocol, ip_address(address), port))


def resolved(path: Path) -> str:
    return mac_paths.resolved(os.path.realpath(path))


def test_the_doors_are_those_that_listen(held: SeatbeltReservation) -> None:
    written = text(held)
    assert held.mixed is not None
    assert held.dns is not None
    assert f'(remote tcp "localhost:{held.mixed.port}")' in written
    assert f'(remote udp "localhost:{held.mixed.port}")' not in written
    for protocol in ("tcp", "udp"):
        assert f'(remote {protocol} "localhost:{held.dns.port}")' in written
    assert f'"localhost:{held.closed.port}"' not in written
    assert '(remote tcp "localhost:5432")' in written
    assert held.window is not None
    for port in held.window.ports:
        assert f'(local ip "localhost:{port}")' in written


def test_where_nothing_may_leave_no_door_is_opened(place: Path) -> None:
    assert not has_door(Policy())
    (place / "state").mkdir()
    held = take(place, opens=False)
    written = text(held, Policy())
    held.close()
    doors = written.partition("; The doors: the only ways out.")[2]
    assert doors.count("localhost:") == (0 if held.requests is None else 1)
    assert "udp" not in doors


def test_doors_that_the_policy_does_not_want_are_an_error(held: SeatbeltReservation) -> None:
    """INV-1: the profile is made from both, and they must agree."""
    with pytest.raises(UsageError, match="no doors to the network"):
        text(held, Policy())


def test_the_linter_finds_nothing_in_it(held: SeatbeltReservation) -> None:
    assert [finding for finding in lint(load(text(held))) if finding.severity == "error"] == []


def test_our_own_places_are_closed_and_our_code_is_sealed(held: SeatbeltReservation, place: Path) -> None:
    """INV-8."""
    written = text(held, audit_log=str(place / "work" / "audit.jsonl"), configs=(str(place / "work" / "policy.toml"),))
    hidden = written.partition("; Ours: state, audit log")[2].partition("\n\n")[0]
    for path in (place / "state" / "netsandbox", place / "work" / "audit.jsonl", place / "work" / "audit.jsonl.6"):
        assert f'(subpath "{resolved(path)}")' in hidden
    sealed = written.partition("; Ours, or open for reading only")[2].partition("\n\n")[0]
    assert "netsandbox_proxy" in sealed
    assert "policy.toml" in sealed


@pytest.mark.attack(148, 150)
def test_the_users_configuration_is_not_written_even_where_its_folder_is(
    held: SeatbeltReservation, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-8: a file there counts without being trusted, so a command that made one would allow itself more."""
    folder = place / "settings"
    folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    profile = load(text(held, files=FileRules(allow_write=(PathRule(str(folder), "--allow-write"),))))
    assert allowed_under_all(profile, Request("file-write-create", path=str(folder / "other.toml")))
    for name in ("netsandbox", "netsandbox/config.toml", "netsandbox/profiles/base.toml"):
        assert denied_under_all(profile, Request("file-write-create", path=str(folder / name)))
    assert denied_under_all(profile, Request("file-write-unlink", path=str(folder / "netsandbox")))


@pytest.mark.attack(146)
@pytest.mark.parametrize("said", ["allow_read", "allow_write", "allow_execute"])
def test_146_a_link_in_the_project_opens_nothing_elsewhere(
    held: SeatbeltReservation, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """An earlier command may have put it where the user allows a folder; written out, the place is the user's word."""
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs._temporary", lambda *_: ())
    elsewhere, link = tmp_path_factory.mktemp("elsewhere"), Path(os.getcwd(), "build")
    link.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="which a command could have made"):
        text(held, files=FileRules(**{said: (PathRule(str(link), "x:1"),)}))
    assert resolved(elsewhere) in text(held, files=FileRules(**{said: (PathRule(str(elsewhere), "x:1"),)}))


@pytest.mark.attack(146)
def test_146_a_link_in_the_project_opens_no_socket_elsewhere(
    held: SeatbeltReservation, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs._temporary", lambda *_: ())
    agent, link = tmp_path_factory.mktemp("elsewhere") / "agent.sock", Path(os.getcwd(), "db.sock")
    agent.touch()
    link.symlink_to(agent)
    with pytest.raises(UsageError, match="which a command could have made"):
        text(held, Policy(allow_domains=["example.com"], allow_unix_sockets=[str(link)]))
    assert resolved(agent) in text(held, Policy(allow_domains=["example.com"], allow_unix_sockets=[str(agent)]))


@pytest.mark.attack(146)
def test_146_a_link_that_is_exchanged_meanwhile_opens_nothing(
    held: SeatbeltReservation, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a session of another terminal: a folder when links are looked for, a link when the path is resolved."""
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs._temporary", lambda *_: ())
    elsewhere, link = tmp_path_factory.mktemp("elsewhere"), Path(os.getcwd(), "build")
    looks = 0

    def exchanging(path: str) -> str:
        nonlocal looks
        if path != str(link):
            return true_path(path)
        looks += 1
        return str(elsewhere)

    monkeypatch.setattr("netsandbox.backends.seatbelt.case_paths.true_path", exchanging)
    with pytest.raises(HostError, match="leads elsewhere each time"):
        text(held, files=FileRules(allow_write=(PathRule(str(link), "x:1"),)))
    assert looks == 1


def test_a_folder_of_logs_is_hidden_whole(held: SeatbeltReservation, place: Path) -> None:
    """INV-8: the other sessions' too."""
    folder = place / "logs"
    written = text(held, audit_log=f"{folder}/", log=str(folder / "session.jsonl"))
    hidden = written.partition("; Ours: state, audit log")[2].partition("\n\n")[0]
    assert f'(subpath "{resolved(folder)}")' in hidden


@pytest.mark.parametrize("named", ["tool", "folder/tool"])
def test_the_command_itself_may_be_run_wherever_it_is(
    held: SeatbeltReservation, place: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    tool = place / "elsewhere" / "folder" / "tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"relative:/usr/bin:{tool.parent}")
    written = text(held, command=str(place / "elsewhere" / named) if "/" in named else named)
    assert (
        f'(subpath "{resolved(tool)}")'
        in written.partition("; Programs of all these may be run")[2].partition("\n\n")[0]
    )


def test_a_command_that_is_nowhere_opens_nothing(held: SeatbeltReservation) -> None:
    assert text(held, command="no-such-command") == text(held, command="./no-such-command")


def test_without_a_home_directory_there_is_no_profile(
    held: SeatbeltReservation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    with pytest.raises(UsageError):
        text(held)


def test_a_working_directory_that_is_gone_is_an_error(held: SeatbeltReservation, place: Path) -> None:
    (place / "work").rmdir()
    with pytest.raises(UsageError, match="working directory"):
        text(held)


def test_under_every_model_the_door_is_open_and_the_port_of_the_self_test_is_not(held: SeatbeltReservation) -> None:
    """Otherwise the helper would stop every session, or none."""
    profile = load(text(held))
    assert held.mixed is not None
    assert held.dns is not None
    for address in ("127.0.0.1", "::1"):
        for protocol, door in (("tcp", held.mixed), ("tcp", held.dns), ("udp", held.dns)):
            assert allowed_under_all(profile, outbound(protocol, address, door.port))
        for protocol, door in (("tcp", held.closed), ("udp", held.closed), ("udp", held.mixed)):
            assert denied_under_all(profile, outbound(protocol, address, door.port))


@pytest.mark.parametrize("address", ["192.0.2.53", "2001:db8::53"])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_under_every_model_a_resolver_elsewhere_stays_closed(
    held: SeatbeltReservation, protocol: str, address: str
) -> None:
    """INV-7: also for whoever goes around the library."""
    profile = load(text(held))
    assert held.dns is not None
    for port in (53, held.dns.port):
        assert denied_under_all(profile, outbound(protocol, address, port))


@pytest.mark.parametrize("audit_log", [None, "audit.jsonl", "logs/"])
@pytest.mark.parametrize("policy", [ALLOWING, Policy()])
def test_a_dry_run_prints_what_a_session_applies(place: Path, policy: Policy, audit_log: str | None) -> None:
    """The same packages sealed, the same places hidden; but for the numbers and the id that stand in."""
    pytest.importorskip("netsandbox_interpose._native")
    (place / "state").mkdir()
    session = take(place, opens=has_door(policy))
    wanted = copy_with(session.settings, chosen=True)
    settings = RunSettings(localhost=wanted, configs=(str(place / "policy.toml"),), audit_log=audit_log)
    dry = dry_profile(policy, settings).partition("\n\n")[2]
    applied = text(
        session,
        policy,
        "no-such-command",
        log=log_path(session.session, audit_log),
        configs=settings.configs,
        audit_log=audit_log,
        temporary=temporary_folder(os.environb, session.session),
    )
    session.close()
    stood_in = stand_ins(wanted, opens=has_door(policy))
    named = applied.replace(session.session, SESSION).replace(f"ns-{session.session.rpartition('-')[2]}", "ns-SESSION")
    assert lines(named, session.ports()) == lines(dry, stood_in)


def lines(profile: str, ports: SessionPorts) -> list[str]:
    """What *profile* says, whatever the numbers of *ports* are; rules name ports in the order of their numbers."""
    roles = {str(ports.base + at): f"window {at}" for at in range(ports.count)}
    roles |= {str(port): name for name, port in vars(ports).items() if name in ("http", "dns", "requests")}
    named = re.sub(r"(?<=localhost:)\d+", lambda found: roles.get(found[0], found[0]), profile)
    return sorted(line.rstrip(")") for line in named.splitlines())


def test_what_this_mac_signed_is_read_and_mapped_under_every_model_and_written_under_none(
    held: SeatbeltReservation, place: Path
) -> None:
    """INV-8: though it is in a folder that the session may write."""
    profile = load(text(held))
    library = resolved(place / "state" / "netsandbox-signed" / "a" / "libnetsandbox_interpose.dylib")
    for operation in ("file-read-data", "file-map-executable"):
        assert allowed_under_all(profile, Request(operation, path=library))
        assert denied_under_all(profile, Request(operation, path=resolved(place / "state" / "netsandbox" / "a")))
    for operation in ("file-write-data", "file-write-create", "file-write-unlink"):
        assert denied_under_all(profile, Request(operation, path=library))
        assert allowed_under_all(profile, Request(operation, path=resolved(place / "work" / "a")))


# What the rules for files become


def judged(held: SeatbeltReservation, **settings: Any) -> Profile:
    return load(text(held, **settings))


def rule(path: Path | str) -> tuple[PathRule, ...]:
    return (PathRule(str(path), "--option"),)


def test_the_project_is_written_from_a_folder_in_it_and_its_neighbour_is_closed(
    held: SeatbeltReservation, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs._temporary", lambda *_: ())
    inner = place / "work" / "app" / "src"
    inner.mkdir(parents=True)
    (place / "work" / "app" / ".git").mkdir()
    monkeypatch.chdir(inner)
    profile = judged(held)
    app = resolved(place / "work" / "app")
    assert allowed_under_all(profile, Request("file-write-create", path=f"{app}/x"))
    assert denied_under_all(profile, Request("file-read-data", path=f"{resolved(place / 'work')}/other/x"))
    for name in (".git/config", ".git/hooks/x", ".git/commondir", ".vscode/x", "src/.envrc"):
        assert denied_under_all(profile, Request("file-write-create", path=f"{app}/{name}"))
    opened = judged(held, files=FileRules(mode="open"))
    assert allowed_under_all(opened, Request("file-write-create", path=f"{app}/.git/config"))
    assert allowed_under_all(opened, Request("file-read-data", path=f"{resolved(place / 'work')}/other/x"))


def test_a_session_has_a_temporary_folder_of_its_own_and_shares_the_users_only_if_told(
    held: SeatbeltReservation, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = place / "T"
    users.mkdir()
    monkeypatch.setenv("TMPDIR", str(users))
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs.BUILT_IN", ("/var/tmp",))
    own = temporary_folder(os.environb, "20250101T000000000-0123456789abcdef")
    assert own == f"{os.path.realpath(users)}/ns-0123456789abcdef"
    profile = judged(held, temporary=own)
    assert allowed_under_all(profile, Request("file-write-create", path=f"{resolved(users)}/ns-0123456789abcdef/x"))
    assert denied_under_all(profile, Request("file-read-data", path=f"{resolved(users)}/other"))
    assert allowed_under_all(profile, Request("file-write-create", path="/private/var/tmp/x"))
    assert allowed_under_all(judged(held), Request("file-read-data", path=f"{resolved(users)}/other"))


def test_a_path_that_is_closed_for_writing_need_not_exist(held: SeatbeltReservation, place: Path) -> None:
    fixed, missing = place / "work" / "fixed", place / "work" / "later" / "deep"
    fixed.mkdir()
    profile = judged(held, files=FileRules(deny_write=(*rule(fixed), *rule(missing))))
    for path in (fixed, fixed / "x", missing, missing / "x", place / "work" / "LATER" / "Deep"):
        assert denied_under_all(profile, Request("file-write-create", path=resolved(path)))
    assert allowed_under_all(profile, Request("file-write-create", path=resolved(place / "work" / "fixed2")))


def test_a_tool_on_path_can_be_run_wherever_it_is(
    held: SeatbeltReservation, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs._temporary", lambda *_: ())
    tools = place / "tools" / "bin"
    tools.mkdir(parents=True)
    program = Request("process-exec", path=resolved(tools / "node"))
    assert denied_under_all(judged(held), program)
    monkeypatch.setenv("PATH", f"/usr/bin:{tools}")
    profile = judged(held)
    assert allowed_under_all(profile, program)
    assert denied_under_all(profile, Request("file-write-create", path=resolved(tools / "node")))


@pytest.mark.attack(146)
def test_146_a_command_that_is_a_link_in_the_project_opens_nothing_elsewhere(
    held: SeatbeltReservation, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs._temporary", lambda *_: ())
    plan, link = place / "plan", Path(os.getcwd(), "tool")
    plan.touch()
    link.symlink_to(plan)
    request = Request("file-read-data", path=resolved(plan))
    assert denied_under_all(load(text(held, command="./tool")), request)
    assert allowed_under_all(load(text(held, command=str(plan))), request)


@pytest.mark.attack(290)
def test_290_the_folder_of_an_agent_is_read_only_except_for_what_goes_back(
    held: SeatbeltReservation, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are no copies on a Mac."""
    monkeypatch.setattr("netsandbox.backends.seatbelt.profile_inputs._temporary", lambda *_: ())
    folder = place / "agent"
    (folder / "projects").mkdir(parents=True)
    rules = FileRules(copies=rule(folder), allow_write=(*rule(folder / "projects"), *rule(folder / "login.json")))
    profile, own = judged(held, files=rules), resolved(folder)
    assert allowed_under_all(profile, Request("file-read-data", path=f"{own}/settings.json"))
    for name in ("projects/1.jsonl", "login.json"):
        assert allowed_under_all(profile, Request("file-write-create", path=f"{own}/{name}"))
    for name in ("settings.json", "shell-snapshots/x.sh", "hooks/x", "login.json.d"):
        assert denied_under_all(profile, Request("file-write-create", path=f"{own}/{name}"))
