"""Messages between supervisor and engine."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.inspect import channel


@pytest.fixture
def ends():
    made = channel.pair()
    for end in made:
        end.setblocking(False)
    yield made
    for end in made:
        end.close()


def test_a_message_arrives_whole_with_its_descriptors(ends) -> None:
    near, far = ends
    reader, writer = os.pipe()
    channel.send(near, channel.encode({"kind": "open", "id": 1}), (writer,))
    messages, descriptors = channel.receive(far)
    assert messages == [{"kind": "open", "id": 1}]
    os.write(descriptors[0], b"x")
    assert os.read(reader, 1) == b"x"
    assert not os.get_inheritable(descriptors[0])
    for each in (reader, writer, *descriptors):
        os.close(each)


def test_the_end_and_nothing_yet_are_told_apart(ends) -> None:
    near, far = ends
    with pytest.raises(BlockingIOError):
        channel.receive(far)
    near.close()
    assert channel.receive(far) is None


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=30))
def test_an_outbox_sends_all_in_order_in_packets_that_arrive(sizes: list[int]) -> None:
    near, far = channel.pair()
    packets: list[bytes] = []
    outbox = channel.Outbox(packets.append)
    sent = [{"kind": "ask", "n": n, "target": "x" * size} for n, size in enumerate(sizes)]
    added = [outbox.add(message) for message in sent]
    assert added[0]
    outbox.flush()
    outbox.flush()
    found = []
    for packet in packets:
        channel.send(near, packet)
        messages, _ = channel.receive(far)  # type: ignore[misc]
        found += messages
    assert found == sent
    near.close()
    far.close()


def test_descriptors_of_several_messages_are_an_error_and_closed(ends) -> None:
    near, far = ends
    count = len(os.listdir("/proc/self/fd"))
    channel.send(near, b'[{"kind":"open"},{"kind":"open"}]', (near.fileno(),))
    with pytest.raises(channel.ChannelError):
        channel.receive(far)
    assert len(os.listdir("/proc/self/fd")) == count


@pytest.mark.parametrize("data", [b"[]", b'[{"kind":"x"},1]', b"{}", b"x", b'{"kind":1}', b"\xff", b"[" * 5000])
def test_what_is_no_message_is_an_error_and_leaves_no_descriptor(ends, data: bytes) -> None:
    near, far = ends
    count = len(os.listdir("/proc/self/fd"))
    channel.send(near, data, (near.fileno(),))
    with pytest.raises(channel.ChannelError):
        channel.receive(far)
    assert len(os.listdir("/proc/self/fd")) == count


def test_a_message_that_is_too_long_is_not_sent(ends) -> None:
    with pytest.raises(channel.ChannelError):
        channel.encode({"kind": "open", "hello": "x" * channel.MAX_PACKET})
    near, far = ends
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    near.send(b'{"kind":"' + b"x" * channel.MAX_PACKET)
    with pytest.raises(channel.ChannelError):
        channel.receive(far)


@given(st.one_of(st.none(), st.booleans(), st.integers(max_value=-1), st.floats(), st.text(), st.integers(1 << 53)))
def test_a_number_is_nothing_else(value: object) -> None:
    with pytest.raises(channel.ChannelError):
        channel.number({"kind": "x", "n": value}, "n")


@given(st.text(st.characters(exclude_characters="".join(map(chr, range(0x20, 0x7F)))), min_size=1))
def test_a_text_is_printable_ascii(value: str) -> None:
    with pytest.raises(channel.ChannelError):
        channel.text({"kind": "x", "t": value}, "t")
