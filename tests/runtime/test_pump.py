"""Pipes are lent, come back empty, and are never more than a few."""

from __future__ import annotations

import os

import pytest

from netsandbox.runtime.pump import MAX_IDLE_PIPES, PipePool


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_returned_pipe_is_lent_again_and_nothing_blocks() -> None:
    pool = PipePool()
    pipe = pool.take()
    assert pipe is not None
    with pytest.raises(BlockingIOError):
        os.read(pipe[0], 1)
    pool.give(pipe)
    assert pool.take() == pipe
    pool.drop(pipe)


def test_the_pool_keeps_a_few_and_closes_the_rest() -> None:
    pool = PipePool()
    lent = [pool.take() for _ in range(MAX_IDLE_PIPES + 3)]
    for pipe in lent:
        assert pipe is not None
        pool.give(pipe)
    ends = [end for pipe in lent if pipe is not None for end in pipe]
    assert [is_open(end) for end in ends] == [True] * 2 * MAX_IDLE_PIPES + [False] * 6
    pool.close()
    assert not any(is_open(end) for end in ends)


def test_no_descriptor_left_is_none_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(flags: int) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe2", exhausted)
    assert PipePool().take() is None


def test_a_pipe_that_cannot_grow_is_lent_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(fcntl, "fcntl", refused)
    pool = PipePool()
    pipe = pool.take()
    assert pipe is not None
    pool.drop(pipe)
