"""Profiles in one line, for tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.seatbelt_model.profile import Profile, load

Closed = Callable[..., Profile]


@pytest.fixture(scope="session")
def closed() -> Closed:
    """A profile that begins with (version 1) and (deny default) on one line; the given rules begin on the second."""

    def make(*rules: str, **parameters: str) -> Profile:
        profile = load("\n".join(["(version 1) (deny default)", *rules]), parameters)
        profile.checked()
        return profile

    return make
