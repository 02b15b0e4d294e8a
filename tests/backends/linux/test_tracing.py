"""The kernel's setting for looking into processes, as a file of the test's own has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.backends.linux import tracing
from netsandbox.errors import HostError


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "ptrace_scope"
    monkeypatch.setattr(tracing, "PTRACE_SCOPE", str(file))
    return file


@pytest.mark.parametrize("value", ["0", "1", "2"])
def test_a_session_starts_where_some_process_may(setting: Path, value: str) -> None:
    setting.write_text(f"{value}\n")
    tracing.check_tracing()
    assert tracing.ptrace_scope() == value


def test_a_kernel_without_the_setting_is_fine(setting: Path) -> None:
    assert not setting.exists()
    tracing.check_tracing()


def test_none_starts_where_no_process_may(setting: Path) -> None:
    setting.write_text("3\n")
    with pytest.raises(HostError, match="ptrace_scope=3 lets no process look into another"):
        tracing.check_tracing()
