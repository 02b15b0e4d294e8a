"""What a killed supervisor left of its map is removed by the next one; what a living one uses is not (attack 206)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from netsandbox.backends.namespaces import map_paths
from netsandbox.backends.namespaces.map_paths import new_map_path


def test_a_path_is_new_each_time_and_nobody_elses(tmp_path: Path) -> None:
    first, second = new_map_path(str(tmp_path)), new_map_path(str(tmp_path))
    assert first != second
    assert not os.path.exists(first)
    assert os.stat(os.path.dirname(first)).st_mode & 0o777 == 0o700


def test_the_maps_of_the_living_stay_and_those_of_the_dead_go(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        folder = Path(new_map_path(str(tmp_path))).parent
        mine = Path(new_map_path(str(tmp_path)))
        theirs = folder / f"{process.pid}-{map_paths._started(process.pid)}-00"
        reused = folder / f"{process.pid}-1-00"  # the same number, another process
        for path in (mine, theirs, reused):
            path.touch()
        new_map_path(str(tmp_path))
        assert {path.name for path in folder.iterdir()} == {mine.name, theirs.name}
    finally:
        process.kill()
        process.wait()
    new_map_path(str(tmp_path))
    assert [path.name for path in folder.iterdir()] == [mine.name]


def test_names_that_we_never_gave_go_too(tmp_path: Path) -> None:
    folder = Path(new_map_path(str(tmp_path))).parent
    for name in ("x", "1", "--", "999999999-1-0", "²-1-0"):
        (folder / name).touch()
    new_map_path(str(tmp_path))
    assert list(folder.iterdir()) == []


def test_what_cannot_be_removed_is_left(tmp_path: Path) -> None:
    folder = Path(new_map_path(str(tmp_path))).parent
    (folder / "folder").mkdir()
    new_map_path(str(tmp_path))
    assert (folder / "folder").is_dir()
