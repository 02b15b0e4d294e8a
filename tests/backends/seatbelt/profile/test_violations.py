"""What Seatbelt refused is read from the kernel's own messages, whatever a command calls its programs and files.

The lines are written from descriptions of the format by people who ran `log stream` on macOS 14 and 15. Nothing was
taken from a Mac by this project; tests/backends/seatbelt/questions/test_log.py prints real lines and reads them with
this module.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.log_record import MAX_BYTES
from netsandbox.backends.seatbelt.profile.violations import (
    MAX_NAME,
    MAX_TARGET,
    OPERATIONS,
    UNCLEAR,
    Reader,
    Violation,
    command,
    escaped,
    predicate,
    read_message,
)
from netsandbox.errors import UsageError
from netsandbox.policy.ip import parse
from tests.rig.mac_log import BANNER, TRAILER, line

MESSAGES = {
    "Sandbox: cat(9854) deny(1) file-read-data /private/etc/hosts": {
        "operation": "file-read-data",
        "path": "/private/etc/hosts",
        "pid": 9854,
        "exe": "cat",
    },
    "Sandbox: curl(9859) deny(1) network-outbound remote:*:80": {
        "operation": "network-outbound",
        "port": 80,
        "pid": 9859,
        "exe": "curl",
    },
    "Sandbox: python3.12(9) deny(1) network-outbound 203.0.113.7:443": {
        "operation": "network-outbound",
        "address": "203.0.113.7",
        "port": 443,
        "pid": 9,
        "exe": "python3.12",
    },
    "Sandbox: node(7) deny(1) network-outbound remote:[2001:db8::7]:443": {
        "operation": "network-outbound",
        "address": "2001:db8::7",
        "port": 443,
        "pid": 7,
        "exe": "node",
    },
    "Sandbox: node(7) deny(1) network-bind local:*:3000": {
        "operation": "network-bind",
        "port": 3000,
        "pid": 7,
        "exe": "node",
    },
    "Sandbox: curl(75886) deny(1) network-outbound /private/var/run/mDNSResponder": {
        "operation": "network-outbound",
        "path": "/private/var/run/mDNSResponder",
        "pid": 75886,
        "exe": "curl",
    },
    "Sandbox: bash(3) deny(1) mach-lookup com.apple.diagnosticd": {
        "operation": "mach-lookup",
        "target": "com.apple.diagnosticd",
        "pid": 3,
        "exe": "bash",
    },
    "Sandbox: Gradle Worker(10) deny(1) signal": {"operation": "signal", "pid": 10, "exe": "Gradle Worker"},
    "Sandbox: A Helper (Renderer)(4106) deny(1) file-read-data /Users/me/a b.txt": {
        "operation": "file-read-data",
        "path": "/Users/me/a b.txt",
        "pid": 4106,
        "exe": "A Helper (Renderer)",
    },
    "3 duplicate reports for Sandbox: java(77) deny(1) mach-lookup com.apple.FontServer": {
        "operation": "mach-lookup",
        "target": "com.apple.FontServer",
        "pid": 77,
        "exe": "java",
        "count": 3,
    },
    "1 duplicate report for Sandbox: sh(5) deny(1) file-write-data /dev/dtracehelper": {
        "operation": "file-write-data",
        "path": "/dev/dtracehelper",
        "pid": 5,
        "exe": "sh",
    },
    "Sandbox: x(1) deny(1) network-outbound remote:nowhere": {
        "operation": "network-outbound",
        "target": "remote:nowhere",
        "pid": 1,
        "exe": "x",
    },
}


@pytest.mark.parametrize(("message", "fields"), MESSAGES.items())
def test_a_message_becomes_the_fields_of_a_record(message: str, fields: dict[str, object]) -> None:
    (violation,) = Reader().feed(line(message))
    assert violation.fields() == {"verdict": "deny", **fields}


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Sandbox: cat(1) allow file-read-data /x",
        "Sandbox: cat(1) deny(1) no-such-operation /x",
        "Sandbox: cat(1) deny(1) default",
        "Sandbox: cat(0) deny(1) signal",
        "Sandbox: cat(-1) deny(1) signal",
        "Sandbox: cat(\u0661) deny(1) signal",
        "Sandbox: cat(9999999999999999999999) deny(1) signal",
        "Sandbox: (5) deny(1) signal",
        "Sandbox: cat deny(1) signal",
        "Sandbox: cat(5) deny(x) signal",
        "System Policy: eslogger(5) deny(1) system-privilege 1016",
        "0 duplicate reports for Sandbox: a(5) deny(1) signal",
        "many duplicate reports for Sandbox: a(5) deny(1) signal",
        f"Sandbox: {'n' * (MAX_NAME + 1)}(5) deny(1) signal",
    ],
)
def test_any_other_message_is_no_violation(message: str) -> None:
    reader = Reader()
    assert reader.feed(line(message)) == []
    assert reader.dropped == 0


@pytest.mark.attack(172)
@pytest.mark.parametrize(
    "other",
    [
        {"processID": 501},
        {"processID": "0"},
        {"processID": False},
        {"processID": None},
        {"processImagePath": "/private/tmp/kernel"},
        {"senderImagePath": "/private/tmp/Sandbox2"},
        {"senderImagePath": None},
        {"eventMessage": 7},
    ],
)
def test_nobody_but_the_kernel_is_believed(other: dict[str, object]) -> None:
    assert Reader().feed(line("Sandbox: cat(1) deny(1) signal", **other)) == []


@pytest.mark.attack(172)
def test_a_program_named_like_a_message_hides_no_refusal_and_blames_nobody() -> None:
    violation = read_message("Sandbox: a(1) deny(1) signal(55) deny(1) file-read-data /x")
    assert violation is not None
    assert violation.fields()["pid"] == 55  # `signal(55)` is no operation, so there is one reading
    violation = read_message("Sandbox: a(1) deny(1) signal (55) deny(1) file-read-data /x")
    assert violation is not None
    assert violation.pids == (1, 55)
    assert violation.operation == UNCLEAR
    assert {"pid", "exe", "path"}.isdisjoint(violation.fields())


@pytest.mark.attack(172)
def test_a_path_named_like_a_message_changes_nothing_beyond_the_reach_of_a_name() -> None:
    path = "/Users/me/a-folder-that-is-long/b(7) deny(1) signal"
    (violation,) = Reader().feed(line(f"Sandbox: cat(5) deny(1) file-read-data {path}"))
    assert violation.fields() == {
        "verdict": "deny",
        "operation": "file-read-data",
        "path": path,
        "pid": 5,
        "exe": "cat",
    }


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=MAX_NAME)
targets = st.text(st.characters(codec="utf-8"), max_size=200)


@given(names, st.integers(1, 99_999_999), st.sampled_from(sorted(OPERATIONS)), targets, st.integers(1, 999))
def test_whatever_names_and_targets_hold_the_process_is_among_those_it_may_be(
    name: str, pid: int, operation: str, target: str, count: int
) -> None:
    prefix = f"{count} duplicate reports for " if count > 1 else ""
    violation = read_message(f"{prefix}Sandbox: {name}({pid}) deny(1) {operation} {target}")
    assert violation is not None
    assert pid in violation.pids
    assert violation.count == count
    if violation.program:
        assert (violation.program, violation.pids, violation.operation) == (name, (pid,), operation)
        assert violation.target == target[:MAX_TARGET]
    for value in violation.fields().values():
        assert isinstance(value, int) or (isinstance(value, str) and value.isascii() and value.isprintable())


NOISE = st.one_of(
    st.sampled_from([BANNER, TRAILER, b"\n", b"not json\n", b"{}\n", b"\xff\xfe\n"]),
    st.sampled_from(sorted(MESSAGES)).map(line),
    st.binary(max_size=40),
)


@given(st.lists(NOISE, max_size=8).map(b"".join), st.lists(st.integers(0, 3000), max_size=6))
def test_pieces_of_any_size_say_the_same_as_the_whole(stream: bytes, cuts: list[int]) -> None:
    whole = Reader()
    expected = whole.feed(stream)
    single, pieces = Reader(), Reader()
    found = [each for at in range(len(stream)) for each in single.feed(stream[at : at + 1])]
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts = [each for at, end in pairwise(places) for each in pieces.feed(stream[at:end])]
    assert found == parts == expected
    assert single.dropped == pieces.dropped == whole.dropped


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_a_fault(data: bytes) -> None:
    reader = Reader()
    reader.feed(data)
    assert reader.feed(b"\n" + line("Sandbox: cat(5) deny(1) signal")) == [Violation("signal", "", "cat", (5,))]


@pytest.mark.parametrize("filler", [b"x", b" ", BANNER.rstrip()])
def test_a_line_without_an_end_is_let_go_and_the_next_is_read(filler: bytes) -> None:
    long = (filler * 4 * MAX_BYTES)[: 3 * MAX_BYTES]
    good = line("Sandbox: cat(5) deny(1) signal")
    for size in (1000, MAX_BYTES, len(long) + 1):
        reader = Reader()
        for at in range(0, len(long), size):
            assert reader.feed(long[at : at + size]) == []
        assert len(reader.feed(b"\n" + good)) == 1
        assert reader.dropped == 1


TAG = "netsandbox-0123456789abcdef0123456789abcdef"
FOREIGN = "netsandbox-ffffffffffffffffffffffffffffffff"


@pytest.mark.parametrize(("message", "fields"), MESSAGES.items())
def test_with_a_tag_a_message_that_ends_in_it_says_the_same(message: str, fields: dict[str, object]) -> None:
    (violation,) = Reader(TAG).feed(line(f"{message}\n{TAG}"))
    assert violation.fields() == {"verdict": "deny", **fields}


@pytest.mark.attack(172)
@pytest.mark.parametrize(
    "end",
    [
        "",
        TAG,
        f" {TAG}",
        f"\n{FOREIGN}",
        f"\n{TAG}\n{FOREIGN}",
        f"\n{TAG}\n",
        f"\n{TAG} ",
        f"\n {TAG}",
        f"\n{TAG[:-1]}",
        f"\n{TAG.upper()}",
        f"\r{TAG}",
        f"\u2028{TAG}",
    ],
)
def test_a_message_of_another_profile_is_not_this_sessions(end: str) -> None:
    reader = Reader(TAG)
    assert reader.feed(line(f"Sandbox: cat(5) deny(1) file-read-data /x{end}")) == []
    assert reader.dropped == 0
    assert len(reader.feed(line(f"Sandbox: cat(5) deny(1) file-read-data /x\n{TAG}"))) == 1


@pytest.mark.attack(172)
@given(targets, targets)
def test_lines_in_a_path_are_the_paths_and_the_last_line_is_the_kernels(target: str, more: str) -> None:
    path = f"/{target}\n{FOREIGN}\n{more}"
    message = f"Sandbox: cat(5) deny(1) file-read-data {path}"
    (violation,) = Reader(TAG).feed(line(f"{message}\n{TAG}"))
    assert violation == read_message(message)
    assert 5 in violation.pids
    assert Reader(FOREIGN).feed(line(f"{message}\n{TAG}")) == []


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_whatever_follows_the_tag_the_message_is_nobodys(text: str) -> None:
    found = Reader(TAG).feed(line(f"Sandbox: cat(5) deny(1) signal\n{TAG}{text}"))
    assert bool(found) == (text == "" or text.endswith(f"\n{TAG}"))


@given(st.text(max_size=50), st.text(max_size=50))
def test_different_texts_stay_different_when_they_are_escaped(one: str, other: str) -> None:
    assert (escaped(one) == escaped(other)) == (one == other)
    assert "\n" not in escaped(one)


def test_another_program_is_asked_the_same() -> None:
    assert command(TAG, "/opt/log") == ["/opt/log", *command(TAG)[1:]]
    assert command(TAG)[-1] == f'{predicate()} AND eventMessage CONTAINS "{TAG}"'


def test_the_log_is_asked_by_its_own_path_for_the_kernels_refusals() -> None:
    assert command() == [
        "/usr/bin/log",
        "stream",
        "--style",
        "ndjson",
        "--predicate",
        'process == "kernel" AND sender == "Sandbox" AND eventMessage CONTAINS ") deny("',
    ]


def test_a_text_in_the_predicate_stays_one_text() -> None:
    assert predicate('a" OR "1" == "1').endswith(' AND eventMessage CONTAINS "a\\" OR \\"1\\" == \\"1"')
    assert predicate("a\\").endswith(' AND eventMessage CONTAINS "a\\\\"')


@given(st.text(min_size=1, max_size=40))
def test_any_text_is_one_literal_of_the_predicate_or_refused(text: str) -> None:
    try:
        asked = predicate(text)
    except UsageError:
        assert not text.isprintable()
        return
    literal = asked.removeprefix(predicate() + " AND eventMessage CONTAINS ")
    assert literal[0] == literal[-1] == '"'
    inner, at, read = literal[1:-1], 0, ""
    while at < len(inner):
        assert inner[at] != '"'
        at += inner[at] == "\\"
        read += inner[at]
        at += 1
    assert read == text


@pytest.mark.parametrize("text", ["a\nb", "a\x00", "\u2028", "x" * (MAX_TARGET + 1)])
def test_what_cannot_be_asked_for_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="use a short text of printable characters"):
        predicate(text)


def test_addresses_are_written_in_one_way() -> None:
    (violation,) = Reader().feed(line("Sandbox: a(1) deny(1) network-outbound [2001:DB8:0::7]:443"))
    address = violation.fields()["address"]
    assert isinstance(address, str)
    assert parse(address) is not None
    assert address == "2001:db8::7"


def test_a_supervisor_can_load_it_without_the_modules_it_must_not_have() -> None:
    code = (
        "import sys; before = set(sys.modules); import netsandbox.backends.seatbelt.profile.violations; "
        "print(*sorted({'dataclasses', 'typing', 'ipaddress', 'socket'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=".")
    assert done.stdout.strip() == ""
