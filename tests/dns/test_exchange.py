"""A reply is believed only if it matches the socket, the id, the question and its spelling."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.rig.localhost import eventually
from tests.rig.ports import free_port

ZONE = "a.test. 60 A 192.0.2.1\na.test. 60 AAAA 2001:db8::1"
EVIL = "a.test. 60 A 192.0.2.66\na.test. 60 AAAA 2001:db8::66"
RIGHT = [(int(socket.AF_INET), "192.0.2.1"), (int(socket.AF_INET6), "2001:db8::1")]


def swapped(data: bytes) -> bytes:
    """The same message with the case of the question's first letter turned."""
    return data[:13] + bytes((data[13] ^ 0x20,)) + data[14:]


def test_each_question_has_its_own_port_id_and_spelling(server: Any, ask_upstream: Any, answer_from: Any) -> None:
    ids: list[int] = []
    server.script = lambda request, transport: (ids.append(request.header.id), answer_from(request, ""))[1]
    ask = ask_upstream()
    for i in range(12):
        ask(f"long-name-with-letters-{i}.test")
    assert len(set(server.peers)) >= 20
    assert len(set(ids)) >= 20
    assert len({name for name, _, _ in server.asked}) == 24


@pytest.mark.attack(79)
@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda right: bytes((right[0] ^ 1,)) + right[1:], id="wrong id"),
        pytest.param(lambda right: right.replace(right[12:19], b"\1b\4test"), id="wrong question"),
        pytest.param(lambda right: right[:2] + bytes((right[2] & 0x7F,)) + right[3:], id="not a response"),
        pytest.param(lambda right: right[:2] + bytes((right[2] | 0x28,)) + right[3:], id="wrong opcode"),
        pytest.param(lambda right: right[:20], id="cut short"),
        pytest.param(lambda right: b"", id="nothing"),
    ],
)
def test_a_wrong_reply_is_ignored_and_the_right_one_taken(
    server: Any, ask_upstream: Any, answer_from: Any, forge: Callable[[bytes], bytes]
) -> None:
    server.script = lambda request, transport: [forge(answer_from(request, EVIL)), answer_from(request, ZONE)]
    assert ask_upstream()("a.test").addresses == RIGHT
    assert {transport for _, _, transport in server.asked} == {"udp"}


@pytest.mark.attack(79)
def test_a_reply_from_another_port_is_never_seen(server: Any, ask_upstream: Any, answer_from: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:

        def script(request: Any, transport: str) -> bytes:
            other.sendto(answer_from(request, EVIL), server.peers[-1])
            time.sleep(0.05)
            return bytes(answer_from(request, ZONE))

        server.script = script
        assert ask_upstream()("a.test").addresses == RIGHT


@pytest.mark.attack(79)
def test_a_reply_in_another_spelling_is_not_believed_but_asked_again_over_tcp(
    server: Any, ask_upstream: Any, answer_from: Any
) -> None:
    server.script = lambda request, transport: (
        swapped(answer_from(request, EVIL)) if transport == "udp" else swapped(answer_from(request, ZONE))
    )
    assert ask_upstream()("a.test").addresses == RIGHT
    assert {transport for _, _, transport in server.asked} == {"udp", "tcp"}


@pytest.mark.attack(75)
def test_a_truncated_reply_is_asked_again_over_tcp(server: Any, ask_upstream: Any, answer_from: Any) -> None:
    server.script = lambda request, transport: (
        answer_from(request, EVIL, tc=1) if transport == "udp" else answer_from(request, ZONE)
    )
    assert ask_upstream()("a.test").addresses == RIGHT


@pytest.mark.attack(75)
@pytest.mark.parametrize("over_tcp", [[], [b""], [b"\0" * 40], "cut"])
def test_truncated_and_then_nothing_over_tcp_fails(
    server: Any, ask_upstream: Any, answer_from: Any, over_tcp: Any
) -> None:
    server.script = lambda request, transport: (
        answer_from(request, EVIL, tc=1) if transport == "udp" or over_tcp == "cut" else over_tcp
    )
    assert ask_upstream(attempts=1)("a.test").reason == "servfail"


@pytest.mark.attack(75)
def test_a_late_reply_is_too_late_and_the_next_try_counts(server: Any, ask_upstream: Any, answer_from: Any) -> None:
    """The first question of each type is answered when it has been given up, which asking again shows."""
    first: dict[int, Any] = {}

    def script(request: Any, transport: str) -> bytes | None:
        if request.q.qtype not in first:
            first[request.q.qtype] = request, server.peers[-1]
            return None
        given_up, peer = first[request.q.qtype]
        server.udp.sendto(answer_from(given_up, EVIL), peer)
        return bytes(answer_from(request, ZONE))

    server.script = script
    assert ask_upstream(timeout=0.5, attempts=50)("a.test").addresses == RIGHT


@pytest.mark.attack(75)
@pytest.mark.parametrize(("rcode", "reason"), [(2, "servfail"), (5, "servfail"), (4, "servfail"), (3, "nxdomain")])
def test_an_error_of_the_server_is_a_failure(
    server: Any, ask_upstream: Any, answer_from: Any, rcode: int, reason: str
) -> None:
    server.script = lambda request, transport: answer_from(request, EVIL, rcode=rcode)
    assert ask_upstream()("a.test").reason == reason


@pytest.mark.attack(75)
def test_silence_is_a_failure_after_every_try(server: Any, ask_upstream: Any) -> None:
    began = time.monotonic()
    assert ask_upstream(timeout=0.1, attempts=2)("a.test").reason == "timeout"
    assert time.monotonic() - began >= 0.2
    eventually(lambda: len(server.asked) >= 4)
    assert len(server.asked) == 4


def test_a_server_that_is_not_there_is_passed_over(server: Any, ask_upstream: Any, answer_from: Any) -> None:
    gone = ("127.0.0.1", free_port())
    server.script = lambda request, transport: answer_from(request, ZONE)
    assert ask_upstream(servers=[gone, server.place])("a.test").addresses == RIGHT
    assert ask_upstream(servers=[gone], attempts=1)("a.test").reason == "servfail"
    assert ask_upstream(servers=[("fe80::1%nowhere0", 53)], attempts=1)("a.test").reason == "servfail"
