"""The process of a session: what it inherits is not the command's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from netsandbox import Policy, Sandbox
from netsandbox.errors import UsageError


@pytest.mark.usefixtures("user_namespaces")
def test_the_command_has_neither_request_nor_lifeline() -> None:
    """INV-8: with them it could forge the report, or learn the policy."""
    os.set_inheritable(spare := os.open("/dev/null", os.O_RDONLY), True)
    try:
        script = "import os; print([fd for fd in range(3, 1024) if os.path.exists(f'/proc/self/fd/{fd}')])"
        done = Sandbox(Policy()).run(["python3", "-c", script], capture_output=True, text=True)
    finally:
        os.close(spare)
    assert done.stdout == "[]\n"


class Own(Policy):
    """Known to this program only."""


def test_a_policy_that_only_the_program_knows_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Own, "__module__", "a_module_of_the_program")
    monkeypatch.setitem(sys.modules, "a_module_of_the_program", SimpleNamespace(Own=Own))
    with pytest.raises(UsageError, match=r"cannot be passed on .*; use those of netsandbox"):
        Sandbox(Own()).run(["touch", str(tmp_path / "ran")])
    assert not (tmp_path / "ran").exists()
