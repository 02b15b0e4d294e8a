"""A process that can read the map may request a port; any other client or message gets no reply."""

from __future__ import annotations

import errno
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap import bind_requests
from netsandbox_portmap.bind_requests import reply

from netsandbox.runtime import listener
from tests.rig.bind_requests import GOOD, PATIENCE, WRONG, open_scene, request
from tests.rig.threaded_server import read_exactly


@pytest.fixture
def scene():
    with open_scene() as made:
        yield made


def test_a_request_is_answered_and_the_line_is_closed(scene):
    client = scene.client(request(3000, "0.0.0.0", 17))
    assert scene.heard(client) == reply(0, 20000)
    assert scene.asked == [("0.0.0.0", 3000, 17)]
    assert len(scene.door) == 0


def test_a_refusal_carries_its_errno_and_no_port():
    with open_scene(answer=lambda *asked: (errno.EADDRNOTAVAIL, 20000)) as scene:
        assert scene.ask() == reply(errno.EADDRNOTAVAIL, 0)
        assert scene.failures == []


def test_any_port_may_stay_any_port():
    """A session with its own device needs no window: the kernel picks a port."""
    with open_scene(answer=lambda *asked: (0, 0)) as scene:
        assert scene.ask(request(0)) == reply(0, 0)
        assert scene.ask(request(1)) == reply(errno.EACCES, 0)


def broken(*asked):
    raise RuntimeError("the judge fell over")


@pytest.mark.parametrize(
    "answer",
    [broken, lambda *asked: (0, 0), lambda *asked: (0, -1), lambda *asked: (0, 65536), lambda *asked: None,
     lambda *asked: (1 << 40, 0), lambda *asked: ("no", 3)],
    ids=["raises", "port 0", "negative", "too large", "nothing", "no errno", "no number"],
)  # fmt: skip
def test_an_answer_that_fails_is_a_refusal(answer):
    """INV-1: the client gets EACCES, the error is reported, and the next client is served."""
    with open_scene(answer=answer) as scene:
        assert scene.ask() == reply(errno.EACCES, 0)
        assert len(scene.failures) == 1
        scene.answer = lambda *asked: (0, 20001)
        assert scene.ask() == reply(0, 20001)


@given(st.sets(st.integers(1, 31), max_size=6).map(sorted))
def test_a_request_may_come_in_pieces(cuts):
    with open_scene() as scene:
        client = scene.client()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start, end in zip([0, *cuts], [*cuts, 32], strict=True):
            assert scene.asked == []
            client.sendall(GOOD[start:end])
            scene.turn()
        assert scene.heard(client) == reply(0, 20000)
        assert len(scene.asked) == 1


@pytest.mark.attack(185)
@pytest.mark.parametrize("word", WRONG)
def test_what_is_not_a_request_is_closed_without_a_word(scene, word):
    """Attack 185, whole."""
    assert scene.ask(WRONG[word]) == b""
    assert scene.asked == []


@pytest.mark.attack(185)
@pytest.mark.parametrize("word", [word for word in WRONG if word != "length"])
def test_what_is_not_a_request_is_closed_without_a_word_byte_by_byte(scene, word):
    """Attack 185, byte by byte."""
    client = scene.client()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for value in WRONG[word]:
        client.sendall(bytes([value]))
        scene.turn()
    assert scene.heard(client) == b""
    assert scene.asked == []


@pytest.mark.attack(185)
@given(st.binary(min_size=32, max_size=200) | st.binary(min_size=1, max_size=100).map(lambda more: GOOD + more))
def test_garbage_is_closed_without_a_word(data):
    with open_scene() as scene:
        assert scene.ask(data) == b""
        assert scene.asked == []


@pytest.mark.attack(185)
@given(st.integers(0, 31))
def test_a_part_of_a_request_is_nothing(size):
    with open_scene() as scene:
        client = scene.client(GOOD[:size])
        client.shutdown(socket.SHUT_WR)
        assert scene.heard(client) == b""
        assert scene.asked == []
        assert len(scene.door) == 0


@pytest.mark.attack(194)
def test_who_does_not_finish_in_time_is_sent_away(scene):
    """Attack 194: the deadline is for the whole request, however slowly it arrives."""
    silent, slow = scene.client(), scene.client(GOOD[:1])
    scene.until(lambda: len(scene.door) == 2)
    scene.skipped += bind_requests.DEADLINE * 0.75
    slow.sendall(GOOD[1:2])
    scene.turn()
    late = scene.client()
    scene.until(lambda: len(scene.door) == 3)
    scene.skipped += bind_requests.DEADLINE * 0.5
    assert scene.heard(silent) == b""
    assert scene.heard(slow) == b""
    assert len(scene.door) == 1
    scene.skipped += bind_requests.DEADLINE * 0.75
    assert scene.heard(late) == b""
    assert len(scene.door) == 0
    assert scene.ask() == reply(0, 20000)


@pytest.mark.attack(192)
def test_a_thousand_silent_callers_keep_nobody_out(scene):
    """Attack 192: never more than the limit are held, and a complete request gets its reply."""
    for number in range(1000):
        scene.client()
        if number >= 300:
            scene.clients[number - 300].close()  # otherwise the clients run out of descriptors before the door does
        if number % 10 == 0:
            scene.turn()
            assert len(scene.door) <= bind_requests.MAX_OPEN
    scene.until(lambda: len(scene.door) == bind_requests.MAX_OPEN)
    assert scene.ask() == reply(0, 20000)
    assert len(scene.door) <= bind_requests.MAX_OPEN
    scene.skipped += bind_requests.DEADLINE + 1
    scene.until(lambda: len(scene.door) == 0)


def test_a_thousand_callers_in_five_crowds_are_all_answered(scene):
    for crowd in range(0, 1000, 200):
        ports = range(crowd, crowd + 200)
        clients = [scene.client(request(port)) for port in ports]
        assert [scene.heard(client) for client in clients] == [reply(0, 20000 + port % 100) for port in ports]
        for client in clients:
            client.close()


def test_who_asks_while_being_pushed_out_is_answered(scene, monkeypatch):
    monkeypatch.setattr(bind_requests, "MAX_OPEN", 1)
    first = scene.client()
    scene.until(lambda: len(scene.door) == 1)
    first.sendall(GOOD)
    second = scene.client()
    assert scene.heard(first) == reply(0, 20000)
    second.sendall(GOOD)
    assert scene.heard(second) == reply(0, 20000)


def test_a_caller_that_leaves_is_forgotten(scene):
    client = scene.client(GOOD[:10])
    scene.until(lambda: len(scene.door) == 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    scene.until(lambda: len(scene.door) == 0)
    assert scene.asked == []


def test_a_caller_that_does_not_wait_for_the_answer_harms_nobody(scene):
    for _ in range(20):
        client = scene.client(GOOD)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    assert scene.ask() == reply(0, 20000)


class Short:
    """A listening socket in a process without free descriptors, until that is changed."""

    def __init__(self, sock):
        self._sock = sock
        self.error = errno.EMFILE
        self.tries = 0

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def _accept(self):
        self.tries += 1
        if self.error:
            raise OSError(self.error, "not now")
        return self._sock._accept()


@pytest.mark.attack(195)
def test_without_descriptors_the_door_rests_and_recovers():
    """Attack 195: it neither spins nor dies."""
    with open_scene(sock=Short) as scene:
        client = scene.client(GOOD)
        scene.until(lambda: scene.served.tries)
        for _ in range(20):
            scene.turn()
        assert scene.served.tries == 1
        scene.served.error = None
        scene.skipped += listener.PAUSE
        assert scene.heard(client) == reply(0, 20000)


def test_a_caller_that_left_while_it_was_queued_is_passed_over():
    with open_scene(sock=Short) as scene:
        scene.served.error = errno.ECONNABORTED
        client = scene.client(GOOD)
        scene.until(lambda: scene.served.tries >= listener.MAX_ACCEPTS)
        scene.served.error = None
        assert scene.heard(client) == reply(0, 20000)


def test_a_caller_that_cannot_be_watched_is_sent_away(scene, monkeypatch):
    def full(fd, events, handler):
        raise OSError(errno.ENOSPC, "too many watches")

    monkeypatch.setattr(scene.loop, "watch", full)
    assert scene.heard(scene.client(GOOD[:5])) == b""
    assert len(scene.door) == 0
    assert scene.ask() == reply(0, 20000)


def test_a_closed_door_holds_nothing():
    with open_scene() as scene:
        waiting = scene.client(GOOD[:5])
        scene.until(lambda: len(scene.door) == 1)
        scene.door.close()
        scene.door.close()
        assert waiting.recv(10) == b""
        assert scene.loop._handlers == {}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(scene.address, 1)


def test_a_door_that_rests_can_be_closed():
    with open_scene(sock=Short) as scene:
        scene.client(GOOD)
        scene.until(lambda: scene.served.tries)
        scene.door.close()
        scene.skipped += listener.PAUSE * 2
        scene.turn()
        assert scene.loop._handlers == {}


def test_the_door_may_be_closed_by_the_answer():
    with open_scene() as scene:
        scene.answer = lambda *asked: (scene.door.close(), (0, 20000))[1]
        assert scene.ask() == reply(0, 20000)
        scene.skipped += listener.PAUSE * 2
        scene.turn()
        assert scene.loop._handlers == {}


def test_the_real_loop_answers_one_after_another():
    """From connect to the reply, as the preload library does it. bench/mapping.py measures the time."""
    with open_scene() as scene:
        served = threading.Thread(target=scene.loop.run, daemon=True)
        served.start()
        for port in range(50):
            with socket.create_connection(scene.address, PATIENCE) as client:
                client.sendall(request(port))
                assert read_exactly(client, 12) == reply(0, 20000 + port)
        scene.loop.stop()
        socket.create_connection(scene.address, PATIENCE).close()
        served.join(PATIENCE)
        assert not served.is_alive()
