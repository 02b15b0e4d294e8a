"""A reply has the form and types of a status, or it is rejected."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox import Policy
from netsandbox.cli.session_table import PORTS_TITLES, PS_TITLES, PS_YIELDING, port_entries, port_rows, ps_rows
from netsandbox.paths import new_session_id, session_dir
from netsandbox.runtime.control_socket import CONTROL_NAME
from netsandbox.runtime.loop import Loop
from netsandbox.session.control import VERSION, encode
from netsandbox.session.session import Session
from netsandbox.session.session_status import read_status
from netsandbox.session.supervisor import Supervisor
from netsandbox.session.upstream import HostResolver, ServiceInputs
from netsandbox.settings import Command, RunSettings
from netsandbox.text import columns
from tests.rig.live import port, question, status_of

ID = new_session_id()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def line(**changes: object) -> bytes:
    return json.dumps({**status_of(ID), **changes}).encode()


# A backend whose reservation has no window.
BACKEND: Any = SimpleNamespace(
    pid=1,
    open_loop=Loop,
    reservation=SimpleNamespace(name="shop", window=None, settings=LocalhostSettings()),
    usage=lambda: {"processes": 2, "cpu_seconds": 1.5, "memory_bytes": 4096, "limits": "limit files=9: rlimit"},
)
COMMAND = Command(["true"], {}, (0, 1, 2))


def test_a_whole_status_is_taken_as_it_is() -> None:
    assert read_status(line(), ID) == status_of(ID, started=json.loads(line())["started"])


def test_what_a_session_says_is_what_is_read_and_what_the_page_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    session = Session(RunSettings(), sealed=False)
    facts = session.facts(BACKEND, Policy(), COMMAND)
    inputs = ServiceInputs(Policy(), session.log, HostResolver(()))
    supervisor = Supervisor(BACKEND, session.context(COMMAND), inputs, facts)
    told = supervisor._status()
    supervisor.close()
    session.log.close()
    said = {"v": VERSION, **told}
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text("utf-8")
    listed = page.partition("\n## ps\n")[2].partition("Keys of `--json`:")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z_]+)`", listed)) - {"base", "count"} == said.keys()
    assert read_status(encode(said), session.id) == said
    assert facts["control"] == os.path.join(session_dir(session.id), CONTROL_NAME)


def test_a_folder_that_is_gone_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    session = Session(RunSettings(), sealed=False)
    facts = session.facts(BACKEND, Policy(), COMMAND)
    session.log.close()
    assert facts["folder"] is None


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 2},
        {"v": None},
        {"session": new_session_id()},
        {"session": "../../etc"},
        {"name": None},
        {"name": ["shop"]},
        {"pid": "1"},
        {"pid": True},
        {"pid": -1},
        {"started": "now"},
        {"command": "npm"},
        {"command": [1]},
        {"ports": {}},
        {"ports": None},
    ],
)
def test_without_what_names_a_session_it_is_none(changes: dict[str, object]) -> None:
    assert read_status(line(**changes), ID) is None


def test_a_key_of_a_newer_version_is_passed_on_if_it_is_plain() -> None:
    status = read_status(line(colour="red", tree={"deep": []}), ID)
    assert status is not None
    assert status["colour"] == "red"
    assert "tree" not in status


def test_a_port_that_is_none_is_left_out() -> None:
    wrong = [1, {}, port(0), port(70000), port("3000"), port(host_port=None), port(host_address=7)]  # type: ignore[arg-type]
    status = read_status(line(ports=[*wrong, port(url=1, pid="x", exe=None, since="y")]), ID)
    assert status is not None
    (good,) = status["ports"]
    assert [good[key] for key in ("url", "pid", "exe", "since")] == [None] * 4


@pytest.mark.attack(185)
@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"9" * 5000, b'{"v":NaN}', b'{"error":"unknown request"}'],
)
def test_noise_is_no_status(data: bytes) -> None:
    assert read_status(data, ID) is None


def test_an_endless_number_is_none() -> None:
    assert read_status(line().replace(b'"started": ', b'"started": 1e999, "was": '), ID) is None
    assert "more" not in (read_status(line(more=1).replace(b'"more": 1', b'"more": 1e999'), ID) or {})


@pytest.mark.attack(172)
@given(st.dictionaries(st.sampled_from(sorted(status_of(ID))), JSON, max_size=4), JSON)
def test_whatever_is_answered_can_be_printed(changes: dict[str, object], extra: object) -> None:
    changed = {**status_of(ID), "ports": [extra, port()], **changes, "extra": extra}
    status = read_status(json.dumps(changed).encode(), ID)
    if status is None:
        return
    entries = port_entries([status])
    lines = columns([PS_TITLES, *ps_rows([status], 0.0)], width=80, yielding=PS_YIELDING)
    lines += columns([PORTS_TITLES, *port_rows(entries)])
    assert all(text.isascii() and text.isprintable() for text in lines)
    json.dumps([status, entries], allow_nan=False)


def test_questions_are_taken_whole_or_left_out() -> None:
    whole = question()
    bad = [
        {**whole, "id": "1"},
        {**whole, "id": -1},
        {**whole, "host": None},
        {**whole, "port": 0},
        {**whole, "until": None},
        "text",
        None,
    ]
    status = read_status(line(pending=[*bad, whole, {**whole, "pid": "x", "exe": 7, "waiting": -1}]), ID)
    assert status is not None
    assert status["pending"] == [whole, {**whole, "pid": None, "exe": None, "waiting": None}]


@given(JSON)
def test_whatever_stands_for_questions_is_a_list_of_them(said: object) -> None:
    status = read_status(json.dumps({**status_of(ID), "pending": said}).encode(), ID)
    assert status is None or all(set(question()) == set(each) for each in status["pending"])


def test_a_session_of_another_version_has_no_questions() -> None:
    said = status_of(ID)
    del said["pending"]
    status = read_status(json.dumps(said).encode(), ID)
    assert status is not None
    assert status["pending"] == []
