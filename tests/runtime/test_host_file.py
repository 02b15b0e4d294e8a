"""A file of the host is read without waiting and in bounds, whatever is in its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.runtime.host_file import MAX_READ, read_host_file


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert read_host_file(str(path)) == read_host_file(bytes(path)) == b"0123456789"
    assert read_host_file(str(path), 4) == b"0123"


def test_what_never_ends_is_cut() -> None:
    assert len(read_host_file("/dev/zero")) == MAX_READ


@pytest.mark.parametrize("has_writer", [False, True])
def test_a_pipe_is_not_waited_for(tmp_path: Path, has_writer: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR) if has_writer else -1
    try:
        assert read_host_file(str(tmp_path / "pipe")) == b""
    finally:
        if has_writer:
            os.close(writer)


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    for path in (str(tmp_path / "nothing"), str(tmp_path)):
        with pytest.raises(OSError, match=r"No such|Is a directory"):
            read_host_file(path)
