"""Live sessions are found by a request to each; dead ones are removed; user input is only compared."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import new_session_id, session_dir, sessions_dir
from netsandbox.session import sessions_client
from netsandbox.session.sessions_client import find, live_sessions, pid_of, put_to, stop_sessions, survey
from tests.rig.live import LiveSession, killed_session, sessions, status_of

STRANGER = 65534
FIRST, SECOND = "20250101T000000000-00000000000000aa", "20250102T000000000-00000000000000ab"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@contextmanager
def impostor(*answers: bytes, hang: bool = False) -> Iterator[str]:
    """A process that listens where a session would, and sends any replies."""
    session = new_session_id()
    os.makedirs(session_dir(session), 0o700)
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(session_dir(session), os.O_PATH)
    listener.bind(f"/proc/self/fd/{folder}/control")
    listener.listen(8)
    over = threading.Event()

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                for answer in answers:
                    try:
                        sock.sendall(answer)
                    except OSError:
                        break
                if hang:
                    over.wait(20)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield session
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(20)
        listener.close()
        os.close(folder)


def test_without_a_session_or_a_state_folder_there_is_none() -> None:
    assert live_sessions() == []


def test_a_state_folder_that_is_none_is_an_error_for_people(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "file"))
    with pytest.raises(NetsandboxError, match=r"cannot look for sessions in .*; set XDG_STATE_HOME"):
        live_sessions()


def test_all_sessions_are_found_oldest_first() -> None:
    with sessions({"name": "one"}, {"name": "two"}, {"name": "three"}) as started:
        assert sorted(status["name"] for status in live_sessions()) == ["one", "three", "two"]
        ids = [status["session"] for status in live_sessions()]
        assert ids == sorted(session.id for session in started)
    assert live_sessions() == []


def test_folders_of_ended_sessions_and_strange_files_are_passed_over() -> None:
    os.makedirs(session_dir(new_session_id()))
    os.makedirs(os.path.join(sessions_dir(), "notes"))
    Path(sessions_dir(), new_session_id()).write_text("")
    assert survey() == ([], [])


def test_a_killed_sessions_socket_is_removed_and_its_empty_folder_too() -> None:
    """INV-10."""
    path = killed_session()
    log = Path(killed_session()).with_name("audit.jsonl")
    log.write_text("")
    assert survey() == ([], [])
    assert not os.path.exists(os.path.dirname(path))
    assert os.listdir(log.parent) == ["audit.jsonl"]


def test_a_plain_file_in_the_sockets_place_is_not_ours_to_remove() -> None:
    folder = Path(session_dir(new_session_id()))
    folder.mkdir(parents=True)
    (folder / "control").write_text("mine")
    assert survey() == ([], [])
    assert (folder / "control").read_text() == "mine"


@pytest.mark.attack(185)
@pytest.mark.parametrize(
    "answers",
    [
        (),
        (b"\n",),
        (b"{",),
        (b'{"v":1}\n',),
        (b"\0" * 65536,) * 40,
        (b'{"error":"unknown request"}\n',),
        (b"[" * 1_000_000, b"\n"),
    ],
    ids=["silence", "empty", "torn", "half", "endless", "error", "deep"],
)
def test_a_hostile_answer_costs_nothing_but_itself(answers: tuple[bytes, ...]) -> None:
    with impostor(*answers) as strange, sessions({}) as (good,):
        found, silent = survey()
        assert [status["session"] for status in found] == [good.id]
        assert silent == [strange]


@pytest.mark.attack(190)
def test_a_session_cannot_answer_for_another() -> None:
    with sessions({}) as (good,):
        good.status = status_of(new_session_id())
        assert survey() == ([], [good.id])


def test_sessions_that_hang_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines = []
    waiting = sessions_client._Round.answers

    def noted(asked: sessions_client._Round, seconds: float) -> dict[str, bytes]:
        deadlines.append(seconds)
        return waiting(asked, seconds)

    monkeypatch.setattr(sessions_client._Round, "answers", noted)
    with impostor(hang=True) as first, impostor(b"{", hang=True) as second, sessions({}) as (good,):
        found, silent = survey(patience=2.0)
        assert [status["session"] for status in found] == [good.id]
        assert sorted(silent) == sorted([first, second])
    assert deadlines == [2.0]


def test_a_session_whose_queue_is_full_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = sessions_client.connect, []

    def busy_at_first(directory: str) -> object:
        calls.append(directory)
        if len(calls) < 3:
            raise BlockingIOError(11, "busy")
        return real(directory)

    monkeypatch.setattr(sessions_client, "connect", busy_at_first)
    with sessions({}) as (good,):
        assert [status["session"] for status in live_sessions()] == [good.id]


def test_more_sessions_than_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_client, "MAX_AT_ONCE", 2)
    with sessions(*[{"name": f"s-{number}"} for number in range(5)]):
        assert len(live_sessions()) == 5


@pytest.mark.attack(171)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can listen as somebody else")
def test_a_socket_of_another_user_is_not_believed() -> None:
    """Root would be trusted; here root's session folder holds the socket of an ordinary account."""
    session = new_session_id()
    os.makedirs(session_dir(session), 0o700)
    code = (
        "import os, socket, sys\n"
        "os.chdir(sys.argv[1])\n"
        "sock = socket.socket(socket.AF_UNIX); sock.bind('control'); os.chmod('control', 0o666)\n"
        f"os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})\n"
        "sock.listen(8); print('up', flush=True)\n"
        "peer, _ = sock.accept(); print(peer.recv(100), flush=True)\n"
    )
    command = [sys.executable, "-c", code, session_dir(session)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"up\n"
        assert survey(patience=0.5) == ([], [session])
        assert stranger.stdout.readline() == b"b''\n"  # it got no request
        stranger.wait(10)


def test_a_session_is_found_by_name_id_and_beginning() -> None:
    known = [status_of(FIRST, name="shop"), status_of(SECOND, name="blog")]
    for word in ("shop", FIRST, "20250101"):
        assert find(word, known)["name"] == "shop"
    with sessions({"name": "shop"}) as (good,):
        assert find("shop")["session"] == good.id


def test_a_name_wins_over_the_beginning_of_an_id() -> None:
    known = [status_of(FIRST, name="blog"), status_of(SECOND, name="2025")]
    assert find("2025", known)["name"] == "2025"


def test_a_word_that_fits_several_is_an_error_with_their_ids() -> None:
    known = [status_of(FIRST, name="blog"), status_of(SECOND, name="shop")]
    with pytest.raises(UsageError, match=r"'2025' fits 2 sessions; write more of the id: 20250101T.*, 20250102T"):
        find("2025", known)
    twins = [{**status, "name": "shop"} for status in known]
    with pytest.raises(UsageError, match="'shop' fits 2 sessions"):
        find("shop", twins)


@pytest.mark.attack(190)
@pytest.mark.parametrize("word", ["", "..", "../", "../../etc/passwd", "/", "a\0b", "\x1b[2J", "x" * 100_000, "*"])
def test_a_forged_name_fits_nothing_and_touches_no_path(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [status_of(new_session_id())]
    monkeypatch.setattr(os, "open", lambda *_args, **_kwargs: pytest.fail("a path was touched"))
    with pytest.raises(UsageError, match=r"no running session is called .*; choose one of shop"):
        find(word, known)
    monkeypatch.delenv("NETSANDBOX_SESSION", raising=False)
    with pytest.raises(UsageError, match="no session is running; start one"):
        find(word, [])


def test_inside_a_session_whoever_is_named_is_told_where_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETSANDBOX_SESSION", "x")
    with pytest.raises(UsageError, match=r"this is inside a session, .*; run this command outside"):
        find("shop", [])


def test_hostile_names_are_listed_as_printable_text() -> None:
    with pytest.raises(UsageError, match=r"choose one of \\x1b\[2J") as refused:
        find("shop", [status_of(new_session_id(), name="\x1b[2J")])
    assert str(refused.value).isprintable()


def test_the_process_behind_a_socket_is_known_without_an_answer() -> None:
    with sessions({}) as (good,):
        assert pid_of(good.id) == os.getpid()
    assert pid_of(good.id) is None


@pytest.mark.attack(171)
def test_nobody_is_told_to_kill_a_strangers_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with sessions({}) as (good,):
        monkeypatch.setattr("netsandbox.session.sessions_client.is_trusted", lambda _sock: False)
        assert pid_of(good.id) is None


def test_stopping_waits_for_the_end() -> None:
    with sessions({"name": "one"}, {"name": "two"}) as started:
        assert stop_sessions([session.id for session in started], 30) == []
        assert not any(os.path.exists(session.path) for session in started)
        assert [session.stops for session in started] == [1, 1]


def test_a_session_that_does_not_end_is_told() -> None:
    stubborn = LiveSession(stubborn=True)
    try:
        with sessions({}) as (good,):
            assert stop_sessions([stubborn.id, good.id], 3) == [stubborn.id]
            assert (stubborn.stops, good.stops) == (1, 1)
            assert stubborn.alive
            assert not os.path.exists(good.path)
    finally:
        stubborn.end()


def test_stopping_what_has_ended_is_done_already() -> None:
    killed = killed_session()
    assert stop_sessions([new_session_id(), os.path.basename(os.path.dirname(killed))], 5) == []
    assert not os.path.exists(killed)


def test_one_that_hangs_up_without_ending_is_not_taken_for_ended() -> None:
    with impostor(b'{"ok":true}\n') as strange:
        assert stop_sessions([strange], 0.3) == [strange]


def test_one_session_is_told_something_and_its_answer_read() -> None:
    with sessions({"name": "one"}, {"name": "two"}) as (one, two):
        one.says = b"heard\n"
        assert put_to(one.id, b"word") == b"heard\n"
        assert [line for line, _, _ in one.heard] == [b"word"]
        assert two.heard == []
    assert put_to(one.id, b"word") == b""
