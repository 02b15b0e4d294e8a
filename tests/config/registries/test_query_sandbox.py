"""A tool that is asked is in a session, without home and network, and leaves nothing behind."""

from __future__ import annotations

import base64
import os
import select
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox import paths
from netsandbox.audit.sweep import sweep
from netsandbox.config.registries import query_sandbox
from netsandbox.config.registries.query_sandbox import QuerySandbox, first_destination, tunnel_of, variables
from netsandbox.config.registries.tool_process import output
from tests.rig.trace import Trace

pytestmark = pytest.mark.usefixtures("user_namespaces", "private")
TIMEOUT = 30.0


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))  # a session that had this clone as its project could write its Python
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tools").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")  # sessions see what is on the PATH
    yield
    assert list((tmp_path / "tmp").iterdir()) == []
    assert paths.list_sessions() == []
    kept = tmp_path / "state" / "netsandbox" / "homes"
    plain = ("empty", "nothing", "closed", "shared")
    left = [path for path in kept.iterdir() if path.name not in plain] if kept.exists() else []
    assert not any(any(path.iterdir()) for path in left)  # that of a session which was killed is an empty folder


def shell(script: str, timeout: float = TIMEOUT, **variables: str) -> str | None:
    environment = {"PATH": os.environ["PATH"], **variables}
    printed = query_sandbox.run(["/bin/sh", "-c", script], environment, "/root", timeout=timeout)
    return None if printed is None else printed.decode()


def test_it_is_in_a_session_and_works_in_an_empty_folder() -> None:
    printed = shell('echo "$SANDBOX_MODE $HOME"; [ -n "$NETSANDBOX_SESSION" ] && ls -A && echo end')
    assert printed == "offline /sys/none\nend\n"


def test_its_home_is_missing_and_cannot_be_made() -> None:
    """Another session could leave settings in it. Tools take what is missing, and fail below what is not a folder."""
    assert shell('cat "$HOME/.rc" 2>&1; mkdir -p "$HOME/a" 2>/dev/null || echo none') == (
        "cat: /sys/none/.rc: No such file or directory\nnone\n"
    )


def test_it_has_the_variables_that_it_is_given_and_nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "https://no.example")
    assert shell('echo "$A $NPM_CONFIG_REGISTRY"; cat', A="x=y\nz") == "x=y\nz \n"


def test_no_port_of_this_machine_is_reached_but_the_one_that_is_meant(canary: Any) -> None:
    closed, meant = canary.tcp(), canary.tcp()
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)"
    environment = {"PATH": os.environ["PATH"]}
    statuses = []
    for server in (closed, meant):
        with QuerySandbox(meant.port) as enclosed:
            process = enclosed.start([sys.executable, "-I", "-c", code, str(server.port)], environment, "/root")
            assert process is not None
            statuses.append(output(process, TIMEOUT))
    assert statuses == [None, b""]
    assert (closed.accepts, meant.accepts) == (0, 1)


def test_the_users_files_are_hidden_and_writing_reaches_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "key").write_text("secret")
    (home / "plans").write_text("private")
    (tmp_path / "tools" / "part").write_text("shown")
    assert shell(f"cat {home}/plans {home}/.ssh/key {tmp_path}/tools/part; echo x >> {home}/plans; echo") == "shown\n"
    assert (home / "plans").read_text() == "private"


@pytest.mark.parametrize("script", ["echo x; exit 3", "kill -9 $$", "yes", "touch left; rm left; echo x"])
def test_failure_floods_and_what_touches_the_folder_are_no_answer(script: str) -> None:
    assert shell(script) is None


def test_a_tool_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tools" / "pipe")
    reader = os.open(tmp_path / "tools" / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    script = f"trap '' TERM; exec 9> {tmp_path}/tools/pipe; echo x >&9; sleep 1000 & wait; sleep 1000"
    assert shell(script, timeout=3.0) is None
    try:
        assert os.read(reader, 10) == b"x\n", "it ran"
        waiting = select.poll()
        waiting.register(reader, 0)
        assert waiting.poll(20_000) == [(reader, select.POLLHUP)], "nobody holds the pipe any more"
    finally:
        os.close(reader)
    sweep()  # as runs do now and then: a session that was killed could not tidy up


@pytest.mark.parametrize("command", [["/nonexistent"], ["/"], ["a\0b"], [""]])
def test_what_cannot_be_started_is_no_answer(command: list[str]) -> None:
    assert query_sandbox.run(command, {}, "/root") is None


def test_variables_without_end_are_no_answer() -> None:
    assert shell("echo x", A="x" * 100_000) is None


def test_where_no_session_can_be_made_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace(tmp_path / "tools" / "trace")
    script = f"{trace.command}; echo x"
    monkeypatch.setenv("NETSANDBOX_SESSION", "this")
    assert shell(script) is None
    assert trace.lines() == []
    monkeypatch.delenv("NETSANDBOX_SESSION")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert shell(script) is None
    assert trace.lines() == []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert shell(script) == "x\n", "the twin"
    assert trace.lines() == ["x"]
    trace.close()


def test_without_a_temporary_folder_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        assert shell("echo x") is None


def test_the_session_is_the_first_one_if_there_was_none(tmp_path: Path) -> None:
    shell("true")
    assert (tmp_path / "state" / "netsandbox" / paths.FIRST_SESSION).exists()


PROGRAM = """
import base64, os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["PROXY"])
for password, target in {visits!r}:
    pair = f"registry:{{proxy.password if password else 'guess'}}".encode()
    with socket.create_connection((proxy.hostname, proxy.port)) as stream:
        token = base64.b64encode(pair).decode()
        stream.sendall(f"CONNECT {{target}} HTTP/1.1\\r\\nProxy-Authorization: Basic {{token}}\\r\\n\\r\\n".encode())
        stream.recv(1000)
"""


IN_A_SESSION = pytest.mark.usefixtures("user_namespaces", "state")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def heard(folder: Path, visits: list[tuple[bool, str]]) -> str | None:
    program = folder / "tools" / "program.py"
    program.write_text(PROGRAM.format(visits=visits))
    command = [sys.executable, "-I", str(program)]
    return first_destination(command, {"PATH": str(program.parent)}, "/", "PROXY", timeout=30)


@IN_A_SESSION
def test_the_first_tunnel_is_the_answer(tmp_path: Path) -> None:
    assert heard(tmp_path, [(True, "a.example:443"), (True, "b.example:443")]) == "a.example:443"


@IN_A_SESSION
def test_a_client_without_the_password_does_not_count(tmp_path: Path) -> None:
    assert heard(tmp_path, [(False, "evil.example:443"), (True, "a.example:443")]) == "a.example:443"
    assert heard(tmp_path, [(False, "evil.example:443")]) is None


@IN_A_SESSION
def test_a_program_that_goes_nowhere_or_does_not_start_is_no_answer() -> None:
    assert first_destination(["/bin/true"], {}, "/", "PROXY") is None
    assert first_destination(["/nonexistent"], {}, "/", "PROXY") is None
    assert first_destination(["/bin/sleep", "1000"], {}, "/", "PROXY", timeout=1.0) is None


@given(
    st.lists(
        st.sampled_from(
            [
                b"CONNECT ",
                b"a.example:443",
                b" HTTP/1.1",
                b"\r\n",
                b"Proxy-Authorization: Basic ",
                base64.b64encode(b"u:p"),
                b"x",
            ]
        )
    ).map(b"".join)
    | st.binary()
)
def test_only_a_tunnel_with_the_password_counts(head: bytes) -> None:
    target = tunnel_of(head, "u:p")
    if target is not None:
        assert target.encode() in head
        assert base64.b64encode(b"u:p") in head


NAMES = st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.dictionaries(NAMES, VALUES))
def test_variables_are_read_as_they_were_passed(told: dict[str, str]) -> None:
    assert variables("\0".join(f"{name}={value}" for name, value in told.items()).encode()) == told


@given(st.binary())
def test_nonsense_is_no_variable(told: bytes) -> None:
    assert all(name and "\0" not in name + value for name, value in variables(told).items())
