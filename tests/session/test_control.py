"""The control socket replies to its owner, survives every hostile client, and disappears with the session."""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import HostError
from netsandbox.runtime.control_socket import connect
from netsandbox.runtime.loop import Loop
from netsandbox.session import control
from netsandbox.session.control import MAX_CLIENTS, MAX_REQUEST, VERSION, Control
from tests.rig.live import LiveSession

STATUS, STOP = b'{"op":"status"}\n', b'{"op":"stop"}\n'
UNKNOWN = b'{"error":"unknown request"}\n'
STRANGER = 65534


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def session() -> Iterator[LiveSession]:
    live = LiveSession()
    yield live
    live.end()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSession]:
    """One session for all examples of Hypothesis."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        live = LiveSession(stubborn=True)
    yield live
    live.end()


def dial(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    # The kernel waits for a full queue; a timeout of Python would make it an error at once.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 30, 0))
    folder = os.open(os.path.dirname(path), os.O_PATH)
    try:
        sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)
    sock.settimeout(30)
    return sock


def read_all(sock: socket.socket) -> bytes:
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionResetError:  # closed with some of our bytes unread
        pass
    return data


def ask(path: str, request: bytes) -> bytes:
    with dial(path) as sock:
        sock.sendall(request)
        return read_all(sock)


def test_the_status_is_one_line_and_the_connection_ends(session: LiveSession) -> None:
    answer = ask(session.path, STATUS)
    assert answer.count(b"\n") == 1
    assert json.loads(answer) == session.status


def test_a_request_may_come_byte_by_byte(session: LiveSession) -> None:
    with dial(session.path) as sock:
        for byte in STATUS:
            sock.sendall(bytes([byte]))
            time.sleep(0.001)
        assert json.loads(read_all(sock)) == session.status


def test_stop_is_answered_at_once_and_the_connection_lasts_until_the_end(state: Path) -> None:
    live = LiveSession(stubborn=True)
    try:
        with dial(live.path) as sock:
            sock.sendall(STOP)
            assert sock.recv(100) == b'{"ok":true}\n'
            assert json.loads(ask(live.path, STATUS)) == live.status
            assert live.stops == 1
            assert select.select([sock], [], [], 0)[0] == []
            live.end()
            assert sock.recv(100) == b""
            assert not os.path.exists(live.path)
    finally:
        live.end()


def test_who_waits_for_the_end_may_leave(state: Path) -> None:
    live = LiveSession(stubborn=True)
    try:
        for _ in range(MAX_CLIENTS + 8):
            with dial(live.path) as sock:
                sock.sendall(STOP)
                assert sock.recv(100) == b'{"ok":true}\n'
        assert json.loads(ask(live.path, STATUS)) == live.status
        assert live.stops == MAX_CLIENTS + 8
    finally:
        live.end()


@pytest.mark.attack(171)
def test_the_socket_is_its_owners_alone_whatever_the_umask(state: Path) -> None:
    for umask in (0, 0o022, 0o777):
        before = os.umask(umask)
        try:
            loop = Loop()
            made = Control(loop, str(state / f"{umask}" / "control"), dict, lambda: None)
        finally:
            os.umask(before)
        assert stat.S_IMODE(os.lstat(state / f"{umask}" / "control").st_mode) == 0o600
        assert stat.S_IMODE((state / f"{umask}").stat().st_mode) == 0o700
        made.close()
        loop.close()


@pytest.mark.attack(171)
def test_a_folder_that_others_can_enter_is_closed_to_them(state: Path) -> None:
    (state / "open").mkdir(mode=0o755)
    loop = Loop()
    made = Control(loop, str(state / "open" / "control"), dict, lambda: None)
    assert stat.S_IMODE((state / "open").stat().st_mode) == 0o700
    made.close()
    loop.close()


def test_a_path_longer_than_a_socket_address_works(state: Path) -> None:
    folder = state / ("d" * 120) / ("e" * 120)
    loop = Loop()
    made = Control(loop, str(folder / "control"), dict, lambda: None)
    dial(str(folder / "control")).close()
    made.close()
    loop.close()
    assert not folder.exists()


def test_closing_takes_the_name_and_an_empty_folder_away(session: LiveSession) -> None:
    session.end()
    assert not os.path.exists(os.path.dirname(session.path))
    session.control.close()


def test_closing_leaves_the_log(session: LiveSession) -> None:
    log = Path(session.path).with_name("audit.jsonl")
    log.write_text("")
    session.end()
    assert log.exists()
    assert not os.path.exists(session.path)


def test_what_cannot_be_made_is_an_error_for_people(state: Path) -> None:
    (state / "file").write_text("")
    loop = Loop()
    with pytest.raises(HostError, match=r"cannot make the control socket .*; set XDG_STATE_HOME"):
        Control(loop, str(state / "file" / "control"), dict, lambda: None)
    (state / "taken" / "control").mkdir(parents=True)
    with pytest.raises(HostError, match="cannot make the control socket"):
        Control(loop, str(state / "taken" / "control"), dict, lambda: None)
    loop.close()


@pytest.mark.attack(185)
@pytest.mark.parametrize(
    "request_",
    [
        b"\n",
        b"{}\n",
        b"status\n",
        b'{"op":"kill"}\n',
        b'{"op": "status"}\n',
        b'{"op":"status","op":"stop"}\n',
        b'{"op":["status"]}\n',
        b'{"op":"status"}\r\n',
        b'{"op":"STATUS"}\n',
        STATUS + STOP,
        STATUS + b"x",
        b"[" * 4000 + b"\n",
        b"\xff\xfe\0\n",
        b"GET / HTTP/1.1\r\nHost: shop.localhost\r\n\r\n",
        b"\xff\xff\xff\xff" * 1025,
        b"x" * (MAX_REQUEST + 1),
    ],
)
def test_anything_else_is_unknown_and_the_session_goes_on(session: LiveSession, request_: bytes) -> None:
    assert ask(session.path, request_) == UNKNOWN
    assert json.loads(ask(session.path, STATUS)) == session.status
    assert (session.stops, session.errors) == (0, [])


@pytest.mark.attack(185)
@given(st.binary(max_size=300).filter(lambda data: data not in (STATUS, STOP)), st.booleans())
def test_no_bytes_do_harm(lasting: LiveSession, data: bytes, apart: bool) -> None:
    """Whole and byte by byte; half a request is unknown once its sender has closed."""
    with dial(lasting.path) as sock:
        try:
            for piece in [data[at : at + 1] for at in range(len(data))] if apart else [data]:
                sock.sendall(piece)
            sock.shutdown(socket.SHUT_WR)
        except OSError:  # replied and closed before we had sent everything
            pass
        answer = read_all(sock)
    # A peer that sends more after its line may lose its reply with the connection.
    assert answer in (UNKNOWN, b"") or data.startswith(STATUS)
    assert (lasting.stops > 0, lasting.errors) == (False, []) or STOP in data
    assert json.loads(ask(lasting.path, STATUS)) == lasting.status


@pytest.mark.attack(192)
def test_a_slow_request_has_a_deadline(session: LiveSession) -> None:
    with dial(session.path) as sock:
        sock.sendall(STATUS[:-1])
        assert read_all(sock) == b""  # closed without a reply, though this side neither sent more nor closed
    assert json.loads(ask(session.path, STATUS)) == session.status


@pytest.mark.attack(185)
def test_an_answer_that_nobody_reads_has_a_deadline() -> None:
    live = LiveSession(folder="x" * 4000, ports=[{"note": "y" * 4000}] * 200)
    try:
        with dial(live.path) as sock:
            sock.sendall(STATUS)
            hung_up = select.poll()
            hung_up.register(sock, select.POLLRDHUP)
            assert hung_up.poll(20_000)
            assert len(read_all(sock)) < 800_000
        assert len(ask(live.path, STATUS)) > 800_000
    finally:
        live.end()


@pytest.mark.attack(193)
def test_a_flood_is_bounded_and_passes(session: LiveSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "DEADLINE", 0.3)
    before = len(os.listdir("/proc/self/fd"))
    flood = []
    try:
        for _ in range(2 * MAX_CLIENTS):
            try:
                flood.append(connect(os.path.dirname(session.path)))
            except BlockingIOError:  # the kernel's queue is full
                pass
        time.sleep(0.05)
        assert len(os.listdir("/proc/self/fd")) - before - len(flood) <= MAX_CLIENTS
        assert json.loads(ask(session.path, STATUS)) == session.status
    finally:
        for sock in flood:
            sock.close()
    assert session.errors == []


@pytest.mark.attack(195)
def test_without_descriptors_it_waits_and_recovers(session: LiveSession) -> None:
    sock = dial(session.path)
    sock.sendall(STATUS)
    assert read_all(sock)
    sock.close()
    folder = os.open(os.path.dirname(session.path), os.O_PATH)
    waiting = socket.socket(socket.AF_UNIX)
    waiting.settimeout(10)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        waiting.connect(f"/proc/self/fd/{folder}/control")
        time.sleep(0.2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(folder)
    with waiting:
        waiting.sendall(STATUS)
        assert json.loads(read_all(waiting)) == session.status
    assert session.errors == []


def test_what_is_not_in_the_table_is_heard_with_who_said_it(session: LiveSession) -> None:
    session.says = b'{"ok":true}\n'
    assert ask(session.path, b"anything\n") == b'{"ok":true}\n'
    assert session.heard == [(b"anything", os.getpid(), os.geteuid())]
    assert ask(session.path, b"anything\nmore") == UNKNOWN  # one line, and nothing after it
    assert ask(session.path, STATUS) != UNKNOWN
    assert len(session.heard) == 1


def test_where_nobody_hears_it_is_unknown(state: Path) -> None:
    live = LiveSession()
    live.control.handle_reply = None
    try:
        assert ask(live.path, b'{"op":"approve","id":1,"scope":"session","ttl":0}\n') == UNKNOWN
        assert live.heard == []
    finally:
        live.end()


def test_hearing_that_fails_is_an_error_told_to_both_sides(session: LiveSession) -> None:
    def broken(line: bytes, pid: int, uid: int) -> bytes:
        raise RuntimeError("broken")

    session.control.handle_reply = broken
    assert ask(session.path, b"anything\n") == b'{"error":"internal"}\n'
    session.end()
    assert [str(error) for error in session.errors] == ["broken"]


def test_an_answer_says_its_version_whatever_the_session_says(session: LiveSession) -> None:
    session.status = {"name": "shop"}
    assert json.loads(ask(session.path, STATUS)) == {"v": VERSION, "name": "shop"}


def test_a_status_that_fails_is_an_error_told_to_both_sides(session: LiveSession) -> None:
    """INV-1: the client gets no status, the log gets the error, the session continues."""
    good = session.status
    session.status = {"v": object()}
    assert ask(session.path, STATUS) == b'{"error":"internal"}\n'
    session.status = good
    assert json.loads(ask(session.path, STATUS)) == good
    assert [type(error) for error in session.errors] == [TypeError]  # recorded after the reply, before the next request


@pytest.mark.attack(182)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
def test_another_user_is_refused_even_where_the_folder_lets_him_in(session: LiveSession) -> None:
    """The kernel reports the peer's uid: file modes are the first check, this is the second."""
    code = (
        "import os, socket, sys\n"
        "folder = os.open(sys.argv[1], os.O_PATH)\n"
        "os.chmod(f'/proc/self/fd/{folder}/control', 0o666)\n"
        f"os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})\n"
        "sock = socket.socket(socket.AF_UNIX)\n"
        "sock.connect(f'/proc/self/fd/{folder}/control')\n"
        "try:\n"
        '    sock.sendall(b\'{"op":"stop"}\\n\')\n'
        "    print(sock.recv(100))\n"
        "except (BrokenPipeError, ConnectionResetError):\n"
        "    print(b'')\n"
    )
    os.chmod(os.path.dirname(session.path), 0o711)
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(session.path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("b''\n", "")
    assert session.stops == 0
    assert json.loads(ask(session.path, STATUS)) == session.status


def test_a_request_with_descriptors_goes_to_its_handler_and_others_are_closed(session: LiveSession) -> None:
    taken: list[int] = []

    def take(passed: list[int], pid: int, uid: int) -> bytes:
        assert (pid, uid) == (os.getpid(), os.geteuid())
        taken.extend(passed)
        return b"{}\n"

    session.control.handlers = {control.EXEC: take}
    for line, reply in ((control.EXEC, b"{}\n"), (b"else", UNKNOWN), (control.EXEC + b"\nmore", UNKNOWN)):
        reading, writing = os.pipe()
        with dial(session.path) as client:
            socket.send_fds(client, [line + b"\n"], [writing])
            os.close(writing)
            assert client.recv(100) == reply
        while taken:
            os.close(taken.pop())
        assert os.read(reading, 1) == b""  # nobody holds the other end
        os.close(reading)
