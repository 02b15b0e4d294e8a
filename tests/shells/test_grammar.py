"""What a shell is offered of sessions, profiles and logs: plain words, not many, whatever programs had written."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.log import AuditLog
from netsandbox.paths import LOG_NAME, list_sessions, new_session_id, session_dir
from netsandbox.shells.grammar import MAX_WORDS, NEWEST_LOGS, TAIL, look_up, plain
from tests.rig.completing import HOSTILE
from tests.rig.live import question, sessions

PLAIN = set(string.ascii_letters + string.digits + "._-")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_log(*hosts: str) -> str:
    """Later than all others: ids of the same millisecond have no order."""
    newest = max(list_sessions(), default="")
    while (session := new_session_id())[:18] <= newest[:18]:
        pass
    log = AuditLog.open(f"{session_dir(session)}/{LOG_NAME}", session)
    for host in hosts:
        log.write("egress", verdict="deny", host=host, port=443)
    log.close()
    return session


@given(st.lists(st.text(max_size=300) | st.sampled_from(HOSTILE) | st.just("ok-1.example_x")))
def test_only_plain_words_come_through_each_once(found: list[str]) -> None:
    kept = plain(found)
    assert len(set(kept)) == len(kept) <= MAX_WORDS
    assert all(word and PLAIN.issuperset(word) and word[0] not in "-." for word in kept)
    assert ("ok-1.example_x" in kept) == ("ok-1.example_x" in found)


def test_there_are_never_many() -> None:
    assert plain(f"w{number}" for number in range(10**9)) == [f"w{number}" for number in range(MAX_WORDS)]


def test_hosts_are_those_of_the_logs_the_newest_first_and_plain() -> None:
    write_log("old.example.com", "both.example.com")
    write_log(*HOSTILE, "new.example.com", "both.example.com", "new\nline.example.com", "192.0.2.7", "[2001:db8::1]")
    assert list(look_up("domains")) == ["192.0.2.7", "both.example.com", "new.example.com", "old.example.com"]


def test_of_a_long_log_the_end_is_read() -> None:
    session = write_log("first.example.com", *("x" * 400 for _ in range(TAIL // 400)), "last.example.com")
    assert Path(session_dir(session), LOG_NAME).stat().st_size > TAIL
    found = look_up("domains")
    assert "last.example.com" in found
    assert "first.example.com" not in found


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe\n[]\n", b'{"host": "x.example.com"}\n', b"\n" * 1000])
def test_a_log_that_is_none_says_nothing(data: bytes) -> None:
    session = write_log("gone.example.com")
    Path(session_dir(session), LOG_NAME).write_bytes(data)
    assert list(look_up("domains")) == []


def test_a_log_that_cannot_be_read_keeps_no_other_away(places: Path) -> None:
    write_log("other.example.com")
    session = write_log("gone.example.com")
    path = Path(session_dir(session), LOG_NAME)
    path.unlink()
    path.mkdir()
    assert list(look_up("domains")) == ["other.example.com"]


def test_logs_are_the_newest_sessions() -> None:
    made = [write_log("example.com") for _ in range(NEWEST_LOGS + 2)]
    assert list(look_up("logs")) == sorted(made, reverse=True)[:NEWEST_LOGS]


def test_sessions_are_those_that_run_and_only_a_plain_name_is_said() -> None:
    with sessions({"name": "shop"}, *({"name": name} for name in HOSTILE)):
        assert list(look_up("sessions")) == ["shop"]
        assert list(look_up("pending")) == []
    with sessions({"pending": [question(1001), question(1002)]}):
        assert list(look_up("pending")) == ["1001", "1002"]


def test_profiles_are_ours_and_the_users(places: Path) -> None:
    folder = places / "config" / "netsandbox" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").touch()
    (folder / "$(touch canary).toml").touch()
    (folder / "other.toml").write_text('[profile]\nabout = "my \\u001b[31m words"\n')
    found = look_up("profiles")
    assert {"mine", "node", "online"} <= set(found)
    assert all(PLAIN.issuperset(word) for word in found)
    assert found["node"] == "Node.js with npm: its registries"
    assert found["mine"] == ""  # an empty file is not a profile
    assert found["other"].startswith("my ")
    assert "\x1b" not in found["other"]


def test_the_words_of_a_project_about_its_profiles_are_not_shown(places: Path) -> None:
    (places / ".git").mkdir()
    folder = places / ".netsandbox" / "profiles"
    folder.mkdir(parents=True)
    (folder / "theirs.toml").write_text('[profile]\nabout = "choose me"\n')
    assert look_up("profiles")["theirs"] == ""


@pytest.mark.parametrize("kind", ["sessions", "logs", "domains"])
def test_where_nothing_is_known_nothing_is_said(kind: str, places: Path) -> None:
    assert list(look_up(kind)) == []
    (places / "state").write_text("no folder")
    assert list(look_up(kind)) == []
