"""The entry point: one subcommand, one status, no traceback for what a user can mend."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from netsandbox import __version__
from netsandbox.cli.main import COMMANDS, dispatch
from netsandbox.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]


def run(
    *arguments: str, code: str = "from netsandbox.cli.main import main; main()"
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=30,
    )


def test_the_version_is_the_packages() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"netsandbox {__version__}\n", "")


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_without_a_command_the_overview_is_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(words) == 0
    shown = capsys.readouterr().out
    assert all(f"  {command} " in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert done.stdout.lower().startswith("usage: netsandbox")
    assert done.stderr == ""


@pytest.mark.parametrize("word", ["ru", "RUN", "--runn", "run\n", "\x1b[2J", "-", ""])
def test_an_unknown_command_is_one_printable_line_and_status_2(word: str) -> None:
    done = run(word)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("netsandbox: unknown command ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["rnu"], "did you mean run?"),
        (["lern", "--", "make"], "did you mean learn?"),
        (["audt"], "did you mean audit?"),
        (["sh", "-c", "true"], "to run a command write `netsandbox run -- sh -c true`"),
        (["online", "--", "ls"], "it is a profile: write `netsandbox run online -- ls`"),
        (["--", "ls"], "write `netsandbox run -- ls`"),
        (["--init"], "did you mean `netsandbox init`?"),
        (
            ["--allow-domain", "a.test", "--", "ls"],
            "it is an option of `run`: write `netsandbox run --allow-domain a.test -- ls`",
        ),
        (["qqqq"], "see `netsandbox --help`"),
    ],
)
def test_an_unknown_command_gets_the_advice_that_fits(words: list[str], advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        dispatch(words)
    assert str(caught.value) == f"unknown command {words[0]!a}; {advice}"


def test_an_error_for_the_user_is_not_a_traceback() -> None:
    with pytest.raises(UsageError):
        dispatch(["run", "--no-such-option"])
    done = run("run", "--no-such-option")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


CONNECTS = """
import socket
print("ran", flush=True)
door = socket.create_connection(("127.0.0.1", 1008), {1})
door.sendall(b"CONNECT 127.0.0.1:{0} HTTP/1.1\\r\\nHost: 127.0.0.1:{0}\\r\\n\\r\\n")
print(door.recv(12).decode())
"""


@pytest.mark.usefixtures("user_namespaces")
@pytest.mark.parametrize("limit", [6, 8, 12, 16, 20, 22, 24, 28, 1024])
@pytest.mark.attack(224)
def test_a_shortage_of_descriptors_is_one_line_that_says_what_to_do(limit: int, tmp_path: Path, canary: Any) -> None:
    """H12. Whatever the session lacks, it opens nothing, and its log says how it ended."""
    forbidden = canary.tcp()
    script = CONNECTS.format(forbidden.port, 20 if limit == 1024 else 2)  # seconds; a door may be closed to it for good
    done = subprocess.run(
        [sys.executable, "-I", "-m", "netsandbox", "run", "--", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        check=False,
        timeout=60,
    )
    assert forbidden.accepts == 0
    logs = list(tmp_path.glob("netsandbox/sessions/*/*.jsonl"))
    if limit == 1024:
        assert done.stdout == "ran\nHTTP/1.1 403\n"
        assert logs
    elif limit <= 16 or not done.stdout:
        assert done.returncode == 1
        assert done.stderr.startswith("netsandbox: ")
        # Descriptors in flight count for all programs of the user, so that others may use up the limit.
        assert "open files" in done.stderr or "descriptors in flight" in done.stderr
        assert done.stderr.count("\n") == 1
    for log in logs:
        text = log.read_text()
        assert "session.start" not in text or "session.end" in text


@pytest.mark.parametrize("words", [("ps",), ("--version",), ("audit", "show"), ("config", "schema")])
def test_output_that_cannot_be_written_is_one_line_or_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    """Status 120 is the interpreter's, and a closed standard output is no fault of ours."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_STATE_HOME": str(tmp_path)}
    command = shlex.join([sys.executable, "-c", "from netsandbox.cli.main import main; main()", *words])
    for end in (">/dev/full", ">&-", "| true"):
        shell = ["bash", "-c", f'{command} {end}; exit "${{PIPESTATUS[0]}}"']
        done = subprocess.run(shell, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        assert all(line.startswith("netsandbox: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize("error", ["OSError(errno.EIO, 'x')", "ImportError('no module named x')", "ValueError('x')"])
def test_other_faults_stay_visible(error: str) -> None:
    code = (
        f"import errno; from netsandbox.cli import main\ndef fail(_): raise {error}\nmain.dispatch = fail; main.main()"
    )
    done = run(code=code)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL])
def test_a_command_killed_by_a_signal_is_a_death_by_that_signal(number: signal.Signals) -> None:
    """INV-9: whoever waits for us sees what he would have seen of the command."""
    done = run(code=f"from netsandbox.runtime.inherited import exit_with; exit_with(-{int(number)})")
    assert done.returncode == -number


@pytest.mark.parametrize("status", [0, 1, 2, 126, 127, 255])
def test_any_other_status_is_passed_on(status: int) -> None:
    assert run(code=f"from netsandbox.runtime.inherited import exit_with; exit_with({status})").returncode == status


def test_the_package_can_be_run_as_a_module() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "netsandbox", "--version"], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.endswith(f"{__version__}\n")


def test_help_with_a_command_is_the_help_of_that_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["help", "run"]) == 0
    shown = capsys.readouterr().out
    assert dispatch(["run", "--help"]) == 0
    assert capsys.readouterr().out == shown
    assert shown.startswith("usage: netsandbox run")
    with pytest.raises(UsageError, match="unknown command 'rum'"):
        dispatch(["help", "rum"])
