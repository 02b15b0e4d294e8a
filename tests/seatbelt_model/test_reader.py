"""Any text gives forms or a syntax error with a line, however it is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seatbelt_model import reader
from tests.seatbelt_model.reader import Reader, decode, read, read_noting
from tests.seatbelt_model.values import Datum, Form, ProfileSyntaxError, Symbol, written

PIECES = st.sampled_from(
    [
        *"();\"#'\\ \n.",
        "allow",
        "deny",
        "#t",
        "#f",
        '#"^/a\\.b"',
        '"a\\"b"',
        "12",
        "-1.5",
        "; x\n",
        "\0",
        "é",
        "(a . b)",
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=40).map("".join))


def outcome(text: str, *, size: int | None = None) -> list[Datum] | tuple[str, int]:
    """The forms, or the complaint and its line; nothing else may come out."""
    machine = Reader()
    try:
        for at in range(0, len(text), size or len(text) or 1):
            machine.feed(text[at : at + (size or len(text))])
        return machine.close()
    except ProfileSyntaxError as error:
        said = error.text, error.line
    assert 1 <= said[1] <= text.count("\n") + 1
    assert "; " in said[0]
    return said


@given(TEXTS)
def test_any_text_gives_forms_or_a_syntax_error_whole_and_character_by_character(text: str) -> None:
    assert outcome(text) == outcome(text, size=1)


@given(TEXTS)
def test_every_prefix_does_too(text: str) -> None:
    for end in range(len(text)):
        outcome(text[:end])


@given(st.binary(max_size=80))
def test_any_bytes_give_forms_or_a_syntax_error_cut_at_every_byte(data: bytes) -> None:
    for end in range(len(data) + 1):
        try:
            text = decode(data[:end])
        except ProfileSyntaxError:
            continue
        outcome(text)


@given(st.text(max_size=40).filter(lambda text: "\0" not in text))
def test_a_string_written_with_its_escapes_is_read_back(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert read(f'"{quoted}"') == [text]


def test_the_forms_of_a_small_profile() -> None:
    assert read('(version 1) ; one\n(deny default)\n(allow file-read* (regex #"^/a\\.b$") (literal "/a\\\\b"))') == [
        Form((Symbol("version"), 1)),
        Form((Symbol("deny"), Symbol("default"))),
        Form(
            (
                Symbol("allow"),
                Symbol("file-read*"),
                Form((Symbol("regex"), "^/a\\.b$")),
                Form((Symbol("literal"), "/a\\b")),
            )
        ),
    ]


def test_every_list_knows_its_line() -> None:
    first, second = read('(allow a\n  (literal "x\ny"))\n\n(deny b)')
    assert isinstance(first, Form)
    assert isinstance(second, Form)
    assert (first.line, first.items[2].line, second.line) == (1, 2, 5)  # type: ignore[union-attr]


def test_words_of_each_kind() -> None:
    assert read("#t #f 12 -3 1.5 +7 - a-b* %x") == [
        True, False, 12, -3, 1.5, 7, Symbol("-"), Symbol("a-b*"), Symbol("%x")
    ]  # fmt: skip


def test_a_quote_is_a_list_that_begins_with_quote() -> None:
    quoted = Form((Symbol("quote"), Symbol("a")))
    assert read("'a ''a '(a)") == [
        quoted,
        Form((Symbol("quote"), quoted)),
        Form((Symbol("quote"), Form((Symbol("a"),)))),
    ]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("(a\n(b", 2, "never closed"),
        ("a)\n", 1, "closes nothing"),
        ('\n"abc\n', 2, "never closed"),
        ('\n#"abc', 2, "never closed"),
        ("'", 1, "nothing follows"),
        ("(a ')", 1, "nothing follows"),
        ('"\\x41"', 1, "is not one of"),
        ('"\\101"', 1, "is not one of"),
        ('"\\\n"', 1, "is not one of"),
        ('"\\ä"', 1, "is not one of"),
        ('#"a\\"b"', 1, "not known how"),
        ("#true", 1, "not understood"),
        ("a\0b", 1, "NUL"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, part: str) -> None:
    with pytest.raises(ProfileSyntaxError, match=part) as caught:
        read(text)
    assert caught.value.line == line


@given(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='nrt"\\0123456789xX'))
def test_a_backslash_before_any_other_character_is_dropped_and_noted(character: str) -> None:
    assert read_noting(f'\n"a\\{character}b"') == ([f"a{character}b"], [(2, character)])
    assert read_noting(f'#"a\\{character}b"') == ([f"a\\{character}b"], [])


@pytest.mark.attack(139)
def test_a_raw_string_may_end_in_an_escaped_backslash() -> None:
    assert read('#"a\\\\" b') == ["a\\\\", Symbol("b")]


def test_depth_is_bounded() -> None:
    deep = reader.MAX_DEPTH
    assert len(read("(" * deep + ")" * deep)) == 1
    with pytest.raises(ProfileSyntaxError, match="nested"):
        read("(" * (deep + 1))
    with pytest.raises(ProfileSyntaxError, match="quotes"):
        read("'" * (deep + 1))


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_CHARACTERS", 100)
    with pytest.raises(ProfileSyntaxError, match="more than 100"):
        read(" " * 101)
    monkeypatch.setattr(reader, "MAX_ATOM", 10)
    for text in ("a" * 11, '"' + "a" * 11):
        with pytest.raises(ProfileSyntaxError, match="more than 10"):
            read(text)


def test_bytes_that_are_no_text_are_refused_with_their_line() -> None:
    with pytest.raises(ProfileSyntaxError, match="UTF-8") as caught:
        decode(b"(version 1)\n\xff")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "shown"), [("#t", "#t"), ('"a\nb"', '"a\\nb"'), ("(a b)", "(a …)"), ("()", "()"), ("12", "12")]
)
def test_a_message_shows_any_value_in_one_line(text: str, shown: str) -> None:
    assert written(read(text)[0]) == shown
