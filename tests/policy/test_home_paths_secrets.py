"""The lists of secrets name paths below the home directory, each once."""

from __future__ import annotations

import pytest

from netsandbox.policy import home_paths
from netsandbox.policy.file_rules import is_within, normal

both_systems = pytest.mark.parametrize("listed", [home_paths.OF_LINUX, home_paths.OF_MAC], ids=["linux", "mac"])


@both_systems
def test_every_path_is_relative_to_the_home_directory_and_in_its_shortest_form(listed: tuple[str, ...]) -> None:
    assert [path for path in listed if f"/{path}" != normal(f"/{path}") or ".." in path.split("/")] == []


@both_systems
def test_no_path_lies_within_another(listed: tuple[str, ...]) -> None:
    assert [(path, other) for path in listed for other in listed if path is not other and is_within(path, other)] == []


@both_systems
@pytest.mark.parametrize("known", [".ssh", ".aws", ".gnupg", ".netrc", ".npmrc", ".bash_history", ".kube"])
def test_well_known_secrets_are_listed_for_both_systems(listed: tuple[str, ...], known: str) -> None:
    assert known in listed


@pytest.mark.parametrize("path", [*home_paths.LINUX_SYSTEM, *home_paths.MAC_SYSTEM])
def test_secrets_of_the_system_are_absolute_paths(path: str) -> None:
    assert path == normal(path)
