"""An answer has one spelling, and no other line is accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.session.approvals.file_places import MAX_ABOVE
from netsandbox.session.approvals.reply import APPROVE, DENY, MAX_SECONDS, SCOPES, Reply, read, written

NUMBERS = st.integers(0, 999_999_999)
ABOVE = st.integers(0, MAX_ABOVE)
REPLIES = (
    st.builds(lambda number, above: Reply(DENY, number, above=above), NUMBERS, ABOVE)
    | st.builds(lambda number, scope: Reply(APPROVE, number, scope), NUMBERS, st.sampled_from(SCOPES))
    | st.builds(
        lambda number, scope, ttl, above: Reply(APPROVE, number, scope, ttl, above),
        NUMBERS,
        st.sampled_from(SCOPES[1:]),
        st.integers(0, min(MAX_SECONDS, 10**9 - 1)),
        ABOVE,
    )
)
WHOLE = b'{"op":"approve","id":4711,"scope":"session","ttl":0}'


@given(REPLIES)
def test_what_is_written_is_read(reply: Reply) -> None:
    assert read(written(reply)) == reply
    assert b"\n" not in written(reply)


@given(st.binary(max_size=80))
def test_garbage_is_no_answer(line: bytes) -> None:
    found = read(line)
    assert found is None or written(found) == line


@given(REPLIES, st.data())
def test_one_byte_more_or_less_or_other_never_reads_as_the_same(reply: Reply, data: st.DataObject) -> None:
    line = written(reply)
    at = data.draw(st.integers(0, len(line)))
    byte = data.draw(st.binary(max_size=2))
    changed = line[:at] + byte + line[at + data.draw(st.integers(0, 2)) :]
    found = read(changed)
    assert found is None or written(found) == changed
    if changed != line:
        assert found != reply


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'{"op":"approve"}',
        b'{"op":"deny"}',
        WHOLE + b" ",
        b" " + WHOLE,
        WHOLE.replace(b"4711", b"04711"),
        WHOLE.replace(b"4711", b"-1"),
        WHOLE.replace(b"4711", b"1e3"),
        WHOLE.replace(b"4711", b"4711.0"),
        WHOLE.replace(b"4711", b"99999999999"),
        WHOLE.replace(b"4711", "٤٧".encode()),
        WHOLE.replace(b"session", b"org"),
        WHOLE.replace(b"session", b"Session"),
        WHOLE.replace(b"session", b""),
        WHOLE.replace(b'"ttl":0', b'"ttl":'),
        WHOLE.replace(b'"ttl":0', b'"ttl":00'),
        WHOLE.replace(b'"ttl":0', b'"ttl":%d' % (MAX_SECONDS + 1)),
        WHOLE.replace(b"session", b"once").replace(b'"ttl":0', b'"ttl":5'),
        WHOLE.replace(b"approve", b"deny"),
        b'{"op":"deny","id":4711,"scope":"session","ttl":0}',
        b'{"id":4711,"op":"deny"}',
        b'{"op":"deny", "id":4711}',
        b'{"op":"approve","id":4711}',
        WHOLE[:-1] + b',"above":0}',
        WHOLE[:-1] + b',"above":%d}' % (MAX_ABOVE + 1),
        b'{"op":"deny","id":4711,"above":-1}',
    ],
)
def test_near_misses_are_no_answers(line: bytes) -> None:
    assert read(line) is None


def test_the_spelling_is_plain_json() -> None:
    assert read(WHOLE) == Reply(APPROVE, 4711)
    assert read(b'{"op":"deny","id":4711}') == Reply(DENY, 4711)
