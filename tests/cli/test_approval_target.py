"""An answer is for exactly one question, and is told where it had no effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.approval_target import bring, chosen, listed
from netsandbox.cli.session_table import pending_entries
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.session.approvals import reply as replies
from netsandbox.session.approvals.reply import DENY, Reply
from netsandbox.text import printable
from tests.rig.live import question, sessions, status_of


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


SHOP = {"name": "shop", "pending": [question(1001), question(1002, port=80), question(1003, "other.test")]}
FARM = {"name": "farm", "pending": [question(1003, "farm.test"), question(2002, "other.test")]}


@pytest.mark.parametrize(
    ("word", "session", "number"),
    [
        ("1001", None, 1001),
        ("asked.test:80", None, 1002),
        ("ASKED.test.:443", None, 1001),
        ("http://asked.test/", None, 1002),
        ("farm.test", None, 1003),
        ("1003", "shop", 1003),
        ("other.test", "farm", 2002),
    ],
)
def test_a_word_means_one_question(word: str, session: str | None, number: int) -> None:
    with sessions(SHOP, FARM):
        (entry,) = chosen([word], session)
    assert entry["id"] == number
    assert session in (None, entry["name"])


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("1003", "'1003' fits 2 questions; name one, with --session NAME: "),
        ("asked.test", "'asked.test' fits 2 questions"),
        ("other.test", "'other.test' fits 2 questions"),
        ("7", "'7' does not wait for an answer; what does: "),
        ("asked.test:8443", "'asked.test:8443' does not wait for an answer; what does: "),
        ("99999999999999999999", "'99999999999999999999' does not wait"),
    ],
)
def test_a_word_that_means_none_or_several_is_an_error_that_lists_them(word: str, said: str) -> None:
    with sessions(SHOP, FARM), pytest.raises(UsageError) as raised:
        chosen([word], None)
    assert str(raised.value).startswith(said)
    assert "1003 other.test:443 of shop" in str(raised.value) or "1001 asked.test:443 of shop" in str(raised.value)


def test_where_nothing_waits_or_runs_that_is_said() -> None:
    with sessions({"name": "shop"}), pytest.raises(UsageError, match="nothing does now"):
        chosen(["1"], None)
    with pytest.raises(UsageError, match="no session is running"):
        chosen(["1"], None)


def test_every_word_is_understood_before_the_first_is_answered() -> None:
    with sessions(SHOP) as (shop,):
        with pytest.raises(UsageError):
            chosen(["1001", "7"], None)
        assert shop.heard == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (replies.NOT_PENDING, "waits no longer"),
        (replies.NOBODY_WAITS, "approve it without --for once"),
        (replies.UNWRITABLE, "audit log cannot be written"),
        (None, "did not take the answer"),
        (b'{"error":"internal"}\n', "did not take the answer"),
    ],
)
def test_an_answer_without_effect_is_an_error(said: bytes | None, told: str) -> None:
    with sessions(SHOP) as (shop,):
        shop.says = said
        (entry,) = chosen(["1001"], None)
        with pytest.raises(NetsandboxError, match=told):
            bring(entry, Reply(DENY, 1001))
        assert [line for line, _, _ in shop.heard] == [b'{"op":"deny","id":1001}']


def test_a_session_that_ended_meanwhile_is_an_error() -> None:
    with sessions(SHOP):
        (entry,) = chosen(["1001"], None)
    with pytest.raises(NetsandboxError, match="did not take the answer"):
        bring(entry, Reply(DENY, 1001))


@given(st.text(), st.text())
def test_hostile_names_are_listed_tamely(host: str, name: str) -> None:
    text = listed(pending_entries([status_of("x", name=name, pending=[question(1001, host)])]))
    assert text == printable(text)
