"""`netsandbox ports`: where servers are reached, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError
from tests.rig.live import port, sessions

KEYS = {"session", "name", "port", "host_address", "host_port", "url", "pid", "exe"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("NETSANDBOX_SESSION", raising=False)
    return tmp_path


def test_every_port_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop", "ports": [port(3000), port(80, 20080)]}, {"name": "blog"}):
        assert dispatch(["ports"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "NAME INSIDE HOST ADDRESS URL PID PROGRAM"
    assert sorted(row.split()[:3] for row in rows) == [
        ["blog", "127.0.0.1:3000", "127.0.0.1:20000"],
        ["shop", "127.0.0.1:3000", "127.0.0.1:20000"],
        ["shop", "127.0.0.1:80", "127.0.0.1:20080"],
    ]
    assert all(row.split()[3].startswith("http://") and row.endswith("4711  node") for row in rows)


def test_for_programs_each_port_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop"}) as (live,):
        assert dispatch(["ports", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry.keys() >= KEYS
    assert entry == {"session": live.id, "name": "shop", **port()}


def test_the_keys_are_there_even_when_nothing_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"ports": [{"port": 1, "host_address": "127.0.0.1", "host_port": 2}]}):
        assert dispatch(["ports", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry.keys() >= KEYS
    assert entry["url"] is None


def test_one_session_can_be_chosen_by_name_or_id(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop"}, {"name": "blog"}) as (shop, _):
        for word in ("shop", shop.id):
            assert dispatch(["ports", word, "--json"]) == 0
            assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == ["shop"]
        with pytest.raises(
            UsageError, match=r"no running session is called 'x'; choose one of (shop, blog|blog, shop)"
        ):
            dispatch(["ports", "x"])
        with pytest.raises(UsageError, match="one session or all"):
            dispatch(["ports", "shop", "blog"])


def test_nothing_published_says_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["ports"]) == 0
    assert "start one with `netsandbox run" in capsys.readouterr().err
    with sessions({"ports": []}):
        assert dispatch(["ports"]) == 0
        shown = capsys.readouterr()
        assert len(shown.out.splitlines()) == 1
        assert shown.err.startswith("netsandbox: no port is published yet; ")
        assert dispatch(["ports", "--json"]) == 0
        assert capsys.readouterr() == ("[]\n", "")


def test_a_session_that_publishes_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop", "ports": [], "publishes": False}):
        assert dispatch(["ports", "shop"]) == 0
    assert capsys.readouterr().err == (
        "netsandbox: session shop was started with --no-publish, so no port is published; start it again without that"
        " option\n"
    )


@pytest.mark.attack(172)
def test_hostile_text_reaches_the_terminal_tamely(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "\x1b[2J", "ports": [port(url="\x07\n", exe="/a/\x1b]0;", host_address="\r")]}):
        assert dispatch(["ports"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert all(line.isascii() and line.isprintable() for line in shown)
