"""The promises of docs/threat-model.md hold under every model of Seatbelt, and the table of probes would notice if not.

The table is tests/rig/seatbelt_promises.py: for each promise probes that every model denies, twins that each allows,
and changes of the profile that each must break the very promise they stand beside. Nothing here needs the interposer
(INV-7), and nothing here has been compared with a Mac: tests/backends/seatbelt/questions does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.rig.seatbelt_promises import BY_NAME, PROMISES, TEXT, Promise
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import Request

ROOT = Path(__file__).resolve().parents[4]


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


# What the page says and a profile has no say in, each with who has.
ELSEWHERE = {
    "Data sent to an allowed host": "the doors record it; the profile knows no hosts",
    "Profiles that a project calls for": "the launcher chooses them, and the policy is made of them",
    "Behind an allowed name": "the doors read TLS and HTTP",
    "Inspected connections": "the engine and the policy; there is no inspection on a Mac yet",
    "The channel under a wildcard": "the doors count names",
    "Approvals": "the doors wait for the user's answer",
    "Counting and timing": "nobody keeps it",
    "Parent proxy": "the doors decide on the name",
    "Descriptors that you hand over": "the helper closes all but three",
    "Environment": "the launcher passes it on",
    "Other users of the machine": "file modes and the doors' token",
    "Root": "told, not promised",
    "What can be learned": "less is kept on a Mac: interfaces and routes can be read",
    "The audit log": "its chain is the log's own; that nobody inside writes it is The record",
    "Exhaustion": "the doors and the log are bounded",
    "What you pass into a running session": "`exec` is for Linux",
    "Without user namespaces": "the broker is a backend of Linux",
    "Public resolvers and online mode": "the policy decides",
}


def said(page: str) -> tuple[list[str], list[str]]:
    """What is protected, and every heading under what is not a boundary."""
    protected = re.findall(r"^\d\. \*\*(.*?)\.\*\*", page, re.MULTILINE)
    return protected, re.findall(r"^### (.*)$", page, re.MULTILINE)


def test_everything_that_the_page_says_has_probes_or_a_reason_why_not() -> None:
    protected, headings = said((ROOT / "docs/threat-model.md").read_text("utf-8"))
    assert len(protected) == 4
    assert set(protected) <= set(BY_NAME)
    assert {*protected, *headings} == {*BY_NAME, *ELSEWHERE}
    assert set(BY_NAME).isdisjoint(ELSEWHERE)
    assert len(BY_NAME) == len(PROMISES)


def test_a_promise_that_is_added_to_the_page_is_seen() -> None:
    page = "1. **The network.** x\n5. **A new promise.** x\n### A new heading\ntext\n"
    assert said(page) == (["The network", "A new promise"], ["A new heading"])


def test_the_page_on_macos_says_of_every_promise_how_it_is_proven() -> None:
    page = (ROOT / "docs/platform-macos.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", page, re.MULTILINE))
    for name in BY_NAME:
        assert "evaluator" in rows.get(name, ""), name
    assert set(ELSEWHERE) <= {name for cell in rows for name in cell.split(", ")}
