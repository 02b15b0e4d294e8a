"""Pipes are lent, come back empty, and are never more than a few."""

from __future__ import annotations

import os

import pytest
from netsandbox_proxy.pipes import IDLE_PIPES, PipePool


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
    before = len(os.listdir("/proc/self/fd"))
    pool = PipePool()
    lent = [pool.take() for _ in range(IDLE_PIPES + 3)]
    for pipe in lent:
        assert pipe is not None
        pool.give(pipe)
    assert len(os.listdir("/proc/self/fd")) == before + 2 * IDLE_PIPES
    pool.close()
    assert len(os.listdir("/proc/self/fd")) == before


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
