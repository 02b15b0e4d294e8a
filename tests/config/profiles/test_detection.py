"""Files that are there choose profiles; none is read."""

from __future__ import annotations

import os

import pytest

from netsandbox.config.profiles.detection import anything_here, detected
from tests.config.profiles.conftest import Scene

RULES = {"node": ("package.json",), "python": ("setup.py", "pyproject.toml"), "never": ()}


def test_any_of_its_files_in_any_of_the_folders(scene: Scene) -> None:
    below = scene.project / "below"
    below.mkdir()
    folders = [str(below), str(scene.project)]
    assert detected(RULES, folders) == {}
    scene.file("pyproject.toml")
    assert detected(RULES, folders) == {"python": "pyproject.toml"}
    scene.file("below/package.json")
    scene.file("below/setup.py")
    assert detected(RULES, folders) == {"node": "package.json", "python": "setup.py"}


@pytest.mark.parametrize("kind", ["pipe", "folder", "dangling", "unreadable"])
def test_what_kind_of_file_it_is_does_not_matter(scene: Scene, kind: str) -> None:
    path = scene.project / "package.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("nowhere")
    else:
        path.touch(0)
    assert detected(RULES, [str(scene.project)]) == {"node": "package.json"}


def test_at_a_glance(scene: Scene) -> None:
    assert not anything_here()
    scene.file("go.mod")
    assert anything_here()
    (scene.project / "go.mod").unlink()
    assert not anything_here()
    scene.profile("base", '[network]\ndeny_domains = ["a.test"]\n')
    assert anything_here()


def test_a_users_profile_is_detected_too(scene: Scene) -> None:
    scene.profile("shop", '[profile]\ndetect = ["shop.yaml"]\n')
    assert not anything_here()
    scene.file("shop.yaml")
    assert anything_here()


def test_a_projects_own_profile_never_is(scene: Scene) -> None:
    scene.of_project("shop", '[profile]\ndetect = ["shop.yaml"]\n')
    scene.file("shop.yaml")
    assert not anything_here()
