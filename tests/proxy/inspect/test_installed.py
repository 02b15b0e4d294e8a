"""Which mitmproxy is there, and whether it was tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.errors import UsageError
from tests.rig.inspecting import import_folders

pytest.importorskip("mitmproxy")

from netsandbox_proxy.inspect.installed import check_version, version_in


def test_it_is_found_by_the_name_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "mitmproxy-11.0.2.dist-info").mkdir()
    (tmp_path / "mitmproxy_rs-0.10.7.dist-info").mkdir()
    assert version_in(["/nowhere", str(tmp_path)]) == "11.0.2"
    assert version_in([]) is None
    check_version(version_in(import_folders()))


@pytest.mark.parametrize("version", ["10.4.2", "12.0.0", "12.1.2", "12.3.0", "11.1", "13", "x"])
def test_a_version_that_was_not_tested_is_refused_by_name(version: str) -> None:
    with pytest.raises(UsageError, match=rf"mitmproxy {version} was not tested.*; run pip install"):
        check_version(version)


@pytest.mark.parametrize("version", ["11.0.2", "12.2.3"])
def test_the_versions_that_were_tested_are_taken(version: str) -> None:
    check_version(version)


def test_without_it_one_line_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"needs mitmproxy.*; run pip install 'netsandbox\[inspect\]'"):
        check_version(None)
