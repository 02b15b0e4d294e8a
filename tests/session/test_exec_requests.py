"""A request for a second command is checked and recorded before anything of it reaches the session."""

from __future__ import annotations

import json
import os
import pty
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import HostError
from netsandbox.policy.secret_rules import parse_secret
from netsandbox.runtime.control_socket import send_descriptors
from netsandbox.runtime.session_secrets import SessionSecrets
from netsandbox.session.control import DONE
from netsandbox.session.exec_requests import HEADER, MAX_WORDS, ExecRequest, ExecRequests, parse_request
from tests.rig.fake_log import FakeLog

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(st.integers(0, 7), TEXT, TEXT, st.lists(TEXT, max_size=5), TEXT.filter(bool))
def test_a_request_is_read_as_it_was_written(
    terminal: int, folder: str, term: str, words: list[str], program: str
) -> None:
    request = ExecRequest(terminal, folder, f"TERM={term}", [program, *words])
    packed = request.packed((24, 80))
    assert HEADER.unpack_from(packed) == (terminal, 0, 24, 80, 0, 0)
    assert parse_request(packed) == request
    for cut in range(len(packed)):
        try:
            assert parse_request(packed[:cut]).words != request.words
        except ValueError:
            continue


def test_more_words_than_the_spawner_has_room_for_are_refused() -> None:
    most = ["true", *[""] * (MAX_WORDS - 3)]  # with the folder and the variable
    assert len(parse_request(ExecRequest(0, "", "", most).packed((0, 0))).words) == MAX_WORDS - 2
    with pytest.raises(ValueError, match="too many words"):
        parse_request(ExecRequest(0, "", "", [*most, ""]).packed((0, 0)))


@given(st.binary(max_size=200))
def test_other_bytes_are_no_request_or_one_with_a_command(data: bytes) -> None:
    try:
        assert parse_request(data).words[0]
    except ValueError:
        return


@pytest.mark.parametrize(
    "request_",
    [
        ExecRequest(8, "", "", ["true"]),
        ExecRequest(0, "", "LD_PRELOAD=/tmp/x.so", ["true"]),
        ExecRequest(0, "", "", [""]),
        ExecRequest(0, "", "", []),
    ],
)
def test_what_is_not_known_is_refused(request_: ExecRequest) -> None:
    with pytest.raises(ValueError, match="no command"):
        parse_request(request_.packed((0, 0)))


class Scene:
    """A session whose backend keeps what it would start, and a client with its end of the socket pair."""

    def __init__(self, kept: str | None = None) -> None:
        self.log = FakeLog()
        self.started: list[tuple[bytes, int]] = []
        self.failure: Exception | None = None
        settings = SimpleNamespace(configs=(), audit_log=kept, secrets=None)
        self.settings = settings
        context: Any = SimpleNamespace(log=self.log, settings=settings)
        self.requests = ExecRequests(SimpleNamespace(execute=self._execute), context)  # type: ignore[arg-type]
        self.client, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def _execute(self, data: bytes, descriptors: list[int]) -> None:
        if self.failure is not None:
            raise self.failure
        self.started.append((data, len(descriptors)))

    def put(self, data: bytes, descriptors: list[int]) -> Any:
        if data:
            send_descriptors(self.client, data, descriptors)
        reply = self.requests.handle([self.far.detach()], 4711, 1000)
        return reply if reply == DONE else json.loads(reply)["error"]


@pytest.fixture
def scene() -> Iterator[Scene]:
    before = len(os.listdir("/proc/self/fd"))
    made = Scene()
    yield made
    made.client.close()
    made.far.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def null() -> Iterator[int]:
    fd = os.open(os.devnull, os.O_RDWR)
    yield fd
    os.close(fd)


REQUEST = ExecRequest(0, "/srv", "", ["npm", "test"]).packed((0, 0))


def test_a_request_is_recorded_and_started(null: int, scene: Scene) -> None:
    """The twin of the refusals below."""
    assert scene.put(REQUEST, [null] * 3) == DONE
    assert scene.started == [(REQUEST, 4)]
    (record,) = scene.log.of("session.exec")
    assert (record["command"], record["args"], record["folder"]) == ("npm", 1, "/srv")
    assert (record["by_pid"], record["by_uid"], record["terminal"]) == (4711, 1000, False)


def test_the_value_of_a_secret_does_not_come_in_with_a_word(null: int, scene: Scene) -> None:
    """The shell of the user knows the value."""
    secrets = SessionSecrets([("vAlUe0123456789", [parse_secret("TOKEN@a.test", "here")])])
    scene.settings.secrets = secrets
    words = ["curl", "-H", "Authorization: Bearer {}"]
    given, wanted = (
        ExecRequest(0, "", "", [word.format(text) for word in words]).packed((0, 0))
        for text in ("vAlUe0123456789", secrets.placeholders["TOKEN"])
    )
    assert scene.put(given, [null] * 3) == DONE
    assert scene.started == [(wanted, 4)]


@pytest.mark.attack(235)
def test_a_terminal_of_the_host_is_not_passed_in(null: int, scene: Scene) -> None:
    master, slave = pty.openpty()
    try:
        assert "a terminal of this machine" in scene.put(REQUEST, [null, slave, null])
    finally:
        os.close(master)
        os.close(slave)
    assert (scene.started, scene.log.records) == ([], [])


def test_a_socket_of_the_hosts_network_is_not_passed_in(null: int, scene: Scene) -> None:
    with socket.socket() as outside:
        assert "socket of the host's network" in scene.put(REQUEST, [outside.fileno(), null, null])
    assert (scene.started, scene.log.records) == ([], [])


def test_a_file_that_the_session_must_not_write_is_not_passed_in(tmp_path: Path, null: int) -> None:
    log = tmp_path / "audit.jsonl"
    log.touch()
    scene = Scene(str(log))
    with log.open() as file, scene.client:
        assert "audit.jsonl" in scene.put(REQUEST, [file.fileno(), null, null])
    assert scene.started == []


@pytest.mark.parametrize(("data", "count"), [(b"", 0), (b"x", 3), (REQUEST, 2), (REQUEST[:-1], 3)])
def test_a_broken_request_starts_nothing(null: int, scene: Scene, data: bytes, count: int) -> None:
    assert "cannot be read" in scene.put(data, [null] * count)
    assert (scene.started, scene.log.records) == ([], [])


def test_without_a_record_nothing_starts(null: int, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-5."""
    monkeypatch.setattr(scene.log, "write", lambda *words, **fields: False)
    assert "audit log cannot be written" in scene.put(REQUEST, [null] * 3)
    assert scene.started == []


def test_a_backend_that_cannot_start_it_says_why(null: int, scene: Scene) -> None:
    scene.failure = HostError("it is gone; start another")
    assert scene.put(REQUEST, [null] * 3) == "it is gone; start another"


@pytest.mark.parametrize("count", [0, 2])
def test_a_request_comes_with_one_socket(scene: Scene, count: int) -> None:
    passed = [os.dup(scene.far.fileno()) for _ in range(count)]
    assert b"without its socket" in scene.requests.handle(passed, 1, 1)
