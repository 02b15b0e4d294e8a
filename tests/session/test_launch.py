"""What a session's process passes to the command and reports of it; tests/api and tests/cli see the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.policy import reasons
from netsandbox.policy.variables import Layer
from netsandbox.session import launch
from netsandbox.settings import RunSettings


def test_variables_that_look_like_secrets_are_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "hush")
    monkeypatch.setenv("B_TOKEN", "named")
    settings = RunSettings(variables=(Layer(passed=("B_TOKEN",)),), set_env=(("C_TOKEN", "s\udcff"),))
    inside = launch.inherited(settings)
    assert b"A_TOKEN" not in inside
    assert (inside[b"B_TOKEN"], inside[b"C_TOKEN"]) == (b"named", b"s\xff")


@pytest.mark.parametrize(("session", "times"), [("x-0", 1), ("x-1", 0)])
def test_logs_are_swept_after_one_session_in_sixteen(session: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[None] = []
    monkeypatch.setattr("netsandbox.audit.sweep.sweep", lambda: swept.append(None))
    launch.sweep_logs(session)
    assert len(swept) == times


@pytest.mark.parametrize(
    ("operation", "rule", "flag"),
    [
        ("read", None, "--allow-read ~/Documents/plan.md"),
        ("make", None, "--allow-write ~/Documents"),
        ("read", "--deny-read ~/Documents", None),
    ],
)
def test_a_refused_file_has_the_option_that_opens_it(
    operation: str, rule: str | None, flag: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.path.realpath(tmp_path)
    monkeypatch.setenv("HOME", own)
    reason = reasons.DENY_RULE if rule else reasons.NOT_SHOWN
    assert launch.FileDenial(f"{own}/Documents/plan.md", operation, 1, reason, rule).flag == flag
