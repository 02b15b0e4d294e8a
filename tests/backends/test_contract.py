"""A command that cannot be executed ends with the exit status that shells give it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from netsandbox.backends.contract import exec_failure, path_of
from netsandbox.errors import CommandError


@pytest.mark.parametrize(("number", "status"), [(2, 127), (20, 127), (13, 126), (8, 126)])
def test_exec_errors_have_the_shells_statuses(number: int, status: int) -> None:
    error = exec_failure("./cmd", number, "")
    assert isinstance(error, CommandError)
    assert error.status == status
    assert "cmd" in str(error)


def test_a_folder_of_the_path_that_cannot_be_entered_is_no_command(tmp_path: Path) -> None:
    """execvp(3) fails with EACCES for both; shells distinguish them."""
    assert exec_failure("cmd", errno.EACCES, f"/nowhere:{tmp_path}").status == 127
    (tmp_path / "cmd").write_text("no program")
    assert exec_failure("cmd", errno.EACCES, f"/nowhere:{tmp_path}").status == 126


def test_the_search_path_of_an_environment_is_text() -> None:
    assert path_of({b"PATH": b"/bin:/\xff"}) == "/bin:/\udcff"
    assert path_of({}) == ""
