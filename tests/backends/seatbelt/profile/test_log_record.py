"""A line of the log is one JSON object, read as everybody reads it, or nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.log_record import MAX_BYTES, members

scalars = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=20)
values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=10), values, max_size=6), st.booleans())
def test_what_json_writes_is_read_back(whole: dict[str, object], plain: bool) -> None:
    line = json.dumps(whole, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    if members(line) is None:
        assert not plain
        with pytest.raises(UnicodeDecodeError):
            line.decode("utf-8")
        return
    assert members(line) == whole


@given(st.binary(max_size=80) | st.text('{}[]":,\\u09af-+.eE truefalsn\x00', max_size=60).map(str.encode))
def test_nothing_is_read_that_json_does_not_read(line: bytes) -> None:
    found = members(line)
    if found is not None:
        assert found == json.loads(line)


@given(st.dictionaries(st.text(max_size=6), scalars, max_size=4), st.data())
def test_a_line_with_one_byte_changed_is_read_as_json_reads_it_or_not_at_all(
    whole: dict[str, object], data: st.DataObject
) -> None:
    line = bytearray(json.dumps(whole).encode())
    line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    found = members(bytes(line))
    if found is not None:
        assert found == json.loads(bytes(line))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"1",
        b'"a"',
        b"{",
        b"{}{}",
        b'{"a":1,}',
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":01}',
        b'{"a":1.}',
        b'{"a":-}',
        b'{"a":NaN}',
        b'{"a":"\\x"}',
        b'{"a":"\\u12"}',
        b'{"a":"\n"}',
        b'{"a":"\xff"}',
        b"{'a':1}",
        b'{"a" 1}',
        b'{"a":tru}',
    ],
)
def test_what_is_no_object_is_nothing(line: bytes) -> None:
    assert members(line) is None


def test_depth_and_size_are_bounded() -> None:
    assert members(b'{"a":' + b"[" * 50_000) is None
    assert members(b'{"a":' + b"[" * 30_000 + b"]" * 30_000 + b"}") is None
    assert members(b'{"a":"' + b"x" * MAX_BYTES + b'"}') is None
    assert members(b'{"a":' + b"9" * 40_000 + b"}") is None
