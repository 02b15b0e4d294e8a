"""The sessions of a doctor have their own home: one in the mode `open` would mark that of this account as written."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(private_home: Path) -> None:
    """For every test here."""
