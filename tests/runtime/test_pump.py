"""Pipes are lent, come back empty, and are never more than a few."""

from __future__ import annotations

import os

import pytest

from netsandbox.runtime.pump import MAX_IDLE_PIPES, MAX_LENT_PIPES, MIN_BUFFER, PipePool
from netsandbox.runtime.stream import MAX_BUFFER


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


def test_few_pipes_are_lent_whoever_we_are() -> None:
    """Root may own any number of pipes, of one megabyte each."""
    pool = PipePool()
    lent = [pool.take() for _ in range(MAX_LENT_PIPES)]
    assert None not in lent
    assert pool.take() is None
    first, second, *rest = lent
    assert first is not None
    assert second is not None
    pool.give(first)
    pool.drop(second)
    assert [pool.take() is None for _ in range(3)] == [False, False, True]
    for pipe in (first, *rest):
        assert pipe is not None
        pool.drop(pipe)


@pytest.mark.attack(234)
def test_the_more_connections_the_less_each_reads() -> None:
    """Each connection is made while the others hold what they have read: the worst order. docs/threat-model.md has the
    figures."""
    pool = PipePool()
    held = [0]
    for connections in range(1, 16_385):
        pool.share(connections)
        assert MIN_BUFFER <= pool.buffer <= MAX_BUFFER
        held.append(held[-1] + pool.buffer)
    assert held[4096] < 100 << 20
    assert held[16_384] < 160 << 20
    pool.share(0)
    assert pool.buffer == MAX_BUFFER
