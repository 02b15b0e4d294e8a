"""Every error ends the command with its documented exit status."""

from __future__ import annotations

import pytest

from netsandbox.errors import CommandError, HostError, NetsandboxError, UsageError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NetsandboxError("x"), 1),
        (HostError("x"), 1),
        (UsageError("x"), 2),
        (CommandError("x", 126), 126),
        (CommandError("x", 127), 127),
    ],
)
def test_every_error_has_its_exit_status_and_text(error: NetsandboxError, status: int) -> None:
    assert (error.status, str(error)) == (status, "x")
