"""The repositories that an index names are those that git finds in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.git_index import GITLINK, linked_paths

PATHS = ["a", "a-long/path/to/one", "a-long/path/to/other", "b" * 300, "ä", "zz"]


def git(folder: Path, *words: str, stdin: str = "") -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", *words], cwd=folder, env=environment, input=stdin, text=True, check=True)


def indexed(folder: Path, version: int, hashes: str, links: list[str]) -> None:
    git(folder, "init", "-q", f"--object-format={hashes}")
    name = "1" * (40 if hashes == "sha1" else 64)
    lines = [f"{160000 if path in links else 100644} {name}\t{path}\n" for path in PATHS]
    git(folder, "update-index", "--index-version", str(version), "--index-info", stdin="".join(lines))
    git(folder, "update-index", "--index-version", str(version), "--force-write-index")


@pytest.mark.parametrize("hashes", ["sha1", "sha256"])
@pytest.mark.parametrize("version", [2, 4])
def test_repositories_are_found_in_each_format(tmp_path: Path, version: int, hashes: str) -> None:
    links = ["a-long/path/to/other", "zz", "b" * 300]
    indexed(tmp_path, version, hashes, links)
    data = (tmp_path / ".git/index").read_bytes()
    assert data[7] == version
    assert set(links) <= set(map(os.fsdecode, linked_paths(data)))
    assert "a" not in map(os.fsdecode, linked_paths(data))


def test_entries_with_more_flags_are_read(tmp_path: Path) -> None:
    indexed(tmp_path, 2, "sha1", ["zz"])
    git(tmp_path, "update-index", "--skip-worktree", "a", "b" * 300)
    data = (tmp_path / ".git/index").read_bytes()
    assert data[7] == 3
    assert linked_paths(data) == [b"zz"]


def test_a_split_index_names_what_it_replaces(tmp_path: Path) -> None:
    indexed(tmp_path, 2, "sha1", [])
    git(tmp_path, "config", "splitIndex.maxPercentChange", "100")
    git(tmp_path, "update-index", "--split-index")
    git(tmp_path, "update-index", "--index-info", stdin=f"160000 {'2' * 40}\tzz\n")
    files = [path.read_bytes() for path in (tmp_path / ".git").glob("*index*")]
    assert len(files) == 2
    assert b"zz" in linked_paths(*files)


def test_an_index_without_repositories_names_none(tmp_path: Path) -> None:
    indexed(tmp_path, 2, "sha1", [])
    assert linked_paths((tmp_path / ".git/index").read_bytes()) == []


@given(st.binary(max_size=400), st.integers(0, 5), st.integers(0, 3))
def test_any_bytes_are_read_or_refused(rest: bytes, version: int, count: int) -> None:
    data = b"DIRC" + version.to_bytes(4, "big") + count.to_bytes(4, "big") + bytes(24) + GITLINK + rest
    try:
        assert all(b"\0" not in path for path in linked_paths(data))
    except ValueError:
        pass
