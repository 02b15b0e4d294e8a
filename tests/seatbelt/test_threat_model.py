"""The promises of docs/threat-model.md hold under every model of Seatbelt, and the table of probes would notice if not.

The table is tests/rig/seatbelt_promises.py: for each promise probes that every model denies, twins that each allows,
and changes of the profile that each must break the very promise they stand beside. Nothing here needs the interposer
(INV-7), and nothing here has been compared with a Mac: tests/macos does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from netsandbox.seatbelt.evaluator import allowed_under_all, denied_under_all
from netsandbox.seatbelt.profile import DENY, Profile, load
from netsandbox.seatbelt.request import Request
from tests.rig.seatbelt_promises import BY_NAME, PROMISES, TEXT, Promise

ROOT = Path(__file__).resolve().parents[2]


@cache
def profile() -> Profile:
    return load(TEXT)


def broken(promise: Promise, judged: Profile) -> Iterator[Request]:
    yield from (request for request in promise.denied if not denied_under_all(judged, request))
    yield from (request for request in promise.allowed if not allowed_under_all(judged, request))


@pytest.mark.attack(135)
@pytest.mark.attack(136)
@pytest.mark.attack(138)
@pytest.mark.parametrize("promise", PROMISES, ids=BY_NAME)
def test_a_promise_is_kept_under_every_model_and_what_it_leaves_open_is_open(promise: Promise) -> None:
    assert promise.denied
    assert promise.allowed
    assert list(broken(promise, profile())) == []


CHANGES = [(promise.name, old, new) for promise in PROMISES for old, new in promise.changes]


@pytest.mark.parametrize(("name", "old", "new"), CHANGES)
def test_a_changed_profile_breaks_the_promise_that_it_belongs_to(name: str, old: str, new: str) -> None:
    assert old in TEXT
    changed = load(TEXT.replace(old, new))
    assert changed.faults == ()
    assert any(broken(BY_NAME[name], changed))


def test_a_deny_turned_into_an_allowance_breaks_a_promise() -> None:
    rules = profile().rules
    for at, rule in enumerate(rules):
        if rule.action == DENY:
            turned = Profile((*rules[:at], replace(rule, action="allow"), *rules[at + 1 :]))
            assert any(any(broken(promise, turned)) for promise in PROMISES), rule


def test_every_promise_is_one_of_the_page_and_all_that_is_protected_is_here() -> None:
    page = (ROOT / "docs/threat-model.md").read_text("utf-8")
    protected = re.findall(r"^\d\. \*\*(.*?)\.\*\*", page, re.MULTILINE)
    headings = re.findall(r"^### (.*)$", page, re.MULTILINE)
    assert len(protected) == 4
    assert set(protected) <= set(BY_NAME) <= {*protected, *headings}
    assert len(BY_NAME) == len(PROMISES)


def test_the_page_on_macos_says_of_every_promise_how_it_is_proven() -> None:
    page = (ROOT / "docs/platform-macos.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", page, re.MULTILINE))
    for name in BY_NAME:
        assert "evaluator" in rows.get(name, ""), name
