"""What was read once is not parsed again, and never used when it is not what the file says."""

from __future__ import annotations

import marshal
import os
import sys

import pytest

from netsandbox.config.profiles import library
from netsandbox.config.profiles.library import Library
from netsandbox.errors import UsageError
from tests.config.profiles.conftest import Scene

TEXT = '[network]\nallow_domains = ["a.test"]\n'


def read(path: str, monkeypatch: pytest.MonkeyPatch | None = None) -> list[str]:
    """What the profile allows; with *monkeypatch* nothing may be parsed."""
    if monkeypatch is not None:
        monkeypatch.setattr(library, "_read", lambda *_: pytest.fail("the file was read again"))
    shelf = Library()
    allowed: list[str] = shelf.tables("shop", path)[0]["network"]["allow_domains"]
    shelf.close()
    return allowed


def test_a_file_is_parsed_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(scene.profile("shop", TEXT))
    assert read(path) == ["a.test"]
    assert read(path, monkeypatch) == ["a.test"]
    assert (scene.state / "profiles").stat().st_mode & 0o777 == 0o600


def test_a_file_that_changed_is_read_again(scene: Scene) -> None:
    path = scene.profile("shop", TEXT)
    assert read(str(path)) == ["a.test"]
    other = scene.own / "other"
    other.write_text(TEXT.replace("a.test", "b.test"))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    while other.stat().st_ctime_ns <= path.stat().st_ctime_ns:  # until the kernel's clock ticks
        os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert read(str(path)) == ["b.test"]


@pytest.mark.parametrize("damage", ["cut", "noise", "other version", "empty", "writable", "link", "folder"])
def test_a_damaged_memory_is_none(scene: Scene, damage: str) -> None:
    path = str(scene.profile("shop", TEXT))
    read(path)
    memory = scene.state / "profiles"
    forged = marshal.loads(memory.read_bytes())
    forged[1][path][1]["network"]["allow_domains"] = ["evil.test"]
    whole = marshal.dumps(forged)
    if damage == "cut":
        memory.write_bytes(whole[:-9])
    elif damage == "noise":
        memory.write_bytes(b"noise")
    elif damage == "other version":
        memory.write_bytes(marshal.dumps((("netsandbox profiles 0", sys.hexversion), forged[1])))
    elif damage == "empty":
        memory.write_bytes(b"")
    elif damage == "writable":
        memory.write_bytes(whole)
        memory.chmod(0o666)
    elif damage == "link":
        (scene.state / "elsewhere").write_bytes(whole)
        memory.unlink()
        memory.symlink_to(scene.state / "elsewhere")
    else:
        memory.unlink()
        memory.mkdir()
    assert read(path) == ["a.test"]
    if damage == "noise":
        memory.write_bytes(whole)
        assert read(path) == ["evil.test"], "the twin: an intact memory is believed"


def test_what_is_no_profile_is_never_kept(scene: Scene) -> None:
    path = str(scene.profile("shop", "[network]\nallow_domain = []\n"))
    for _ in range(2):
        with pytest.raises(UsageError, match="unknown key 'allow_domain'"):
            read(path)


def test_without_a_state_folder_it_works_all_the_same(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/nowhere")
    assert read(str(scene.profile("shop", TEXT))) == ["a.test"]


def test_profiles_that_are_gone_are_forgotten(scene: Scene) -> None:
    first, second = scene.profile("one", TEXT), scene.profile("two", TEXT)
    read(str(first))
    first.unlink()
    read(str(second))
    assert list(marshal.loads((scene.state / "profiles").read_bytes())[1]) == [str(second)]


def test_a_pipe_or_a_missing_file_is_an_error_and_nobody_waits(scene: Scene) -> None:
    os.mkfifo(scene.own / "shop.toml")
    for path in (scene.own / "shop.toml", scene.own / "missing.toml"):
        with pytest.raises(UsageError, match=r"not a file; remove it|cannot read the configuration"):
            read(str(path))
