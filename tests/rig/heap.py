"""Keeps the search for garbage short: what the collected tests are made of stays, so nobody looks through it again.

Many tests count descriptors and collect garbage first; among thousands of tests that takes a quarter of a second.
"""

from __future__ import annotations

import gc

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    gc.collect()
    gc.freeze()
