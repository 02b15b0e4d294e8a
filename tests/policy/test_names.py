"""One canonical name (INV-2): what is a host, what is an error, and that nothing is in between."""

from __future__ import annotations

import socket
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netsandbox.policy.ip import Address
from netsandbox.policy.names import BadName, Host, canonical, host_of, is_plain


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("example.com", "example.com"),
        (b"EXAMPLE.com", "example.com"),
        ("example.com.", "example.com"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("r3---sn-x.example.com", "r3---sn-x.example.com"),
        ("localhost", "localhost"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("B\u00dcCHER.example.", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("xn--strae-oqa.example", "xn--strae-oqa.example"),
        ("192.0.2.1", "192.0.2.1"),
        ("[2001:DB8:0:0:0:0:0:1]", "2001:db8::1"),
        ("[::ffff:192.0.2.1]", "192.0.2.1"),
        ("1.2.3.4x", "1.2.3.4x"),
        ("0x7f.example", "0x7f.example"),
    ],
)
def test_a_host_has_one_spelling(raw, text):
    assert canonical(raw).text == text


@pytest.mark.attack(2)
@pytest.mark.parametrize(
    "raw", [b"evil.test\0.allowed.test", b"\0allowed.test", b"allowed.test\0", "evil.test\0.allowed.test"]
)
def test_nul_is_no_part_of_a_host(raw):
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(3)
@pytest.mark.parametrize(
    "byte", [*range(0x2D), 0x2F, *range(0x3A, 0x41), *range(0x5B, 0x5F), 0x60, *range(0x7B, 0x100)]
)
def test_every_other_byte_is_refused_wherever_it_stands(byte):
    for raw in (b"a%ballowed.test", b"%ballowed.test", b"allowed.test%b"):
        with pytest.raises(BadName):
            canonical(raw % bytes([byte]))


@pytest.mark.attack(3)
@pytest.mark.parametrize(
    "raw", ["a%00.test", "allowed%2etest", "a%0d%0ab.test", "a b.test", " allowed.test", "allowed.test\n"]
)
def test_a_host_is_never_decoded_or_trimmed(raw):
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(5)
@pytest.mark.parametrize("raw", ["", ".", "..", ".example.test", "..example.test", "a..b", "example.test.."])
def test_empty_labels_are_refused(raw):
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(8)
@pytest.mark.parametrize(
    "raw", ["\u212aelvin.test", "te\u017ft.test", "\uff45xample.test", "stra\u00dfe.test", "\u03b1\u03c2.test"]
)
def test_letters_that_would_turn_into_other_letters_are_refused(raw):
    """Kelvin sign, long s, full width, sharp s, final sigma."""
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(8)
def test_a_dotless_i_is_a_different_letter():
    assert canonical("d\u0131sk.test").text.startswith("xn--")


@pytest.mark.attack(9)
@pytest.mark.parametrize(
    "raw",
    [
        "allowed\u3002test",
        "allowed\uff0etest",
        "allowed\uff61test",
        "allowed\u2024test",
        "allo\u00adwed.test",
        "allo\u200dwed.test",
        "allo\u200cwed.test",
        "allo\u200bwed.test",
        "\ufeffallowed.test",
        "allowed\ufe0f.test",
        "allo\u2060wed\u00fc.test",
        "\u2488test",
        "\u2100.test",
        "\ud800.test",
        "xn--.test",
        "xn--a.test",
        "xn--allowed-.test",
        "xn--99999999.test",
        "xn---tda.test",
        "xn--bcher-kva\u00fc.test",
        "a\u0338\u00fc/.test",
    ],
)
def test_disguised_dots_and_invisible_letters_are_refused(raw):
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(9)
def test_a_homoglyph_is_another_name():
    assert canonical("\u0430llowed.test").text == "xn--llowed-2nf.test"


@pytest.mark.attack(9)
def test_bytes_from_the_wire_are_ascii():
    with pytest.raises(BadName):
        canonical("b\u00fccher.example".encode())


@pytest.mark.attack(10)
@pytest.mark.attack(11)
@pytest.mark.parametrize(
    "raw",
    [
        "allowed.test@denied.test",
        "allowed.test:80",
        "a\\b.test",
        "a;b.test",
        "a#@b.test",
        "http://a.test",
        "a/b",
        "a?b",
        "[::1",
        "::1]",
        "[]",
        "[::1]x",
        "[allowed.test]",
        "[1.2.3.4]",
        "[fe80::1%lo]",
        "[::1].",
    ],
)
def test_url_parts_are_no_host(raw):
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(13)
@pytest.mark.parametrize("raw", ["2001:db8::1", "2001:db8::1:443", "::1", "::"])
def test_ipv6_needs_its_brackets(raw):
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(20)
def test_names_end_at_the_limits_of_the_standard():
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert len(longest) == 253
    assert canonical(longest).text == canonical(longest + ".").text == longest
    for raw in (longest + "b", "a" * 64 + ".test", "a." * 127 + "b", longest + "b."):
        with pytest.raises(BadName):
            canonical(raw)


@pytest.mark.attack(20)
@pytest.mark.parametrize(
    "raw", [b"a" * 100_000, b"a." * 50_000, b"." * 100_000, "\u00fc" * 100_000, b"[" + b":" * 100_000 + b"]"]
)
def test_a_huge_host_is_refused_at_once_and_shown_short(raw):
    with pytest.raises(BadName) as caught:
        canonical(raw)
    assert len(str(caught.value)) < 200
    assert effort(raw * 8) < 24 * max(effort(raw), 0.0005)  # eight times the input; a square would be sixty-four


def effort(raw):
    """Processor seconds for one refusal, the quickest of five."""
    times = []
    for _ in range(5):
        start = time.process_time()
        with pytest.raises(BadName):
            canonical(raw)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.attack(86)
@pytest.mark.attack(87)
@pytest.mark.parametrize(
    "raw",
    [
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "127.0.0.1 ",
        "0",
        "1.2.3",
        "0x7f.0.0.1",
        "127.0.0.01",
        "1.2.3.4.5",
        "256.0.0.1",
        "127.0.0.1.",
        "0x",
        "a.0x",
        "a.1",
        "example.test.1",
        "0X7F.1",
        "127.0.0.0x1",
        "00.0.0.0",
    ],
)
def test_ipv4_has_no_other_spelling(raw):
    with pytest.raises(BadName):
        canonical(raw)


@pytest.mark.attack(87)
@given(
    st.lists(
        st.sampled_from(["0", "1", "127", "0x7f", "0177", "255", "256", "00", "2130706433", "0x"]),
        min_size=1,
        max_size=5,
    )
)
def test_ipv4_as_the_c_library_reads_it_is_that_address_or_an_error(parts):
    text = ".".join(parts)
    try:
        host = canonical(text)
    except BadName:
        return
    assert host.address is not None
    assert int.from_bytes(socket.inet_aton(text), "big") == host.address.value


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80), st.text("aA.-_xn0179:[]%", max_size=80)))
@example("xn--a-0ga.test")
def test_canonical_gives_a_fixed_point_or_a_printable_error(raw):
    try:
        host = canonical(raw)
    except BadName as error:
        message = str(error)
    else:
        message = host.text
        assert canonical(host.bracketed) == host
        assert host.text == host.text.lower()
    assert message.isascii()
    assert message.isprintable()


@given(st.one_of(st.text(max_size=70), st.text("abxn-_.019", max_size=70)))
@example("a.0x1")
@example(".a")
@example("")
@example("x" * 64)
def test_a_plain_name_is_canonical(text):
    if is_plain(text):
        assert canonical(text) == Host(text, None)


def test_an_address_from_the_kernel_is_a_host():
    assert host_of(Address(6, 1)) == Host("::1", Address(6, 1))
    assert host_of(Address(6, 0xFFFF << 32 | 0x7F000001)) == Host("127.0.0.1", Address(4, 0x7F000001))
    assert host_of(Address(6, 1)).bracketed == "[::1]"


def test_a_name_has_letters_digits_hyphens_underscores_and_dots_only():
    for byte in range(256):
        raw = b"a" + bytes((byte,)) + b"b"
        is_name = bytes((byte,)).lower() in [b"%c" % each for each in b"abcdefghijklmnopqrstuvwxyz0123456789-_."]
        try:
            assert canonical(raw).text == raw.decode("ascii").lower()
            assert is_name
        except BadName:
            assert not is_name
        assert is_plain(raw.decode("latin-1")) == (is_name and not 65 <= byte <= 90)
