"""`netsandbox pending`: what waits, in all sessions, as people and programs read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.cli.pending import _json_line
from netsandbox.errors import UsageError
from tests.rig.live import question, sessions


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_first_to_be_due_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    late, soon = question(1001, until=4_000_000_000), question(1002, "soon.test", until=1, exe=None)
    with sessions({"name": "shop", "pending": [late]}, {"name": "farm", "pending": [soon]}):
        assert dispatch(["pending"]) == 0
    titles, first, second = capsys.readouterr().out.splitlines()
    assert titles.split() == ["ID", "ASKS", "FOR", "PROGRAM", "LEFT", "NAME", "SESSION"]
    assert first.split()[:5] == ["1002", "soon.test:443", "-", "0s", "farm"]
    assert second.split()[:3] == ["1001", "asked.test:443", "node"]


@pytest.mark.parametrize("width", [120, 80, 40, 1])
def test_no_terminal_is_too_narrow_for_the_whole_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr("netsandbox.cli.pending.terminal_width", lambda: width)
    name = "registry.example.org.packages.of-the-usual-mirror.elsewhere.test"
    with sessions({"name": "shop", "pending": [question(1001, name, until=1), question(1002, until=2)]}):
        assert dispatch(["pending"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["1001", f"{name}:443"], ["1002", "asked.test:443"]]
    assert max(map(len, lines)) <= max(width, len(f"1001  {name}:443"))


def test_programs_get_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop", "pending": [question(1001, until=1)]}) as (shop,):
        assert dispatch(["pending", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text("utf-8")
    keys = page.partition("\n## pending\n")[2].partition("Keys of `--json`:")[2].partition("\n\n")[0]
    assert set(keys.split("`")[1::2]) == set(entry)
    assert entry == {
        **question(1001, until=1),
        "session": shop.id,
        "name": "shop",
        "folder": "/srv/shop",
        "seconds": 0,
    }


def test_one_line_of_json_while_one_watches() -> None:
    (line,) = _json_line([{**question(1001, until=1)}])
    assert json.loads(line)[0]["seconds"] == 0


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ([], "no session is running"),
        ([{"ask": 60}, {}], "nothing waits for an answer\n"),
        ([{}], "nothing waits for an answer: no session that runs was started with --ask\n"),
    ],
)
def test_nothing_is_said_to_people_and_an_empty_list_to_programs(
    capsys: pytest.CaptureFixture[str], wanted: list[dict[str, object]], told: str
) -> None:
    with sessions(*wanted):
        assert dispatch(["pending"]) == 0
        assert told in capsys.readouterr().err
        assert dispatch(["pending", "--json"]) == 0
        assert capsys.readouterr() == ("[]\n", "")


def test_words_are_an_error() -> None:
    with pytest.raises(UsageError, match="`netsandbox approve ID` answers"):
        dispatch(["pending", "shop"])


def test_files_are_listed_with_what_is_done_and_what_is_secret(capsys: pytest.CaptureFixture[str]) -> None:
    file = {key: value for key, value in question(1001).items() if key not in ("host", "port")}
    files = [
        {**file, "id": 1001, "path": "/srv/a", "operation": "read", "secret": False},
        {**file, "id": 1002, "path": "/srv/b\x1b", "operation": "write", "secret": True},
    ]
    with sessions({"name": "shop", "pending": files}):
        assert dispatch(["pending"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[1].strip() for line in lines[1:]] == ["read /srv/a", "write /srv/b\\x1b (secret)"]
