"""What an error has to say besides what is wrong."""

from __future__ import annotations

import pytest

OPTIONS = ("--listening-base-port", "--listening-port-count", "--listening-loopback", "netsandbox ps")


def helpful(problem: pytest.ExceptionInfo[BaseException]) -> bool:
    """Every error ends with what to do next, which names an option or a command."""
    text = str(problem.value)
    return any(option in text.rpartition(";")[2] for option in OPTIONS)
