"""What a file of a project is to us."""

from __future__ import annotations

import pytest

from netsandbox.config.profiles.project_choice import is_configuration, is_of_profiles, registries_of
from tests.config.profiles.conftest import Scene


@pytest.mark.parametrize(
    ("path", "configuration", "profile"),
    [
        (".netsandbox.toml", True, False),
        ("deep/.netsandbox.toml", True, False),
        (".sandbox/profiles/shop.toml", True, True),
        (".netsandbox/profiles/shop.profile.toml", True, True),
        ("profiles/shop.toml", False, False),
        (".npmrc", False, False),
        ("pyproject.toml", False, False),
    ],
)
def test_by_its_place(scene: Scene, path: str, configuration: bool, profile: bool) -> None:
    assert (is_configuration(path), is_of_profiles(path)) == (configuration, profile)


def test_registries_that_only_this_file_names(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(scene.bin))
    path = scene.file(".npmrc", "registry=https://shop.test/\n@me:registry=https://default.test/\n")
    found = registries_of(".npmrc")
    assert ("npm", "shop.test:443", f"{path}:1") in found
    assert ("npm", "default.test:443", f"{path}:2") not in found, "npm says so itself"
    assert registries_of("package.json") == []


def test_a_remote_of_git(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(scene.bin))
    path = scene.file(".git/config", '[remote "origin"]\n\turl = https://git.test/shop.git\n')
    assert registries_of(".git/config") == [("git", "git.test:443", f"{path}:2")]
