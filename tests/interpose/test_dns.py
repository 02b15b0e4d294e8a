"""One question and its answer, as C writes and reads them, held against dnslib; and bytes that are no answer at all.

Messages stand at the end of a page with nothing behind it, so that a read of one byte too many ends the run."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
from pathlib import Path
from typing import Any

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose._native import ffi, lib

ID = 0x5353
SOURCES = Path(__file__).resolve().parents[2] / "interpose" / "src"
labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=63)
names = st.lists(labels, min_size=1, max_size=6).map(".".join).filter(lambda name: len(name) <= 253)
addresses = st.lists(st.ip_addresses(v=4).map(str), max_size=18)
FOUND, NONE, FAILED, FOREIGN = lib.NS_DNS_FOUND, lib.NS_DNS_NONE, lib.NS_DNS_FAILED, lib.NS_DNS_FOREIGN


class Page:
    """Memory whose end is the end of what may be read."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 3 * mmap.PAGESIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._end = start + 2 * mmap.PAGESIZE
        assert self._libc.mprotect(ctypes.c_void_p(self._end), mmap.PAGESIZE, 0) == 0

    def put(self, data: bytes) -> Any:
        place = self._end - len(data)
        ctypes.memmove(place, data, len(data))
        return ffi.cast("uint8_t *", place)


PAGE, OTHER = Page(), Page()


def ask(name: str | bytes, number: int = ID) -> bytes:
    room = ffi.new("uint8_t[]", lib.NS_DNS_QUESTION)
    text = name.encode() if isinstance(name, str) else name
    return bytes(ffi.buffer(room)[0 : lib.ns_dns_question(text, number, room)])


def read(question: bytes, message: bytes) -> tuple[int, list[str]]:
    found = ffi.new("struct ns_addresses *")
    said = lib.ns_dns_answer(OTHER.put(question), len(question), PAGE.put(message), len(message), found)
    assert found.count <= lib.NS_DNS_ADDRESSES
    return said, [".".join(map(str, found.address[number])) for number in range(found.count)]


def answer(question: bytes, *records: str, rcode: int = 0, more: tuple[str, ...] = ()) -> bytes:
    reply = dnslib.DNSRecord.parse(question).reply()
    reply.header.rcode = rcode
    for record in records:
        reply.add_answer(*dnslib.RR.fromZone(record))
    for record in more:
        reply.add_auth(*dnslib.RR.fromZone(record))
        reply.add_ar(*dnslib.RR.fromZone(record))
    return bytes(reply.pack())


@given(names, st.integers(0, 65535), st.booleans())
def test_a_question_is_the_one_that_dnslib_writes(name: str, number: int, dot: bool) -> None:
    expected = dnslib.DNSRecord(dnslib.DNSHeader(id=number, rd=1), q=dnslib.DNSQuestion(name, dnslib.QTYPE.A))
    assert ask(name + "." * dot, number) == bytes(expected.pack())


@pytest.mark.parametrize(
    "name",
    [b"", b".", b"..", b".a", b"a..b", b"a..", b"x" * 64, b".".join([b"x" * 63] * 4), b"a b", b"a\tb", b"\xc3\xa4"],
)
def test_what_is_no_name_is_no_question(name: bytes) -> None:
    assert ask(name) == b""


def test_the_longest_name_fits() -> None:
    name = ".".join(["x" * 63] * 3 + ["x" * 61])
    assert (len(name), len(ask(name))) == (253, 271)
    assert ask(name + "x") == b""


@given(names, addresses, st.booleans())
def test_an_answer_of_dnslibs_is_read_as_it_was_meant(name: str, found: list[str], capitals: bool) -> None:
    question = ask(name)
    records = [f"{name.upper() if capitals else name}. 60 A {address}" for address in found]
    message = answer(question, *records, more=("other.test. 60 NS ns.test.", f"{name}. 60 A 192.0.2.66"))
    assert read(question, message) == (FOUND if found else NONE, found[:16])


def test_an_alias_is_followed_and_what_belongs_to_others_is_not() -> None:
    question = ask("one.test")
    chain = ("one.test. 60 CNAME two.test.", "two.test. 60 CNAME three.test.", "three.test. 60 A 198.18.0.1")
    assert read(question, answer(question, *chain)) == (FOUND, ["198.18.0.1"])
    assert read(question, answer(question, *chain[:2], "four.test. 60 A 198.18.0.1")) == (NONE, [])
    assert read(question, answer(question, "other.test. 60 A 198.18.0.1")) == (NONE, [])
    assert read(question, answer(question, "one.test. 60 AAAA ::1", 'one.test. 60 TXT "x"')) == (NONE, [])


@pytest.mark.parametrize(("rcode", "said"), [(0, NONE), (1, FAILED), (2, FAILED), (3, NONE), (4, FAILED), (5, NONE)])
def test_what_the_resolver_says(rcode: int, said: int) -> None:
    question = ask("one.test")
    assert read(question, answer(question, rcode=rcode)) == (said, [])


def changed(message: bytes, place: int, value: int) -> bytes:
    return message[:place] + bytes([value]) + message[place + 1 :]


GOOD_QUESTION = ask("one.test")
GOOD = answer(GOOD_QUESTION, "one.test. 60 A 198.18.0.1")
RECORD = len(GOOD_QUESTION)  # its pointer to the name, type, class, time to live, length, address
LONG = [  # owners of 255 bytes and of one more, by a pointer at their end to the ten bytes of the name
    GOOD[:RECORD] + b"".join(bytes([size]) + b"x" * size for size in (63, 63, 63, last)) + GOOD[RECORD:]
    for last in (52, 53)
]
ALIAS = GOOD[: RECORD + 2] + b"\0\5\0\1" + bytes(4)  # up to the length: an alias of that name


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (GOOD, FOUND),
        (ask("two.test"), FOREIGN),
        (GOOD_QUESTION, FOREIGN),
        (changed(GOOD, 0, 0), FOREIGN),
        (changed(GOOD, 2, GOOD[2] | 0x08), FOREIGN),
        (changed(GOOD, 2, GOOD[2] | 0x02), FAILED),
        (changed(GOOD, 5, 0), FOREIGN),
        (changed(GOOD, 5, 2), FOREIGN),
        (changed(GOOD, 7, 2), FOREIGN),
        (changed(GOOD, 7, 0), FOREIGN),
        (changed(GOOD, 9, 1), FOREIGN),
        (changed(GOOD, RECORD - 3, 28), FOREIGN),
        (changed(GOOD, RECORD - 1, 3), FOREIGN),
        (changed(GOOD, RECORD + 1, 0), FOREIGN),
        (changed(GOOD, RECORD + 1, 4), FOREIGN),
        (changed(GOOD, RECORD + 1, RECORD), FOREIGN),
        (LONG[0], NONE),
        (LONG[1], FOREIGN),
        (ALIAS + b"\0\2\xc0\x10", NONE),
        (ALIAS + b"\0\3\xc0\x10\0", FOREIGN),
        (changed(GOOD, RECORD, 0xFF), FOREIGN),
        (changed(GOOD, RECORD, 0x80), FOREIGN),
        (changed(GOOD, RECORD + 3, 28), NONE),
        (changed(GOOD, RECORD + 5, 3), NONE),
        (changed(GOOD, RECORD + 11, 3)[:-1], FOREIGN),
        (GOOD + b"\0", FOREIGN),
        (b"", FOREIGN),
    ],
)
def test_only_an_answer_to_the_question_is_one(message: bytes, said: int) -> None:
    assert read(GOOD_QUESTION, message) == (said, ["198.18.0.1"] if said == FOUND else [])


SAMPLES = [
    GOOD,
    answer(GOOD_QUESTION, "one.test. 60 CNAME two.test.", "two.test. 60 A 198.18.0.2", more=("x.test. 60 NS y.test.",)),
    answer(GOOD_QUESTION, *(f"one.test. 60 A 198.18.0.{number}" for number in range(20))),
    answer(GOOD_QUESTION, rcode=3),
    LONG[1],
]


@pytest.mark.parametrize("message", SAMPLES)
def test_every_truncation_is_no_answer(message: bytes) -> None:
    for length in range(len(message)):
        said, found = read(GOOD_QUESTION, message[:length])
        assert (said, found) == (FOREIGN, []), length


@pytest.mark.parametrize("message", SAMPLES)
def test_no_changed_byte_leads_out_of_the_message(message: bytes) -> None:
    for place in range(len(message)):
        for value in {0, 1, 12, 63, 64, 128, 192, 193, 255, *(message[place] ^ 1 << bit for bit in range(8))}:
            said, _ = read(GOOD_QUESTION, changed(message, place, value))
            assert said in (FOUND, NONE, FAILED, FOREIGN)


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_lead_out_of_the_message(data: bytes, headed: bool) -> None:
    said, _ = read(GOOD_QUESTION, GOOD[:RECORD] * headed + data)
    assert said in (FOUND, NONE, FAILED, FOREIGN)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.Localhost."])
def test_localhost_is_known_in_all_its_names(name: str) -> None:
    assert lib.ns_dns_is_localhost(name.encode())


@pytest.mark.parametrize("name", ["", ".", "localhos", "alocalhost", "localhost.a", "localhost..", "example.com"])
def test_other_names_are_not_localhost(name: str) -> None:
    assert not lib.ns_dns_is_localhost(name.encode())


def test_the_compilers_own_watch_sees_nothing(tmp_path: Path, compiler: str) -> None:
    """AddressSanitizer and UndefinedBehaviorSanitizer over the samples, their cuts and their changed bytes."""
    program, messages = tmp_path / "answers", tmp_path / "messages"
    flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{SOURCES}"]
    units = [str(Path(__file__).parent / "programs" / "answers.c"), str(SOURCES / "dns.c")]
    built = subprocess.run([compiler, *flags, *units, "-o", program], capture_output=True, text=True, check=False)
    if built.returncode != 0 and "san" in built.stderr:
        pytest.skip("the compiler comes without its sanitizers (package libasan, libubsan)")
    assert built.returncode == 0, built.stderr
    cases = [sample[:length] for sample in SAMPLES for length in range(len(sample) + 1)]
    cases += [
        changed(sample, place, sample[place] ^ 1 << bit)
        for sample in SAMPLES
        for place in range(len(sample))
        for bit in range(8)
    ]
    messages.write_bytes(b"".join(len(case).to_bytes(2, "big") + case for case in cases))
    done = subprocess.run([program, messages], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(cases)}\n"), done.stderr
