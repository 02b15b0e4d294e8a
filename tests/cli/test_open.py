"""`netsandbox open`: the one URL that is meant, in the browser that the user has."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.cli.open import browsers, read_words, url_of
from netsandbox.errors import NetsandboxError, UsageError
from tests.rig.live import port, sessions

URL = "http://3000.shop.localhost:20099/"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NETSANDBOX_SESSION", raising=False)
    monkeypatch.delenv("BROWSER", raising=False)
    return tmp_path


def program(folder: Path, name: str, status: int = 0) -> Path:
    """A browser that writes down what it was given."""
    path = folder / name
    code = f"#!{sys.executable}\nimport json, sys\nopen({str(path)!r} + '.saw', 'w').write(json.dumps(sys.argv[1:]))\n"
    path.write_text(f"{code}sys.exit({status})\n")
    path.chmod(0o755)
    return path


def seen(path: Path) -> object:
    return json.loads(path.with_name(f"{path.name}.saw").read_text())


def test_the_only_port_needs_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({}):
        for words in ([], ["shop"], ["3000"], ["shop", "3000"]):
            assert dispatch(["open", "--print", *words]) == 0
            assert capsys.readouterr() == (f"{URL}\n", "")


def test_several_are_listed_as_one_would_type_them() -> None:
    with sessions({"name": "shop", "ports": [port(3000), port(5173)]}, {"name": "blog"}):
        with pytest.raises(UsageError, match="`netsandbox open blog 3000`") as refused:
            dispatch(["open", "--print"])
        assert "`netsandbox open shop 5173`" in str(refused.value)
        with pytest.raises(UsageError, match="`netsandbox open shop 3000`"):
            dispatch(["open", "--print", "3000"])
        assert dispatch(["open", "--print", "5173"]) == 0
        assert dispatch(["open", "--print", "blog"]) == 0


def test_without_a_port_it_is_the_one_that_the_name_leads_to(capsys: pytest.CaptureFixture[str]) -> None:
    """A session lists its ports by age; NAME.localhost is the first published."""
    with sessions({"name": "shop", "ports": [port(5173), port(3000)]}):
        for words in ([], ["shop"], ["5173"]):
            assert dispatch(["open", "--print", *words]) == 0
            assert capsys.readouterr().out == "http://5173.shop.localhost:20099/\n"


def test_a_session_without_servers_is_in_nobodys_way(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop"}, {"name": "blog", "ports": []}):
        assert dispatch(["open", "--print"]) == 0
        assert capsys.readouterr().out == f"{URL}\n"


def test_nothing_to_open_says_what_to_do() -> None:
    with pytest.raises(NetsandboxError, match="no session is running; start one"):
        dispatch(["open"])
    with sessions({"ports": []}), pytest.raises(NetsandboxError, match="no port is published yet; start a server"):
        dispatch(["open"])
    with sessions({}), pytest.raises(NetsandboxError, match=r"port 80 is not published; choose one: .*3000") as refused:
        dispatch(["open", "80"])
    assert refused.value.status == 1


def test_a_session_that_publishes_nothing_says_so() -> None:
    closed: dict[str, object] = {"name": "shop", "ports": [], "publishes": False}
    with sessions(closed):
        for words in ([], ["shop"], ["shop", "3000"]):
            with pytest.raises(NetsandboxError, match="session shop was started with --no-publish, so no port is"):
                dispatch(["open", *words])
    with sessions(closed, {"name": "blog", "ports": []}):
        with pytest.raises(NetsandboxError, match="no port is published yet"):
            dispatch(["open"])
        with pytest.raises(NetsandboxError, match="session shop was started with --no-publish"):
            dispatch(["open", "shop"])
    with sessions(closed, {**closed, "name": "blog"}), pytest.raises(NetsandboxError, match="these sessions were"):
        dispatch(["open"])


@pytest.mark.parametrize("words", [["shop", "x"], ["shop", "0"], ["65536"], ["9" * 5000], ["a", "1", "2"], ["3", "a"]])
def test_a_port_is_a_port(words: list[str]) -> None:
    with pytest.raises(UsageError):
        read_words(words)


def test_words_are_a_name_and_a_port() -> None:
    assert read_words([]) == (None, None)
    assert read_words(["shop"]) == ("shop", None)
    assert read_words(["80"]) == (None, 80)
    assert read_words(["shop", "80"]) == ("shop", 80)


def test_the_users_browser_gets_the_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = program(tmp_path, "mine")
    monkeypatch.setenv("BROWSER", str(mine))
    with sessions({}):
        assert dispatch(["open"]) == 0
    assert seen(mine) == [URL]


def test_a_browser_that_fails_is_followed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = program(tmp_path, "first", status=3), program(tmp_path, "second")
    monkeypatch.setenv("BROWSER", f"/nonexistent/x:{first}::'open:{second} --new %s -x")
    with sessions({}):
        assert dispatch(["open"]) == 0
    assert seen(first) == [URL]
    assert seen(second) == ["--new", URL, "-x"]


def test_the_desktops_own_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    desktop = program(tmp_path, "open" if sys.platform == "darwin" else "xdg-open")
    assert browsers(URL) == [[desktop.name, URL]]


def test_without_a_browser_the_url_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with sessions({}):
        assert dispatch(["open"]) == 0
    assert capsys.readouterr() == (
        f"{URL}\n",
        "netsandbox: no browser was found; open this URL yourself, or set BROWSER\n",
    )


@pytest.mark.parametrize(
    "url", [None, "", "file:///etc/passwd", "--help", "javascript:1", "http://a b", "http://a\n", "http://é", "/bin/sh"]
)
def test_only_addresses_of_pages_reach_a_browser(url: str | None) -> None:
    with pytest.raises(NetsandboxError, match="has no URL to open"):
        url_of(port(url=url))
