"""Which settings of npm count: those that npm itself would read, by the same variables and folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from netsandbox.session.npm_settings import npm_settings


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"cafile={path}")
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[bytes, bytes]:
    """With a node of its own, behind a link as version managers have it."""
    node = tmp_path / "versions/node/bin/node"
    node.parent.mkdir(parents=True)
    node.touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/node").symlink_to(node)
    return {b"HOME": bytes(tmp_path / "home"), b"PATH": b"/nonexistent:" + bytes(tmp_path / "bin")}


@pytest.mark.parametrize("place", ["home/.npmrc", "versions/node/etc/npmrc", "work/.npmrc", "work/app/.npmrc"])
def test_every_place_is_read(environment: dict[bytes, bytes], tmp_path: Path, place: str) -> None:
    (tmp_path / "work/app").mkdir(parents=True)
    path = write(tmp_path / place)
    assert str(path).encode() in npm_settings(environment, bytes(tmp_path / "work/app"))
    other = {b"HOME": b"/nonexistent", b"PATH": b"/nonexistent"}
    assert str(path).encode() not in npm_settings(other, b"/nonexistent")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (b"NPM_CONFIG_USERCONFIG", "mine"),
        (b"npm_config_globalconfig", "mine"),
        (b"npm_config_prefix", ""),
        (b"PREFIX", ""),
    ],
)
def test_variables_name_other_files(environment: dict[bytes, bytes], tmp_path: Path, name: bytes, given: str) -> None:
    path = write(tmp_path / (given or "etc/npmrc"))
    found = npm_settings({**environment, name: bytes(tmp_path / given)}, b"/nonexistent")
    assert str(path).encode() in found


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_project_cannot_make_us_wait(tmp_path: Path, kind: str) -> None:
    """Attack: a pipe in place of the file, or a link to a device that never ends."""
    path = tmp_path / ".npmrc"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    assert b"ca" not in npm_settings({b"NPM_CONFIG_GLOBALCONFIG": b"/dev/null"}, bytes(tmp_path))


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").mkdir()
    assert npm_settings({b"HOME": bytes(tmp_path), b"NPM_CONFIG_GLOBALCONFIG": b"a\0b"}, b"/") == b""


def test_npm_has_its_global_file_where_we_look(tmp_path: Path) -> None:
    """The word of npm itself."""
    npm, node = shutil.which("npm"), shutil.which("node")
    assert npm is not None
    assert node is not None
    path = f"{Path(node).parent}:/usr/bin:/bin"
    asked = [npm, "config", "get", "globalconfig", "--loglevel=silent"]
    where = subprocess.run(asked, env={"PATH": path, "HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert Path(where.stdout.strip()) == Path(node).resolve().parent.parent / "etc/npmrc"
