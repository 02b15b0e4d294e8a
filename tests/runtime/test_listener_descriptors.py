"""The supervisor takes what it is allowed, and lives with what it gets."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from netsandbox.runtime.listener import MAX_DESCRIPTORS, MAX_DESCRIPTORS_OF_A_MAC, raise_descriptor_limit


@pytest.fixture
def restored_limit() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_goes_up_to_the_hard_one_and_not_beyond_reason(restored_limit: tuple[int, int]) -> None:
    hard = restored_limit[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    raise_descriptor_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(hard, MAX_DESCRIPTORS), hard)


@pytest.mark.parametrize("error", [OSError("not permitted"), ValueError("not a limit")])
def test_a_limit_that_cannot_be_raised_is_no_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(resource, "setrlimit", refuse)
        raise_descriptor_limit()


def test_a_mac_takes_a_lower_limit_where_it_refuses_the_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Mac names no limit and refuses more than OPEN_MAX."""
    taken: list[tuple[int, int]] = []

    def refuse_much(_: int, limits: tuple[int, int]) -> None:
        if limits[0] > MAX_DESCRIPTORS_OF_A_MAC:
            raise ValueError("not a limit")
        taken.append(limits)

    unlimited = 2**63 - 1
    with monkeypatch.context() as patch:
        patch.setattr(resource, "getrlimit", lambda _: (256, unlimited))
        patch.setattr(resource, "setrlimit", refuse_much)
        raise_descriptor_limit()
    assert taken == [(MAX_DESCRIPTORS_OF_A_MAC, unlimited)]
