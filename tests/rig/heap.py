"""Keeps the search for garbage short: what stays anyway, such as all collected tests and what earlier ones left in
caches, is set aside before each file, so nobody looks through it again.

Many tests count descriptors and collect garbage first; among thousands of tests that takes a quarter of a second.
"""

from __future__ import annotations

import gc

import pytest


class Heap:
    """Knows the file of the last test."""

    def __init__(self) -> None:
        self._file = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        file = nodeid.partition("::")[0]
        if file != self._file:
            self._file = file
            gc.collect()
            gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Heap())
