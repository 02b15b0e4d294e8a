"""The helper and who starts it: the command runs confined, or not at all. The kernel boundary is Landlock here."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt import helper_process
from netsandbox.backends.seatbelt.helper_process import HelperProcess, failure, plan_bytes, read_report
from netsandbox.errors import CommandError, HostError
from tests.rig.mac_start import ENVIRONMENT, PROFILE, Start, starting
from tests.rig.mach_o_reader import lief
from tests.rig.processes import is_gone
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def start(helper: str, closed_port: int, tmp_path: Path) -> Start:
    return starting(HelperProcess, helper, tmp_path, closed_port)


def test_a_profile_that_is_not_accepted_runs_nothing(start: Start, tmp_path: Path) -> None:
    """INV-1."""
    with pytest.raises(HostError, match=r"does not accept the Seatbelt profile.*unbound variable: nonsense"):
        start("touch", str(tmp_path / "ran"), profile="; refuse")
    assert not (tmp_path / "ran").exists()


def test_an_empty_profile_runs_nothing(start: Start) -> None:
    with pytest.raises(HostError, match="it is empty"):
        start("true", profile="")


def test_a_helper_that_dies_without_a_word_is_an_error(closed_port: int) -> None:
    """A signature that the system does not like ends it so."""
    with open(os.devnull, "r+b") as nothing, pytest.raises(HostError, match="without a report"):
        HelperProcess("/bin/true", ["true"], PROFILE, {}, (nothing.fileno(),) * 3, closed_port=closed_port)


def test_a_helper_that_says_what_ours_does_not_and_stays_is_ended(closed_port: int, tmp_path: Path) -> None:
    """Whatever it is, it does not run on, and nobody waits for it."""
    false, told = tmp_path / "false", tmp_path / "pid"
    false.write_text(f"#!/bin/sh\necho $$ > {told}\nprintf nonsense >&4\nexec sleep 600 4>&-\n")
    false.chmod(0o755)
    with open(os.devnull, "r+b") as nothing, pytest.raises(HostError, match="without a report"):
        HelperProcess(str(false), ["true"], PROFILE, {}, (nothing.fileno(),) * 3, closed_port=closed_port)
    assert is_gone(int(told.read_text()))


@pytest.mark.parametrize(
    "words", [["0", "true"], ["65536", "true"], ["x", "true"], ["", "true"], ["80x", "true"], ["80"]]
)
def test_wrong_arguments_run_nothing(helper: str, words: list[str]) -> None:
    assert subprocess.run([helper, *words], stdin=subprocess.DEVNULL, timeout=10, check=False).returncode in (125, 126)


def test_a_profile_of_thousands_of_ports_fits(start: Start) -> None:
    ports = "".join(f'(allow network-bind (local ip "localhost:{port}"))\n' for port in range(20000, 24096))
    assert start("true", profile=PROFILE + ports).wait() == 0


def test_signals_are_passed_on_until_the_command_has_ended(start: Start) -> None:
    ran = start("sleep", "60")
    ran.signal(signal.SIGTERM)
    assert os.waitstatus_to_exitcode(ran.wait()) == -signal.SIGTERM
    ran.send(signal.SIGKILL)  # its number may be another's by now
    ran.close()


@pytest.mark.parametrize(("number", "foreground", "sent"), [(2, True, 0), (2, False, 1), (15, True, 1), (3, True, 0)])
def test_what_the_terminal_sent_to_both_is_not_sent_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, number: int, foreground: bool, sent: int
) -> None:
    ran = start("sleep", "60")
    got: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(helper_process, "_in_foreground", lambda: foreground)
        patch.setattr(ran, "send", got.append)
        ran.signal(number)
    ran.close()
    assert len(got) == sent


def test_a_command_whose_watcher_is_gone_is_ended_all_the_same(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = start("sleep", "60")
    monkeypatch.setattr(helper_process, "PATIENCE", 0.05)
    monkeypatch.setattr(ran, "end", lambda: None)
    ran.close()
    assert is_gone(ran.pid)


def test_the_watcher_leaves_with_the_session(start: Start, helper: str) -> None:
    ran = start("true")
    ran.wait()

    def watchers() -> list[str]:
        return [path for path in os.listdir("/proc") if path.isdigit() and _runs(path, helper)]

    wait_for(lambda: not watchers())


def _runs(pid: str, helper: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/exe") == helper
    except OSError:
        return False


def test_standard_descriptors_may_be_any_numbers(helper: str, closed_port: int, tmp_path: Path) -> None:
    """Also those that the helper uses itself."""
    text = (
        "import os, sys\n"
        "from netsandbox.backends.seatbelt.helper_process import HelperProcess\n"
        "null = os.open('/dev/null', os.O_RDWR)\n"
        f"out = os.open({str(tmp_path / 'out')!r}, os.O_RDWR | os.O_CREAT)\n"
        "os.dup2(null, 3); os.dup2(out, 5); os.dup2(null, 4)\n"
        f"words = ({helper!r}, ['echo', 'here'], {PROFILE!r}, {ENVIRONMENT!r}, (3, 5, 4))\n"
        f"ran = HelperProcess(*words, closed_port={closed_port})\n"
        "sys.exit(os.waitstatus_to_exitcode(ran.wait()))"
    )
    subprocess.run(
        [sys.executable, "-c", text],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=20,
    )
    assert (tmp_path / "out").read_text() == "here\n"


def test_a_helper_that_is_missing_or_no_program_is_an_error(closed_port: int, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for helper, words in ((tmp_path / "none", "is missing"), (plain, "cannot start")):
        with open(os.devnull, "r+b") as nothing, pytest.raises(HostError, match=words):
            HelperProcess(str(helper), ["true"], PROFILE, {}, (nothing.fileno(),) * 3, closed_port=closed_port)


def test_a_plan_is_strings_and_no_string_holds_another() -> None:
    assert plan_bytes("(version 1)", {b"A": b"b", b"C": b""}) == b"(version 1)\0A=b\0C=\0"
    for profile, environment in (("a\0b", {}), ("a", {b"A": b"b\0C=d"})):
        with pytest.raises(HostError):
            plan_bytes(profile, environment)


@pytest.mark.parametrize(("number", "words"), [(errno.E2BIG, "shorten"), (errno.EIO, "reinstall")])
def test_why_it_could_not_start_is_said(
    monkeypatch: pytest.MonkeyPatch, closed_port: int, number: int, words: str
) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_spawn", refuse)
    with open(os.devnull, "r+b") as nothing, pytest.raises(HostError, match=words):
        HelperProcess("x", ["true"], PROFILE, {}, (nothing.fileno(),) * 3, closed_port=closed_port)


@pytest.mark.parametrize("target", ["aarch64", "x86_64"])
def test_the_helper_compiles_for_a_mac(target: str, tmp_path: Path) -> None:
    """Mach-O, for macOS 11 and later, with the system's own library and no other."""
    pytest.importorskip("ziglang")
    made = tmp_path / "netsandbox-apply"
    sources = sorted(map(str, (ROOT / "netsandbox" / "backends" / "seatbelt" / "native").glob("*.c")))
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{target}-macos.11.0", "-Os", "-g0"]
    subprocess.run([*zig, "-Wall", "-Wextra", "-Werror", "-o", made, *sources], check=True, timeout=300)
    fat = lief().MachO.parse(str(made))  # kept: its parts live as long as it does
    binary = fat.at(0)
    assert [library.name for library in binary.libraries] == ["/usr/lib/libSystem.B.dylib"]
    imported = {symbol.name for symbol in binary.imported_symbols}
    assert {"_sandbox_init_with_parameters", "_proc_listpids", "_execvp"} <= imported
    assert not imported & {"_system", "_popen", "_sandbox_init"}
    assert list(binary.build_version.minos)[:2] == [11, 0]


def test_the_sources_name_no_program_of_the_system() -> None:
    """A shell, env or sandbox-exec in between would lose the variables of the library."""
    for source in (ROOT / "netsandbox" / "backends" / "seatbelt" / "native").glob("*.c"):
        code = "\n".join(line for line in source.read_text().splitlines() if not line.lstrip().startswith(("/*", "*")))
        assert "/bin/" not in code
        assert "system(" not in code


def test_a_report_has_a_step_a_number_and_a_detail() -> None:
    assert read_report(b"profile\x0022\0line 3: no") == ("profile", 22, "line 3: no")
    assert read_report(b"watch\x0012\0") == ("watch", 12, "")


@pytest.mark.parametrize("data", [b"", b"profile", b"profile\x0022", b"profile\0x\0y", b"\x001\0"])
def test_what_is_no_report_says_that_nothing_was_run(data: bytes) -> None:
    assert read_report(data) is None
    assert "nothing was run" in str(failure(data, "cmd", ""))


@given(st.binary(max_size=200))
def test_any_bytes_are_one_printable_line(data: bytes) -> None:
    text = str(failure(data, "cmd", "/bin"))
    assert "\n" not in text
    assert text.isprintable()


def test_the_system_s_words_are_quoted_and_the_user_is_told_what_to_do() -> None:
    told = failure(b"self-test\x0061\0TCP to ::1", "cmd", "")
    assert isinstance(told, HostError)
    assert "does not hold" in str(told)
    assert "TCP to ::1" in str(told)
    assert "nothing was run" in str(told)


def test_a_failed_exec_is_the_commands() -> None:
    told = failure(b"exec\x002\0", "cmd", "/bin")
    assert isinstance(told, CommandError)
    assert told.status == 127


def test_the_command_has_the_limits_and_cannot_raise_them(start: Start, tmp_path: Path) -> None:
    limits = ((resource.RLIMIT_NOFILE, 50), (resource.RLIMIT_CORE, 0))
    script = "ulimit -n; ulimit -c; ulimit -n 60 2> /dev/null || echo no; head -c 9000 /dev/zero > big && echo large"
    command = ("sh", "-c", f"cd {tmp_path}; {script}")
    start(*command, limits=(*limits, (resource.RLIMIT_FSIZE, 4096))).wait()
    assert (tmp_path / "out").read_text() == "50\n0\nno\n"
    assert (tmp_path / "big").stat().st_size == 4096
    start(*command).wait()
    assert (tmp_path / "out").read_text().endswith("large\n")


@pytest.mark.parametrize("text", ["", "x", "9,1", "9,1=", "9,=1", "9,1=-1", "9,-1=1", "9,1=1x", "9;1=1", "0", "65536"])
def test_limits_that_cannot_be_read_run_nothing(helper: str, closed_port: int, tmp_path: Path, text: str) -> None:
    written = text.replace("9", str(closed_port), 1)
    plan, report, life = os.pipe(), os.pipe(), os.pipe()
    os.write(plan[1], plan_bytes(PROFILE, ENVIRONMENT))
    os.close(plan[1])
    pid = helper_process.spawn(
        helper, [written, "touch", str(tmp_path / "ran")], (0, 1, 2, plan[0], report[1], life[0])
    )
    for fd in (plan[0], report[1], life[0]):
        os.close(fd)
    said = os.read(report[0], 4096)
    os.close(life[1])
    os.close(report[0])
    os.waitpid(pid, 0)
    assert b"arguments" in said or b"limits" in said
    assert not (tmp_path / "ran").exists()
