from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.config.registries.files import SIZE_LIMIT, Unreadable, read


def test_an_ordinary_file_is_read_also_by_a_link(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * SIZE_LIMIT)
    (tmp_path / "link").symlink_to(file)
    assert read(str(tmp_path / "link")) == b"x" * SIZE_LIMIT


def test_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    assert read(str(tmp_path / "none")) is read(str(tmp_path / "file" / "x")) is None
    assert read(str(tmp_path / "dangling")) is read("/a\0b") is None


def hostile(folder: Path, kind: str) -> Path:
    place = folder / "file"
    if kind == "giant":
        place.write_bytes(b"registry=https://a.example\n" * 400_000)
    elif kind == "endless":
        place.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(place)
    return place


@pytest.mark.parametrize("kind", ["giant", "endless", "pipe", "folder", "loop"])
def test_what_is_no_small_ordinary_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    with pytest.raises(Unreadable):
        read(str(hostile(tmp_path, kind)))


def test_a_file_that_is_swapped_for_a_pipe_after_the_first_look_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.touch()
    os.mkfifo(pipe)
    honest = os.stat

    def late(path: str) -> os.stat_result:
        seen = honest(path)
        pipe.rename(file)
        return seen

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", late)
        with pytest.raises(Unreadable, match="ordinary"):
            read(str(file))
