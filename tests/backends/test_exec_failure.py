"""A command that cannot be executed ends with the exit status that shells give it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from netsandbox.backends.exec_failure import exec_failure
from netsandbox.errors import CommandError


@pytest.mark.parametrize(("number", "status"), [(2, 127), (20, 127), (13, 126), (8, 126)])
def test_exec_errors_have_the_shells_statuses(number: int, status: int) -> None:
    error = exec_failure("./cmd", number, "")
    assert isinstance(error, CommandError)
    assert error.status == status
    assert "cmd" in str(error)


def test_a_program_with_capabilities_of_its_own_has_its_advice() -> None:
    """ping of many systems: execve(2) fails with EPERM."""
    error = exec_failure("ping", errno.EPERM, "/usr/bin")
    assert error.status == 126
    assert str(error).startswith("ping: it needs an administrator's rights (file capabilities), which no session has; ")


def test_a_folder_of_the_path_that_cannot_be_entered_is_no_command(tmp_path: Path) -> None:
    """execvp(3) fails with EACCES for both; shells distinguish them."""
    assert exec_failure("cmd", errno.EACCES, f"/nowhere:{tmp_path}").status == 127
    (tmp_path / "cmd").write_text("no program")
    assert exec_failure("cmd", errno.EACCES, f"/nowhere:{tmp_path}").status == 126


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("A=1", "to set a variable, write `env` before it"),
        ("npm ci", "leave out the quotes, or write it after `sh -c`"),
        ("cd", "write it after `sh -c`"),
        ("nope", "check the spelling and $PATH"),
        ("./nope", "./nope: command not found; check the path"),
    ],
)
def test_what_only_a_shell_understands_has_its_advice(command: str, advice: str) -> None:
    assert str(exec_failure(command, errno.ENOENT, "")).endswith(advice)


def test_a_folder_is_no_program(tmp_path: Path) -> None:
    assert "this is a folder" in str(exec_failure(str(tmp_path), errno.EACCES, ""))


def test_a_program_that_only_the_host_sees_is_shown_by_its_folder(tmp_path: Path) -> None:
    program = tmp_path / "my env" / "bin" / "tool"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for command, path in ((str(program), ""), ("tool", f"/nowhere:{program.parent}")):
        assert str(exec_failure(command, errno.ENOENT, path)).endswith(f"--allow-read '{program.parent}'")
    (tmp_path / "my env" / "pyvenv.cfg").touch()
    assert str(exec_failure("tool", errno.ENOENT, str(program.parent))).endswith(f"--allow-read '{tmp_path}/my env'")
