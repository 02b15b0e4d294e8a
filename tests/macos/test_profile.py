"""The profile of a session that is about to run: its real doors and places, and nothing that was not meant."""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from netsandbox.audit.places import new_session_id
from netsandbox.errors import UsageError
from netsandbox.localhost.settings import LocalhostSettings
from netsandbox.macos.localhost_settings import mac_settings
from netsandbox.macos.profile import has_door, profile_text
from netsandbox.macos.reservation import MacReservation
from netsandbox.policy.policy import Policy
from netsandbox.seatbelt.evaluator import allowed_under_all, denied_under_all
from netsandbox.seatbelt.lint import lint
from netsandbox.seatbelt.places import plain
from netsandbox.seatbelt.profile import load
from netsandbox.seatbelt.request import Endpoint, Request
from netsandbox.settings import RunSettings

ALLOWING = Policy(allow_domains=["example.com"])


@pytest.fixture
def held(place: Path) -> Iterator[MacReservation]:
    settings = mac_settings(LocalhostSettings(strategy="fail", count=3, connect_host=(5432,)))
    (place / "state").mkdir()
    made = MacReservation(settings, str(place / "state"), new_session_id())
    yield made
    made.close()


def text(held: MacReservation, policy: Policy = ALLOWING, command: str = "sh", log: str = "", **settings: Any) -> str:
    with open(os.devnull) as nothing:
        return profile_text(
            policy,
            RunSettings(localhost=held.settings, **settings),
            os.environb,
            held,
            command,
            log=log or settings.get("audit_log") or "/nowhere",
            stdin=nothing.fileno(),
        )


def resolved(path: Path) -> str:
    return plain(os.path.realpath(path))


def test_the_doors_are_those_that_listen(held: MacReservation) -> None:
    written = text(held)
    assert f'(remote tcp "localhost:{held.mixed.port}")' in written
    assert f'"localhost:{held.closed.port}"' not in written
    assert '(remote tcp "localhost:5432")' in written
    assert held.window is not None
    for port in held.window.ports:
        assert f'(local ip "localhost:{port}")' in written


def test_where_nothing_may_leave_no_door_is_opened(held: MacReservation) -> None:
    assert not has_door(Policy())
    assert f"localhost:{held.mixed.port}" not in text(held, Policy())


def test_the_linter_finds_nothing_in_it(held: MacReservation) -> None:
    assert [finding for finding in lint(load(text(held))) if finding.severity == "error"] == []


def test_our_own_places_are_closed_and_our_code_is_sealed(held: MacReservation, place: Path) -> None:
    """INV-8."""
    written = text(held, audit_log=str(place / "work" / "audit.jsonl"), configs=(str(place / "work" / "policy.toml"),))
    hidden = written.partition("; Ours: state, audit log")[2].partition("\n\n")[0]
    for path in (place / "state" / "netsandbox", place / "work" / "audit.jsonl", place / "work" / "audit.jsonl.6"):
        assert f'(subpath "{resolved(path)}")' in hidden
    sealed = written.partition("; Ours, or open for reading only")[2].partition("\n\n")[0]
    assert "netsandbox_proxy" in sealed
    assert "policy.toml" in sealed


def test_a_folder_of_logs_is_hidden_whole(held: MacReservation, place: Path) -> None:
    """INV-8: the other sessions' too."""
    folder = place / "logs"
    written = text(held, audit_log=f"{folder}/", log=str(folder / "session.jsonl"))
    hidden = written.partition("; Ours: state, audit log")[2].partition("\n\n")[0]
    assert f'(subpath "{resolved(folder)}")' in hidden


@pytest.mark.parametrize("named", ["tool", "folder/tool"])
def test_the_command_itself_may_be_run_wherever_it_is(
    held: MacReservation, place: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    tool = place / "elsewhere" / "folder" / "tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"relative:/usr/bin:{tool.parent}")
    written = text(held, command=str(place / "elsewhere" / named) if "/" in named else named)
    assert f'(subpath "{resolved(tool)}")' in written.partition("; Programs may be run")[2].partition("\n\n")[0]


def test_a_command_that_is_nowhere_opens_nothing(held: MacReservation) -> None:
    assert text(held, command="no-such-command") == text(held, command="./no-such-command")


def test_without_a_home_directory_there_is_no_profile(held: MacReservation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    with pytest.raises(UsageError):
        text(held)


def test_a_working_directory_that_is_gone_is_an_error(held: MacReservation, place: Path) -> None:
    (place / "work").rmdir()
    with pytest.raises(UsageError, match="working directory"):
        text(held)


def test_under_every_model_the_door_is_open_and_the_port_of_the_self_test_is_not(held: MacReservation) -> None:
    """Otherwise the helper would stop every session, or none."""
    profile = load(text(held))
    for address in ("127.0.0.1", "::1"):
        door, closed = (
            Request("network-outbound", remote=Endpoint("tcp", ip_address(address), port))
            for port in (held.mixed.port, held.closed.port)
        )
        assert allowed_under_all(profile, door)
        assert denied_under_all(profile, closed)
