from __future__ import annotations

from configparser import Error, RawConfigParser

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.ini import Line, npm_lines, pip_lines

PIECES = st.sampled_from(
    [
        "[global]",
        "[install]",
        "index-url",
        "=",
        " = ",
        ":",
        " ",
        "\t",
        "\n",
        "\n  ",
        "#",
        ";",
        "https://a.example",
        "x",
        '"',
        "\r",
    ]
)
DOCUMENTS = st.lists(PIECES, max_size=40).map("".join)


def test_npms_lines() -> None:
    text = '; no\n# no\nregistry = https://a.example/ ; why\n"@b:registry"="https://b.example"\na[] = 1\nflag\n[s]\nx=y'
    assert list(npm_lines(text)) == [
        Line("", "registry", "https://a.example/", 3),
        Line("", "@b:registry", "https://b.example", 4),
        Line("", "a", "1", 5),
        Line("s", "x", "y", 8),
    ]


def test_pips_lines_go_on_where_they_are_indented() -> None:
    text = "[global]\nindex-url = https://a.example\nextra-index-url =\n    https://b.example\n    # no\n    https://c.example\n"
    assert list(pip_lines(text)) == [
        Line("global", "index-url", "https://a.example", 2),
        Line("global", "extra-index-url", "https://b.example https://c.example", 3),
    ]


@given(DOCUMENTS)
def test_pips_format_is_read_as_pip_reads_it(text: str) -> None:
    oracle = RawConfigParser()
    try:
        oracle.read_string(text)
    except Error:
        return  # pip would stop here
    ours = {(line.section, line.key): line.value.split() for line in pip_lines(text)}
    for section in oracle.sections():
        for key, value in oracle.items(section):
            if section != "DEFAULT" and value is not None:
                assert ours[section, key] == value.split()


@given(st.text() | DOCUMENTS)
def test_nothing_is_an_error_and_every_value_is_in_the_text(text: str) -> None:
    for line in npm_lines(text):
        assert line.value in text
    for line in pip_lines(text):
        assert all(word in text for word in line.value.split())
