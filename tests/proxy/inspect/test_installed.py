"""Which mitmproxy is there, and whether it was tested."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from netsandbox.errors import UsageError
from tests.rig.inspecting import import_folders

pytest.importorskip("mitmproxy")

from netsandbox_proxy.inspect.installed import INSTALL, check_version, requirement, version_in

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_it_is_found_by_the_name_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "mitmproxy-11.0.2.dist-info").mkdir()
    (tmp_path / "mitmproxy_rs-0.10.7.dist-info").mkdir()
    assert version_in(["/nowhere", str(tmp_path)]) == "11.0.2"
    assert version_in([]) is None
    check_version(version_in(import_folders()))


@pytest.mark.parametrize("version", ["10.4.2", "12.0.0", "12.1.2", "12.3.0", "11.1", "13", "x"])
def test_a_version_that_was_not_tested_is_refused_by_name(version: str) -> None:
    with pytest.raises(UsageError, match=rf"mitmproxy {version} was not tested.*; run .* -m pip install"):
        check_version(version)


@pytest.mark.parametrize("version", ["11.0.2", "12.2.3"])
def test_the_versions_that_were_tested_are_taken(version: str) -> None:
    check_version(version)


def test_without_it_one_line_says_what_to_do() -> None:
    with pytest.raises(UsageError) as raised:
        check_version(None)
    assert str(raised.value) == f"inspection needs mitmproxy, which is not installed here; run {INSTALL}"


def test_the_command_installs_a_tested_version_for_this_python_and_no_package_that_is_not_published() -> None:
    assert shlex.split(INSTALL) == [sys.executable, "-m", "pip", "install", requirement(sys.version_info[:2])]
    assert requirement((3, 11)) == "mitmproxy>=11.0,<11.1"
    assert requirement((3, 12)) == requirement((3, 13, 1)) == "mitmproxy>=12.2,<12.3"


@pytest.mark.parametrize("extra", ["inspect", "test"])
def test_the_extras_require_the_same(extra: str) -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert [each for each in extras[extra] if each.startswith("mitmproxy")] == [
        f"{requirement((3, 11))}; python_version<'3.12'",
        f"{requirement((3, 12))}; python_version>='3.12'",
    ]
