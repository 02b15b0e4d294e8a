"""`netsandbox approve`: the answer reaches the session, and a rule its file, for exactly what was asked."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.approve import listed, pending_by_words, read_duration, send_reply
from netsandbox.cli.main import dispatch
from netsandbox.cli.session_table import pending_entries
from netsandbox.config.paths import rules_file
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import config_home
from netsandbox.session.approvals import reply as replies
from netsandbox.session.approvals.reply import DENY, DONE, MAX_SECONDS, NOT_PENDING, Reply
from netsandbox.text import printable
from tests.rig.live import question, sessions, status_of


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    return tmp_path


def asking(state: Path, **changes: object) -> dict[str, object]:
    return {"folder": str(state / "work"), "pending": [question(1001, port=8443), question(1002, "b.test")], **changes}


@pytest.mark.parametrize(
    ("words", "line", "said"),
    [
        ([], b'"scope":"session","ttl":0}', "until the session ends"),
        (["--for", "session"], b'"scope":"session","ttl":0}', "until the session ends"),
        (["--for", "once"], b'"scope":"once","ttl":0}', "for the connections that wait now"),
        (["--ttl", "30m"], b'"scope":"session","ttl":1800}', "for 30m"),
    ],
)
def test_the_answer_is_brought_and_told(
    state: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: bytes, said: str
) -> None:
    with sessions(asking(state)) as (shop,):
        shop.says = DONE
        assert dispatch(["approve", "1001", *words]) == 0
        assert [heard for heard, _, _ in shop.heard] == [b'{"op":"approve","id":1001,' + line]
    assert capsys.readouterr() == (f"shop: asked.test:8443 is let through {said}\n", "")
    assert not Path(config_home()).exists()


def test_a_rule_is_written_for_the_sessions_folder_or_for_the_user(state: Path) -> None:
    """Not for the folder that the answer is given in."""
    with sessions(asking(state)) as (shop,):
        shop.says = DONE
        assert dispatch(["approve", "1001", "--for", "project"]) == 0
        assert dispatch(["approve", "1002", "--for", "user"]) == 0
        assert [heard.split(b'"')[9] for heard, _, _ in shop.heard] == [b"project", b"user"]
    folder, user = Path(rules_file(str(state / "work")) or ""), Path(config_home(), "config.toml")
    assert tomllib.loads(folder.read_text()) == {"network": {"allow_domains": ["asked.test:8443"]}}
    assert tomllib.loads(user.read_text()) == {"network": {"allow_domains": ["b.test:443"]}}
    assert not Path(rules_file() or "").exists()


def test_a_rule_beside_a_mode_that_closes_the_network_is_told(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user = Path(config_home(), "config.toml")
    user.parent.mkdir(parents=True)
    with sessions(asking(state)) as (shop,):
        shop.says = DONE
        for mode, told in (("offline", True), ("localhost", False)):
            user.write_text(f"[network]\nmode = '{mode}'\n")
            assert dispatch(["approve", "1001", "--for", "user"]) == 0
            line = f"{user}:5 sets mode offline, so later sessions need --filtered for this rule\n"
            assert capsys.readouterr().out.endswith(line) is told


@pytest.mark.attack(149)
def test_a_link_where_the_sessions_folder_was_brings_the_rule_to_no_other_folder(state: Path) -> None:
    (state / "other").mkdir()
    (state / "work").rename(state / "moved")
    (state / "work").symlink_to(state / "other")
    with sessions(asking(state)) as (shop,):
        shop.says = DONE
        assert dispatch(["approve", "1001", "--for", "project"]) == 0
    assert Path(rules_file(str(state / "work")) or "").exists()
    assert not Path(rules_file(str(state / "other")) or "").exists()


@pytest.mark.parametrize("scope", ["project", "user"])
def test_what_the_session_did_not_take_is_not_written(state: Path, scope: str) -> None:
    with sessions(asking(state)) as (shop,):
        shop.says = NOT_PENDING
        with pytest.raises(NetsandboxError):
            dispatch(["approve", "1001", "--for", scope])
    assert not list(state.glob("config/**/*.toml"))


def test_a_file_that_cannot_take_the_rule_is_told_before_anything_is_answered(state: Path) -> None:
    user = Path(config_home(), "config.toml")
    user.parent.mkdir(parents=True)
    user.write_text('network = { mode = "filtered" }\n')
    with sessions(asking(state)) as (shop,):
        with pytest.raises(UsageError, match=r"write asked\.test:8443 into its allow_domains yourself"):
            dispatch(["approve", "1001", "--for", "user"])
        assert shop.heard == []


def test_a_folder_that_is_gone_has_no_rules(state: Path) -> None:
    for folder in (None, str(state / "gone")):
        with sessions(asking(state, folder=folder)) as (shop,):
            with pytest.raises(UsageError, match="approve it with --for session"):
                dispatch(["approve", "1001", "--for", "project"])
            assert shop.heard == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "approve needs an ID, a HOST or a FILE"),
        (["--", "1001"], "approve needs an ID, a HOST or a FILE"),
        (["1001", "--for", "org"], "--for 'org' is unknown; use one of once, session, project, user"),
        (["1001", "--ttl", "soon"], "--ttl 'soon' is not a time"),
        (["1001", "--for", "once", "--ttl", "1h"], "--for once ends with what waits now"),
    ],
)
def test_wrong_words_are_errors_and_nothing_is_answered(state: Path, words: list[str], said: str) -> None:
    with sessions(asking(state)) as (shop,):
        with pytest.raises(UsageError) as raised:
            dispatch(["approve", *words])
        assert str(raised.value).startswith(said)
        assert shop.heard == []


def test_several_are_answered_in_turn(state: Path) -> None:
    with sessions(asking(state)) as (shop,):
        shop.says = DONE
        assert dispatch(["approve", "1002", "asked.test"]) == 0
        assert [heard.split(b",")[1] for heard, _, _ in shop.heard] == [b'"id":1002', b'"id":1001']


@pytest.fixture(autouse=True)
def state_approval_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
        (entry,) = pending_by_words([word], session)
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
        pending_by_words([word], None)
    assert str(raised.value).startswith(said)
    assert "1003 other.test:443 of shop" in str(raised.value) or "1001 asked.test:443 of shop" in str(raised.value)


def test_where_nothing_waits_or_runs_that_is_said() -> None:
    with sessions({"name": "shop"}), pytest.raises(UsageError, match="nothing does now"):
        pending_by_words(["1"], None)
    with pytest.raises(UsageError, match="no session is running"):
        pending_by_words(["1"], None)


def test_every_word_is_understood_before_the_first_is_answered() -> None:
    with sessions(SHOP) as (shop,):
        with pytest.raises(UsageError):
            pending_by_words(["1001", "7"], None)
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
        (entry,) = pending_by_words(["1001"], None)
        with pytest.raises(NetsandboxError, match=told):
            send_reply(entry, Reply(DENY, 1001))
        assert [line for line, _, _ in shop.heard] == [b'{"op":"deny","id":1001}']


def test_a_session_that_ended_meanwhile_is_an_error() -> None:
    with sessions(SHOP):
        (entry,) = pending_by_words(["1001"], None)
    with pytest.raises(NetsandboxError, match="did not take the answer"):
        send_reply(entry, Reply(DENY, 1001))


@given(st.text(), st.text())
def test_hostile_names_are_listed_tamely(host: str, name: str) -> None:
    text = listed(pending_entries([status_of("x", name=name, pending=[question(1001, host)])]))
    assert text == printable(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400), ("366d", MAX_SECONDS)]
)
def test_a_number_and_a_unit_are_a_time(text: str, seconds: int) -> None:
    assert read_duration(text, "--ttl") == seconds


@pytest.mark.parametrize("text", ["", "s", "30", "0m", "-1h", "1.5h", "1 h", "1w", "1H", "٣m", "367d", "9999999999s"])
def test_any_other_time_is_an_error_that_shows_how(text: str) -> None:
    with pytest.raises(UsageError, match="write for instance --ttl 30m, 2h or 1d"):
        read_duration(text, "--ttl")


@given(st.text(max_size=12))
def test_no_text_gives_a_time_beyond_the_bounds(text: str) -> None:
    try:
        seconds = read_duration(text, "--ttl")
    except UsageError:
        return
    assert 1 <= seconds <= MAX_SECONDS
    assert text[-1] in "smhd"
