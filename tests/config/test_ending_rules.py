"""A rule with an end counts until then, in its own file, and the cache forgets it in time."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.approved_rules import add_rule
from netsandbox.config.document import layer_of
from netsandbox.config.ending_rules import current_layer, ends_of, read_end, seconds_left, written_end
from netsandbox.config.layer import Layer
from netsandbox.errors import UsageError

MOMENT = 1_763_458_200  # 2025-11-18T09:30:00Z
FILE = """\
[network]
allow_domains = ["a.test:443", "b.test"]
[filesystem]
allow_read = ["/srv/data", "/srv/more"]
[approvals]
until = ["2025-11-18T09:30:00Z a.test:443", "2025-11-18T09:30:00Z /srv/more", "2025-11-18T09:20:00Z /srv/more"]
"""


def layer(text: str = FILE) -> Layer:
    return layer_of("/c/config.toml", text.encode())


def written(found: Layer, table: str, key: str) -> list[object]:
    return [text for text, _ in found.values[table, key].items]


@given(st.text(min_size=1, max_size=40).filter(lambda text: "\0" not in text), st.integers(0, 4_000_000_000))
def test_what_is_written_is_read(rule: str, until: int) -> None:
    assert read_end(written_end(rule, until)) == (rule, until)


@given(st.text(max_size=40))
def test_another_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (of two parsers)
        read_end(text)


@pytest.mark.parametrize("text", ["2025-11-18 a.test", "2025-11-18T09:30:00Z", "2025-11-18T09:30:00Z ", "soon a.test"])
def test_a_wrong_line_names_its_file(text: str) -> None:
    with pytest.raises(UsageError, match=r"/c/config\.toml:2: .*is not a time and a rule; write for instance"):
        layer(f'[approvals]\nuntil = ["{text}"]\n')


def test_rules_count_until_the_latest_of_their_ends() -> None:
    before = current_layer(layer(), MOMENT - 1)
    assert written(before, "network", "allow_domains") == ["a.test:443", "b.test"]
    after = current_layer(layer(), MOMENT)
    assert written(after, "network", "allow_domains") == ["b.test"]
    assert written(after, "filesystem", "allow_read") == ["/srv/data"]
    assert [str(rule.path) for rule in after.values["filesystem", "allow_read"].value] == ["/srv/data"]  # type: ignore[attr-defined]
    assert ends_of(after) == {"a.test:443": MOMENT, "/srv/more": MOMENT}


def test_the_cache_lasts_until_the_next_end() -> None:
    assert seconds_left([layer()], MOMENT - 60, 1000) == 60
    assert seconds_left([layer()], MOMENT - 6000, 1000) == 1000
    assert seconds_left([layer()], MOMENT + 1, 1000) == 1000


def test_an_approval_with_an_end_ends_no_rule_that_was_there_without_one(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[filesystem]\nallow_read = ["/srv/data"]\n')
    place = ("filesystem", "allow_read")
    add_rule(str(file), "/srv/data", place, MOMENT)
    assert tomllib.loads(file.read_text()) == {"filesystem": {"allow_read": ["/srv/data"]}}
    add_rule(str(file), "/srv/more", place, MOMENT)
    add_rule(str(file), "/srv/more", place, MOMENT + 60)
    found = tomllib.loads(file.read_text())
    assert found["filesystem"] == {"allow_read": ["/srv/data", "/srv/more"]}
    assert ends_of(layer_of(str(file), file.read_bytes())) == {"/srv/more": MOMENT + 60}
