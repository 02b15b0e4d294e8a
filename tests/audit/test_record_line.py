"""A record is one line of printable ASCII, in a fixed order, bounded, and reads back as what was put in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit import record_line
from netsandbox.audit.record_line import GENESIS

STAMP = "2025-01-31T12:00:00.000000Z"
HOSTILE = [
    'a\n{"v":1,"verdict":"allow"}',
    "a\r\nb",
    "a\u2028b\u2029c\u0085d",
    "\x1b[2J\x1b]0;title\x07",
    '","verdict":"allow","x":"',
    "\x00\x7f\x80\x9b",
    "\udcff\udc80",
    "\u202eevil",
    "\U0001f600" * 3,
    "\\",
]


def build(fields: dict[str, object], event: str = "egress") -> bytes:
    return record_line.line(STAMP, 1, "s", event, fields=fields, prev=GENESIS)


def assert_one_plain_line(raw: bytes) -> None:
    assert all(0x20 <= byte <= 0x7E for byte in raw)


def test_keys_come_in_the_documented_order_whatever_the_caller_does() -> None:
    names = [*record_line.FIELDS, "count", "outcome"]
    raw = build(dict.fromkeys(reversed(names), 1))
    expected = ["v", "ts", "seq", "session", "event", *record_line.FIELDS, "outcome", "count", "prev"]
    assert list(json.loads(raw)) == expected


def test_absent_values_are_left_out() -> None:
    assert list(json.loads(build({"host": None, "port": None, "qtype": None}))) == list(record_line.ENVELOPE)


@pytest.mark.attack(172)
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["host", "reason", "exe", "detail", "session"])
def test_172_hostile_text_stays_inside_one_record(name: str, text: str) -> None:
    raw = record_line.line(STAMP, 1, text if name == "session" else "s", "egress", fields={name: text}, prev=GENESIS)
    assert_one_plain_line(raw)
    assert json.loads(raw)[name] == text if name != "session" else json.loads(raw)["session"]


@pytest.mark.attack(172)
@given(st.text(st.characters(), max_size=record_line.MAX_TEXT).filter(lambda text: "://" not in text))
def test_172_any_text_reads_back_exactly(text: str) -> None:
    raw = build({"detail": text})
    assert_one_plain_line(raw)
    # A pair of lone surrogates and the character they encode are one and the same in JSON.
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    found = json.loads(raw)["detail"]
    assert found.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") == expected


@pytest.mark.attack(172)
@given(st.binary(max_size=300).filter(lambda data: b"://" not in data))
def test_172_any_bytes_survive_as_surrogate_escapes(data: bytes) -> None:
    raw = build({"detail": data})
    assert_one_plain_line(raw)
    assert json.loads(raw)["detail"].encode("utf-8", "surrogateescape") == data


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.text(max_size=20).filter(lambda text: not set("@?:") & set(text)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=5), inner, max_size=4),
    max_leaves=record_line.MAX_DEPTH,
)


@given(st.lists(st.dictionaries(st.sampled_from([*record_line.FIELDS, "count", "qtype"]), plain), max_size=6))
def test_a_record_has_the_bytes_that_the_standard_library_writes(records: list[dict[str, object]]) -> None:
    """Several in a row, since values are kept in their printed form; `1` and `True` are equal and printed apart."""
    for fields in [*records, {"count": True}, {"count": 1}, {"count": 2}, {"count": True}]:
        ordered = sorted(fields, key=[*record_line.FIELDS, *fields].index)
        record = {"v": 1, "ts": STAMP, "seq": 1, "session": "s", "event": "egress"}
        record |= {name: fields[name] for name in ordered if fields[name] is not None}
        expected = json.dumps(record | {"prev": GENESIS}, separators=(",", ":"))
        if _depth(fields) <= record_line.MAX_DEPTH + 1:
            assert build(fields) == expected.encode()


def _depth(value: object) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if members is None else 1 + max(map(_depth, members), default=0)


@given(st.dictionaries(st.text(max_size=10), values, max_size=6))
def test_no_value_and_no_name_can_stop_a_record_or_split_it(fields: dict[str, object]) -> None:
    raw = build(fields)
    assert_one_plain_line(raw)
    record = json.loads(raw)
    assert (record["seq"], record["event"], record["prev"]) == (1, "egress", GENESIS)


def test_odd_values_become_something_readable() -> None:
    record = json.loads(
        build(
            {"port": 1 << 20000, "ms": float("nan"), "rule": object, "a": [1, [2, [3, [4]]]], "ok": True, "no": [None]}
        )
    )
    assert record["port"].startswith("0x1")
    assert record["ms"] is None
    assert "object" in record["rule"]
    assert record["a"] == [1, [2, [3, "…"]]]
    assert record["ok"] is True
    assert record["no"] == [None]


def test_the_envelope_cannot_be_overwritten_by_a_field() -> None:
    record = json.loads(build({"seq": 99, "prev": "x", "event": "forged", "host": "example.com"}))
    assert (record["seq"], record["prev"], record["event"]) == (1, GENESIS, "egress")


@pytest.mark.attack(177)
def test_177_long_text_is_cut_and_says_so() -> None:
    record = json.loads(build({"host": "a" * 8192}))
    assert record["host"] == "a" * record_line.MAX_TEXT + f"…[+{8192 - record_line.MAX_TEXT}]"


@pytest.mark.attack(177)
def test_177_no_record_outgrows_the_line() -> None:
    wide = "\U0001f600" * 10_000
    fields: dict[str, object] = dict.fromkeys(record_line.FIELDS, wide)
    fields["argv"] = [[wide] * 100] * 100
    raw = build(fields)
    assert len(raw) <= record_line.MAX_LINE
    assert json.loads(raw)["cut"] is True


def test_long_lists_and_tables_are_cut_and_say_so() -> None:
    record = json.loads(build({"items": list(range(1000)), "table": {str(key): key for key in range(1000)}}))
    assert len(record["items"]) == record_line.MAX_ITEMS + 1
    assert record["items"][-1] == f"…[+{1000 - record_line.MAX_ITEMS}]"
    assert record["table"]["…"] == 1000 - record_line.MAX_ITEMS


@pytest.mark.attack(179)
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("host", "user:hunter2@example.com", "***@example.com"),
        ("host", "example.com?token=hunter2", "example.com?***"),
        ("detail", "http://user:hunter2@example.com/a", "http://***@example.com/a"),
        ("detail", "GET https://example.com/a?key=hunter2#hunter2 HTTP/1.1", "GET https://example.com/a?*** HTTP/1.1"),
        ("detail", "https://a.test/#hunter2 http://u:hunter2@b.test", "https://a.test/#*** http://***@b.test"),
        ("detail", "https://a@hunter2@example.com", "https://***@example.com"),
    ],
)
def test_179_secrets_in_urls_are_not_written(name: str, text: str, expected: str) -> None:
    raw = build({name: text, "argv": [text] if name == "detail" else None})
    assert json.loads(raw)[name] == expected
    assert b"hunter2" not in raw


def test_many_kinds_of_record_do_not_grow_memory() -> None:
    for number in range(3000):
        build({f"name{number}": f"value{number}"})
    assert len(record_line._SHAPES) <= record_line.MAX_SHAPES
    assert len(record_line._FIELDS) <= record_line.MAX_SHAPES


def test_many_values_do_not_grow_memory() -> None:
    for number in range(3000):
        build({"host": f"h{number}.test", "port": number})
    assert len(record_line._FIELDS["host"]) <= record_line.MAX_CACHED
    assert len(record_line._FIELDS["port"]) <= record_line.MAX_CACHED
