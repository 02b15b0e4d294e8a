"""Names under which strangers register."""

from __future__ import annotations

import pytest

from netsandbox.policy.names import canonical
from netsandbox.policy.suffixes import SHARED, is_shared


@pytest.mark.attack(6)
@pytest.mark.parametrize("name", ["com", "test", "co.uk", "com.au", "co.jp", "github.io", "s3.amazonaws.com"])
def test_shared_suffixes_are_shared(name):
    assert is_shared(name)


@pytest.mark.parametrize("name", ["example.com", "example.co.uk", "user.github.io"])
def test_what_someone_owns_is_not(name):
    assert not is_shared(name)


def test_the_list_is_canonical_so_that_it_can_match():
    assert all(canonical(name).text == name for name in SHARED)
