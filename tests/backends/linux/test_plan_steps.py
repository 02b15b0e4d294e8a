"""The bytes of a plan's steps, as a helper reads them."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.plan_steps import numbers, step, texts

OPERATIONS = st.sampled_from([bytes([letter]) for letter in range(65, 91)])


@given(st.lists(st.tuples(OPERATIONS, st.binary(max_size=64)), max_size=8))
def test_steps_can_be_told_apart_whatever_they_hold(steps: list[tuple[bytes, bytes]]) -> None:
    data, read = b"".join(step(operation, payload) for operation, payload in steps), []
    while data:
        operation, (length,) = data[:1], struct.unpack_from("=I", data, 1)
        read.append((operation, data[5 : 5 + length]))
        data = data[5 + length :]
    assert read == steps


def test_numbers_are_of_four_bytes_and_texts_end_with_nul() -> None:
    assert numbers(1, 2) == struct.pack("=II", 1, 2)
    assert texts("a", "b\udcff") == b"a\0b\xff\0"
