"""Limits as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.limits import KINDS, parse_limits, shown_value


def parse(*texts: str) -> dict[str, int]:
    return dict(parse_limits((text, "--limit") for text in texts))


def test_each_kind_of_value() -> None:
    written = "memory=2G,processes=500,files=1024,cpu=200%,file-size=512M,core=0,address-space=1T"
    assert parse(written) == {
        "memory": 2 << 30,
        "processes": 500,
        "files": 1024,
        "cpu": 200,
        "file-size": 512 << 20,
        "core": 0,
        "address-space": 1 << 40,
    }
    assert parse("memory=5000000") == {"memory": 5000000}


def test_the_last_value_counts() -> None:
    assert parse("memory=1G", "cpu=50%, memory=2G") == {"memory": 2 << 30, "cpu": 50}


@pytest.mark.parametrize(
    "text",
    [
        *("", "memory", "memory=", "memory=2", "memory=2g", "memory=G", "memory=-1G", "memory=1.5G", "memory=2GB"),
        *("memory=2G,", "=2G", "Memory=2G", "cpu=200", "cpu=%", "cpu=0%", "processes=0", "processes=5K", "files=7"),
        *("memory=99999999T", "memory=²G", "core=-1", "disk=2G", "memory=2G;cpu=1%", "cpu=1" + "0" * 5000 + "%"),
    ],
)
def test_what_is_no_limit_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert "--limit" in str(raised.value)
    assert "; write " in str(raised.value)
    assert len(str(raised.value)) < 400


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_what_is_shown_is_read_again(name: str, data: st.DataObject) -> None:
    _, least, most = KINDS[name]
    value = data.draw(st.integers(least, most))
    assert parse(f"{name}={shown_value(name, value)}") == {name: value}


@given(st.one_of(st.text(), st.builds("{}={}{}".format, st.sampled_from(sorted(KINDS)), st.text(), st.text())))
def test_any_text_is_read_or_refused_within_the_bounds(text: str) -> None:
    try:
        found = parse(text)
    except UsageError:
        return
    assert found
    assert all(KINDS[name][1] <= value <= KINDS[name][2] for name, value in found.items())
