"""What the kernel's log tells becomes records, once for each kind, bounded; what others write there does not."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netsandbox.audit.folding import MAX_LISTED
from netsandbox.audit.log import AuditLog
from netsandbox.audit.reader import read_records
from netsandbox.audit.verify import verify
from netsandbox.backends.seatbelt.refusal_records import RefusalRecords
from netsandbox.runtime.loop import Loop
from tests.rig.mac_log import stand_in
from tests.rig.waiting import turn_until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

TAG = "netsandbox-0123456789abcdef0123456789abcdef"
CLOSED = 24999
LOST = "the system's log ended; from here on what Seatbelt refuses is not recorded"
Told = Callable[[str], list[dict[str, Any]]]


def failed(error: BaseException) -> None:
    raise error


class Session:
    """A loop, a log and what is between them, until the program that prints the log has ended."""

    def __init__(self, folder: Path, program: str) -> None:
        self.log = AuditLog.open(str(folder / "audit.jsonl"), "s")
        self.loop = Loop(failed)
        self.refusals = RefusalRecords(self.loop, self.log, program, TAG, closed_port=CLOSED)

    def run(self) -> None:
        self.until(lambda: not self.refusals.awaited(1))

    def until(self, holds: Callable[[], bool]) -> None:
        """Serve until it does."""
        turn_until(self.loop, holds)

    def end(self) -> list[dict[str, Any]]:
        """The records, after a check of the chain."""
        self.refusals.close()
        self.loop.close()
        self.log.write("session.end", status=0)
        self.log.close()
        assert verify(self.log.path).ok
        return [record for record in read_records(self.log.path) if record["event"] in ("seatbelt", "policy")]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """What is recorded when the log prints what *body* says, and ends. Its end is a record, left out here."""

    def told(body: str) -> list[dict[str, Any]]:
        session = Session(tmp_path, stand_in(tmp_path, body))
        session.run()
        records = session.end()
        assert [record for record in records if record.get("detail") == LOST] != []
        return [shown(record) for record in records if record.get("detail") != LOST]

    return told


def shown(record: dict[str, Any]) -> dict[str, Any]:
    envelope = ("v", "ts", "seq", "session", "prev")
    return {name: value for name, value in record.items() if name not in envelope}


def seatbelt(operation: str, **fields: object) -> dict[str, object]:
    return {
        "event": "seatbelt",
        "verdict": "deny",
        "reason": "seatbelt",
        "operation": operation,
        "count": 1,
        **fields,
    }


def test_each_form_of_refusal_is_a_record(told: Told) -> None:
    records = told("""
say(BANNER,
    refused("curl(9859) deny(1) network-outbound remote:*:443"),
    refused("python3.12(9) deny(1) network-outbound 203.0.113.7:443"),
    refused("node(7) deny(1) network-bind local:*:3000"),
    refused("curl(9859) deny(1) network-outbound /private/var/run/mDNSResponder"),
    refused("cat(12) deny(1) file-read-data /Users/me/.ssh/id_ed25519"),
    refused("sh(13) deny(1) mach-lookup com.apple.pasteboard.1"),
    refused("Gradle Worker(10) deny(1) signal"),
    TRAILER)
""")
    assert records == [
        seatbelt("network-outbound", port=443, pid=9859, exe="curl"),
        seatbelt("network-outbound", port=443, address="203.0.113.7", pid=9, exe="python3.12"),
        seatbelt("network-bind", port=3000, pid=7, exe="node"),
        seatbelt("network-outbound", path="/private/var/run/mDNSResponder", pid=9859, exe="curl"),
        seatbelt("file-read-data", path="/Users/me/.ssh/id_ed25519", pid=12, exe="cat"),
        seatbelt("mach-lookup", target="com.apple.pasteboard.1", pid=13, exe="sh"),
        seatbelt("signal", pid=10, exe="Gradle Worker"),
    ]


def test_repeats_are_counted_those_of_the_kernels_own_counting_too(told: Told) -> None:
    records = told("""
one = "cat(%d) deny(1) file-read-data /x"
again = "3 duplicate reports for Sandbox: cat(5) deny(1) file-read-data /x\\n" + tag
say(refused(one % 5), refused(one % 6), line(again), refused("cat(5) deny(1) file-read-data /y"))
""")
    assert records == [
        seatbelt("file-read-data", path="/x", pid=5, exe="cat"),
        seatbelt("file-read-data", path="/y", pid=5, exe="cat"),
        seatbelt("file-read-data", path="/x", exe="cat", count=4),
    ]


@pytest.mark.parametrize("twice", ["one, one", "one, line('1 duplicate report for Sandbox: ' + said + '\\n' + tag)"])
def test_our_own_test_of_the_profile_is_no_attempt_of_the_command(told: Told, twice: str) -> None:
    """On 127.0.0.1 and ::1, by whichever program applies the profile; what comes after is the command's."""
    records = told(f"""
said = "netsandbox-apply(5) deny(1) network-outbound remote:*:{CLOSED}"
one = refused(said)
say(refused("netsandbox-apply(5) deny(1) network-outbound remote:*:443"), {twice},
    refused("curl(5) deny(1) network-outbound remote:*:{CLOSED}"))
""")
    assert [(record["exe"], record["port"]) for record in records] == [("netsandbox-apply", 443), ("curl", CLOSED)]


@pytest.mark.attack(172)
def test_what_anybody_but_the_kernel_writes_about_this_profile_is_not_taken(told: Told) -> None:
    """The tag is known to none of them; here each has guessed it."""
    records = told("""
text = "cat(5) deny(1) file-read-data /forged"
say(refused(text, processID=501, processImagePath="/private/tmp/kernel", senderImagePath="/private/tmp/Sandbox"),
    refused(text, processID=501),
    refused(text, processImagePath="/usr/bin/logger"),
    refused(text, senderImagePath="/usr/lib/libsystem_trace.dylib"),
    refused(text, processID="0"),
    refused("cat(5) deny(1) file-read-data /true"))
""")
    assert [record["path"] for record in records] == ["/true"]


@pytest.mark.attack(172)
def test_refusals_of_other_profiles_are_not_this_sessions(told: Told) -> None:
    records = told("""
other = "netsandbox-" + "f" * 32
said = "Sandbox: cat(5) deny(1) file-read-data /other"
say(line(said), line(said + "\\n" + other), line(said + tag), line(said + "\\n" + tag + "\\n" + other),
    line(said + "\\n" + tag + "x"), refused("cat(5) deny(1) file-read-data /own\\n" + other))
""")
    assert [record["path"] for record in records] == [f"/own\\nnetsandbox-{'f' * 32}"]


def test_what_cannot_be_read_is_left_out_and_counted(told: Told) -> None:
    records = told("""
good = refused("cat(5) deny(1) signal")
say(BANNER, b"not json\\n", b"\\xff\\xfe{\\n", b"x" * 400_000 + b"\\n", b"{" * 60_000 + b"\\n", good,
    b'{"eventMessage":"' + b"a" * 70_000 + b'"}\\n', good[:-2] + b"\\n", good)
""")
    assert records == [
        seatbelt("signal", pid=5, exe="cat"),
        seatbelt("signal", exe="cat"),
        {"event": "policy", "detail": "6 lines of the system's log could not be read"},
    ]


def test_a_stream_cut_at_every_byte_says_the_same(told: Told) -> None:
    records = told("""
for byte in BANNER + refused("cat(5) deny(1) file-read-data /caf\u00e9") + refused("sh(6) deny(1) signal"):
    say(bytes([byte]))
""")
    assert [record["operation"] for record in records] == ["file-read-data", "signal"]
    assert records[0]["path"] == "/caf\\xe9"


def test_a_line_that_never_ends_is_let_go(told: Told) -> None:
    records = told("""
say(refused("sh(6) deny(1) signal"))
for _ in range(200): say(b"y" * 10_000)
""")
    assert records == [
        seatbelt("signal", pid=6, exe="sh"),
        {"event": "policy", "detail": "1 lines of the system's log could not be read"},
    ]


@pytest.mark.attack(177)
def test_a_flood_of_files_is_bounded_counted_and_hides_no_connection(told: Told) -> None:
    records = told(f"""
for number in range({MAX_LISTED} + 500): say(refused(f"cat(5) deny(1) file-read-data /{{number}}"))
say(refused("curl(7) deny(1) network-outbound remote:*:443"), refused("cat(5) deny(1) file-read-data /0"))
""")
    *listed, connection, again, rest = records
    assert len(listed) == MAX_LISTED
    assert connection == seatbelt("network-outbound", port=443, pid=7, exe="curl")
    assert again == seatbelt("file-read-data", path="/0", exe="cat")
    assert rest == {
        "event": "seatbelt",
        "verdict": "deny",
        "reason": "seatbelt",
        "count": 500,
        "detail": f"past {MAX_LISTED} kinds, not listed",
    }


@pytest.mark.attack(177)
def test_a_flood_of_files_hides_no_connection_of_a_process_whose_name_makes_it_unclear(told: Told) -> None:
    records = told(f"""
for number in range({MAX_LISTED} + 5): say(refused(f"cat(5) deny(1) file-read-data /{{number}}"))
say(refused("a(1) deny(1) signal (7) deny(1) network-outbound remote:*:443"))
""")
    *_, unclear, rest = records
    assert (unclear["operation"], rest["count"]) == ("unclear", 5)
    assert "network-outbound remote:*:443" in unclear["target"]


@pytest.mark.attack(177)
def test_a_flood_of_ports_is_bounded_and_hides_no_file(told: Told) -> None:
    records = told(f"""
for port in range(1, {MAX_LISTED} + 4): say(refused(f"nc(5) deny(1) network-outbound remote:*:{{port}}"))
say(refused("cat(5) deny(1) file-read-data /x"))
""")
    assert records[MAX_LISTED] == seatbelt("file-read-data", path="/x", pid=5, exe="cat")
    assert [record["count"] for record in records[MAX_LISTED + 1 :]] == [3]


def test_refusals_of_the_kernel_are_counted_as_denied(tmp_path: Path) -> None:
    body = """
say(refused("a(5) deny(1) signal"), refused("a(6) deny(1) signal"), refused("b(5) deny(1) network-bind local:*:80"))
"""
    session = Session(tmp_path, stand_in(tmp_path, body))
    session.run()
    session.end()
    assert session.log.total("deny") == 3
    assert session.log.denied == {(None, None, "seatbelt", None, None): 2, (None, 80, "seatbelt", None, None): 1}


def test_where_the_log_ends_that_is_one_record_that_denies_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path, stand_in(tmp_path, "say(BANNER)"))
    session.run()
    assert [shown(record) for record in session.end()] == [{"event": "policy", "detail": LOST}]
    assert session.log.total("deny") == 0


@pytest.mark.parametrize("program", ["/no/such/log", "/etc/passwd"])
def test_where_there_is_no_log_that_is_one_record(tmp_path: Path, program: str) -> None:
    session = Session(tmp_path, program)
    session.run()
    assert [shown(record) for record in session.end()] == [{"event": "policy", "detail": LOST}]


def test_where_nothing_can_be_started_that_is_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("netsandbox.backends.seatbelt.refusal_records.LogStream", refuse)
    session = Session(tmp_path, "/usr/bin/log")
    session.run()
    (record,) = session.end()
    assert record["detail"].startswith("the system's log cannot be read (Resource temporarily unavailable)")


def test_a_system_without_such_a_log_says_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path, "")
    assert not session.refusals.awaited(1)
    assert session.end() == []


def test_lines_are_awaited_where_the_command_failed_or_something_was_refused(tmp_path: Path) -> None:
    body = """
say(BANNER)
while not os.path.exists(here + "/go"): time.sleep(0.01)
say(refused("cat(5) deny(1) signal"))
while not os.path.exists(here + "/end"): time.sleep(0.01)
"""
    session = Session(tmp_path, stand_in(tmp_path, body))
    refusals = session.refusals
    assert not refusals.awaited(0)
    assert refusals.awaited(256)
    (tmp_path / "go").touch()
    session.until(lambda: refusals.awaited(0))
    (tmp_path / "end").touch()
    session.until(lambda: not refusals.awaited(256))
    assert not refusals.awaited(0)
    session.end()
