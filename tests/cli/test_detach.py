"""`run --detach` in two processes; tests/integration/test_detach.py has real sessions."""

from __future__ import annotations

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError


def test_a_shell_is_not_run_in_the_background() -> None:
    with pytest.raises(UsageError, match="--detach needs a command"):
        dispatch(["run", "--no-config", "--detach"])
