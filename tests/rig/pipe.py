"""A pipe in the place of standard error: what was said, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


class Pipe:
    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)

    def text(self) -> str:
        """What was said since the last time."""
        try:
            return os.read(self.reading, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def lines(self) -> list[str]:
        return self.text().splitlines()

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()
