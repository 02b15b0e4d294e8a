"""A tag on every deny, and nothing else is changed: the same rules, so the same verdicts under every model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.tag import BYTES, new_tag, tagged
from netsandbox.errors import UsageError
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import Modifier, load

GOLDEN = sorted(Path(__file__).with_name("golden").glob("*.sb"))
TAG = "netsandbox-0123456789abcdef0123456789abcdef"


@pytest.mark.attack(172)
def test_a_tag_has_128_bits_and_is_never_the_same() -> None:
    tags = {new_tag() for _ in range(1000)}
    assert len(tags) == 1000
    assert BYTES * 8 >= 128
    assert all(len(bytes.fromhex(tag.removeprefix("netsandbox-"))) == BYTES for tag in tags)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_each_deny_has_the_tag_and_every_rule_is_what_it_was(path: Path) -> None:
    before = load(path.read_text("utf-8")).checked()
    after = load(tagged(path.read_text("utf-8"), TAG)).checked()
    assert [replace(rule, modifiers=()) for rule in after] == list(before)
    for rule in after:
        assert rule.modifiers == ((Modifier("message", TAG),) if rule.action == "deny" else ())


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_taken_away_again_the_text_is_the_one_that_was_agreed_to(path: Path) -> None:
    text = path.read_text("utf-8")
    marked = tagged(text, TAG)
    assert marked.count(TAG) == sum(line.startswith("(deny ") for line in text.splitlines()) > 5
    assert marked.replace(f' (with message "{TAG}")', "") == text


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_lint_finds_no_error(path: Path) -> None:
    judged = load(tagged(path.read_text("utf-8"), TAG))
    assert [finding for finding in lint(judged) if finding.severity == "error"] == []


@given(st.text(min_size=1, max_size=40))
def test_any_text_is_one_message_or_refused(tag: str) -> None:
    try:
        text = tagged("(version 1)\n(deny default)\n", tag)
    except UsageError:
        return
    (rule,) = load(text).checked()
    assert rule.modifiers == (Modifier("message", tag),)
