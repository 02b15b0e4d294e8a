"""The options of the HAR file."""

from __future__ import annotations

import os

import pytest

from netsandbox.cli.har_options import with_har
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import Parsed
from netsandbox.settings import RunSettings


def made(*, inspect: bool = True, **values: str) -> RunSettings:
    parsed = Parsed()
    parsed.values.update({name.replace("_", "-"): value for name, value in values.items()})
    return with_har(RunSettings(inspect=inspect), parsed)


def test_the_file_and_the_size_of_bodies() -> None:
    assert made(har="x.har").har == os.path.abspath("x.har")
    assert made(har="/x.har").har_bodies == 0
    sizes = {"64kB": 64_000, "64KiB": 65_536, "1MB": 10**6, "1MiB": 1 << 20, "500B": 500}
    assert {text: made(har="/x", har_bodies=text).har_bodies for text in sizes} == sizes


@pytest.mark.parametrize("text", ["0B", "500", "1GB", "2MiB", "1kBB"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write 64kB"):
        made(har="/x", har_bodies=text)


def test_a_file_needs_inspection() -> None:
    with pytest.raises(UsageError, match="add --inspect HOST"):
        made(har="/x", inspect=False)
    with pytest.raises(UsageError, match="add --har FILE"):
        made(har_bodies="1kB")
