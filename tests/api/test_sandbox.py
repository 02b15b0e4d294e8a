"""The Python API as documented: a Sandbox runs commands under one Policy and says what was refused."""

from __future__ import annotations

import doctest
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import netsandbox as package
from netsandbox import LocalhostSettings, Policy, RunSettings, Sandbox, file_rules
from netsandbox.api import sandbox
from netsandbox.errors import CommandError, NetsandboxError, UsageError
from netsandbox.policy.file_rules import FileRules
from netsandbox.policy.variables import Layer
from tests.rig.workshop import ROOT


def test_the_package_offers_what_it_documents() -> None:
    assert {"Policy", "Popen", "Result", "RunSettings", "Sandbox", "__version__", "file_rules"} <= set(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name)
    with pytest.raises(AttributeError):
        package.nothing  # noqa: B018


def test_rules_for_files_are_read_as_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    rules = file_rules("readable", allow_read=["~/data/*"], allow_write=["out/"], deny_read=["/a"], share_tmp=True)
    assert (rules.mode, rules.share_tmp) == ("readable", True)
    assert (rules.allow_read[0].path, rules.allow_read[0].wild) == ("/home/me/data/*", len("/home/me/data"))
    assert (rules.allow_write[0].path, rules.allow_write[0].folder) == (f"{tmp_path}/out", True)
    assert (rules.deny_read[0].path, rules.deny_read[0].origin) == ("/a", "deny_read")
    assert file_rules() == FileRules()


def test_mistakes_in_rules_for_files_are_errors() -> None:
    with pytest.raises(UsageError, match="write one of project, readable, open"):
        file_rules("closed")
    with pytest.raises(UsageError, match="allow_read: '~you' names another user's home"):
        file_rules(allow_read=["~you"])
    with pytest.raises(TypeError, match="deny_read is a list of paths"):
        file_rules(deny_read="/a")


@pytest.mark.usefixtures("user_namespaces")
class TestRun:
    def test_rules_for_files_hold(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = tmp_path / "home"
        for name in ("work", "data/a", "data/.b", "other"):
            (home / name).mkdir(parents=True)
            (home / name / "x").write_text(f"{name};")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.chdir(home / "work")
        rules = file_rules(allow_read=["~/data/*"], deny_read=["x"])
        script = "cat ~/data/a/x ~/data/.b/x ~/other/x x; echo y > ~/data/a/y; true"
        done = Sandbox(Policy(), RunSettings(files=rules)).run(["sh", "-c", script], capture_output=True)
        assert done.stdout == b"data/a;"
        assert not (home / "data/a/y").exists()

    def test_a_result_tells_status_session_log_and_denials(self) -> None:
        command = ["sh", "-c", "getent hosts denied.test; echo out; exit 3"]
        with Sandbox(Policy(allow_domains=["example.com"])) as box:
            result = box.run(command, stdout=subprocess.PIPE)
        assert isinstance(result, subprocess.CompletedProcess)
        assert (result.args, result.returncode, result.stdout, result.stderr) == (command, 3, b"out\n", None)
        assert result.session in result.audit_log
        assert Path(result.audit_log).exists()
        denied = [denial for denial in result.denied if denial.host == "denied.test"]
        assert denied
        assert denied[0].flag == "--allow-domain denied.test"
        assert denied[0].reason == "not-allowed"

    def test_a_signal_is_a_negative_number_as_in_subprocess(self) -> None:
        assert Sandbox(Policy()).run(["sh", "-c", "kill -TERM $$"]).returncode == -15

    def test_each_run_is_a_session_of_its_own(self) -> None:
        with Sandbox(Policy()) as box:
            first, second = box.run(["true"]), box.run(["true"])
        assert first.session != second.session
        assert first.audit_log != second.audit_log

    def test_the_environment_is_ours_unless_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OUTER", "seen")
        box, command = Sandbox(Policy()), ["sh", "-c", 'printf "%s" "$OUTER$GIVEN"']
        given = {"PATH": os.environ["PATH"], "GIVEN": "g"}
        assert box.run(command, capture_output=True, text=True).stdout == "seen"
        assert box.run(command, capture_output=True, text=True, env=given).stdout == "g"

    def test_secrets_of_ours_are_withheld_unless_named_or_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("A_TOKEN", "hush")
        monkeypatch.setenv("B_TOKEN", "named")
        settings = RunSettings(variables=(Layer(passed=("B_TOKEN",)),), set_env=(("C_TOKEN", "set"),))
        command = ["sh", "-c", 'printf "%s" "$A_TOKEN,$B_TOKEN,$C_TOKEN"']
        given = {"PATH": os.environ["PATH"], "A_TOKEN": "given"}
        assert Sandbox(Policy(), settings).run(command, capture_output=True, text=True).stdout == ",named,set"
        assert Sandbox(Policy()).run(command, env=given, capture_output=True, text=True).stdout == "given,,"

    def test_settings_are_obeyed(self, tmp_path: Path) -> None:
        """A relative path of the log begins at our folder, not at the command's."""
        log = tmp_path / "app" / "here.jsonl"
        settings = RunSettings(audit_log="here.jsonl", proxy_env=False, name="test")
        command = ["sh", "-c", 'printf "%s" "$http_proxy"']
        result = Sandbox(Policy(), settings).run(command, capture_output=True, cwd=tmp_path)
        assert result.stdout == b""
        assert result.audit_log == str(log)
        assert '"name":"test"' in log.read_text()

    def test_a_command_that_cannot_be_executed_raises_with_its_status(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError) as caught:
            Sandbox(Policy()).run(["no-such-command-here"])
        assert caught.value.status == 127
        assert isinstance(caught.value, FileNotFoundError)
        notes = tmp_path / "notes"
        notes.write_text("no program")
        with pytest.raises(CommandError) as caught:
            Sandbox(Policy()).run([str(notes)])
        assert caught.value.status == 126

    def test_no_descriptor_is_left_open(self) -> None:
        box = Sandbox(Policy(allow_domains=["example.com"]))
        box.run(["getent", "hosts", "denied.test"])
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            box.run(["getent", "hosts", "denied.test"])
        with pytest.raises(NetsandboxError):
            box.run(["no-such-command-here"])
        assert len(os.listdir("/proc/self/fd")) == before

    def test_it_can_be_run_outside_the_main_thread(self) -> None:
        results: list[int] = []
        thread = threading.Thread(target=lambda: results.append(Sandbox(Policy()).run(["true"]).returncode))
        thread.start()
        thread.join(20)
        assert results == [0]


def test_a_closed_sandbox_runs_nothing() -> None:
    with Sandbox(Policy()) as box:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        box.run(["true"])


@pytest.mark.parametrize("command", ["true", b"true", [], ()])
def test_a_command_is_a_list(command: Any) -> None:
    with pytest.raises(TypeError, match="list"):
        Sandbox(Policy()).run(command)


@pytest.mark.parametrize("policy", [{}, None, ["example.com"]])
def test_a_policy_is_a_policy(policy: Any) -> None:
    with pytest.raises(TypeError, match=r"policy is a netsandbox\.Policy, not (dict|NoneType|list); write "):
        Sandbox(policy)


def test_a_bad_rule_raises_when_the_policy_is_made() -> None:
    with pytest.raises(UsageError):
        Policy(allow_domains=["*"])


def test_a_log_that_cannot_be_written_raises_and_nothing_runs(tmp_path: Path) -> None:
    """INV-1."""
    os.mkfifo(tmp_path / "fifo")
    marker = tmp_path / "started"
    with pytest.raises(NetsandboxError):
        Sandbox(Policy(), RunSettings(audit_log=str(tmp_path / "fifo"))).run(["touch", str(marker)])
    assert not marker.exists()


class TestAsInSubprocess:
    """The same call of both, and the same effect."""

    @pytest.fixture
    def box(self, user_namespaces: None) -> Sandbox:
        return Sandbox(Policy())

    @pytest.mark.parametrize(
        ("command", "options"),
        [
            (["cat"], {"input": b"a\r\nb", "capture_output": True}),
            (["cat"], {"input": "a\r\nb", "capture_output": True, "text": True}),
            (["cat"], {"input": "\xe9", "stdout": subprocess.PIPE, "encoding": "latin-1"}),
            (["printf", "\\377"], {"capture_output": True, "encoding": "utf-8", "errors": "replace"}),
            (["sh", "-c", "echo 1; echo 2 >&2; exit 5"], {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}),
            (["cat"], {"stdin": subprocess.DEVNULL, "capture_output": True}),
            (["sh", "-c", "kill -USR1 $$"], {}),
            (["pwd"], {"cwd": "/usr/share", "capture_output": True, "text": True}),
            ([Path("/bin/echo"), "x"], {"capture_output": True}),
        ],
        ids=str,
    )
    def test_results_are_the_same(self, box: Sandbox, command: Any, options: dict[str, Any]) -> None:
        ours, theirs = box.run(command, **options), subprocess.run(command, **options)  # noqa: PLW1510
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)

    def test_a_failure_is_raised_if_it_is_checked(self, box: Sandbox) -> None:
        with pytest.raises(subprocess.CalledProcessError) as caught:
            box.run(["sh", "-c", "echo out; getent hosts denied.test"], capture_output=True, check=True)
        failed = pickle.loads(pickle.dumps(caught.value))  # as xdist and multiprocessing pass it on
        assert (failed.returncode, failed.output, failed.cmd[0]) == (2, b"out\n", "sh")
        assert "denied denied.test (offline)" in str(failed)

    def test_a_time_limit_kills_the_whole_session_and_keeps_the_output(self, box: Sandbox) -> None:
        script = "echo so far; trap '' TERM INT; setsid sleep 600 & wait; sleep 600"
        with pytest.raises(subprocess.TimeoutExpired) as caught:
            box.run(["sh", "-c", script], capture_output=True, timeout=1)
        assert caught.value.output == b"so far\n"
        assert isinstance(caught.value, package.TimeoutExpired)
        assert caught.value.outcome is not None
        assert caught.value.outcome.returncode == -9
        assert '"audit.seal"' in Path(caught.value.outcome.audit_log).read_text()  # it ended in order

    def test_an_expired_time_limit_is_the_one_that_was_given(self, box: Sandbox) -> None:
        with pytest.raises(subprocess.TimeoutExpired, match=r"timed out after 0\.5 seconds") as caught:
            box.run(["sleep", "60"], timeout=0.5)
        assert caught.value.timeout == 0.5

    def test_mistakes_are_the_same(self, box: Sandbox, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="may not both be used"):
            box.run(["cat"], input=b"", stdin=subprocess.PIPE)
        with pytest.raises(ValueError, match="may not be used with capture_output"):
            box.run(["cat"], capture_output=True, stdout=subprocess.PIPE)
        with pytest.raises(FileNotFoundError):
            box.run(["true"], cwd=tmp_path / "missing")
        with pytest.raises(TypeError, match="'shell' is not an option"):
            box.run(["true"], shell=True)  # type: ignore[call-overload]

    def test_much_output_on_both_streams_while_input_is_written(self, box: Sandbox) -> None:
        data = os.urandom(1 << 20) * 8
        done = box.run(["sh", "-c", "tee /dev/stderr"], input=data, capture_output=True)
        assert (done.stdout, done.stderr) == (data, data)


def test_signals_of_the_program_are_not_touched(user_namespaces: None) -> None:
    """The handlers of the program stay, and children count whose end it ignores. Threads and forks work."""
    script = """
import os, signal, threading
from netsandbox import Policy, Sandbox
handler = lambda number, frame: seen.append(number)
seen = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, handler)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
box, results = Sandbox(Policy()), []
def work():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    process = box.popen(["sh", "-c", "trap 'exit 7' TERM; echo; sleep 60 & wait"], stdout=-1)
    process.stdout.read(1)
    process.terminate()
    results.append(process.wait())
    process.stdout.close()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= {signal.SIGTERM}
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
os.kill(os.getpid(), signal.SIGUSR1)
assert [signal.getsignal(number) for number in (2, 15)] == [handler] * 2
child = os.fork()
if child == 0:
    os._exit(box.run(["sh", "-c", "exit 9"]).returncode)
print(results, box.run(["sh", "-c", "exit 3"]).returncode, seen)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == f"[7, 7, 7] 3 [{signal.SIGUSR1.value}]\n", done.stderr


def test_the_examples_of_the_documentation_are_true(user_namespaces: None) -> None:
    assert doctest.testmod(sandbox, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).failed == 0


USER = """
from netsandbox import AsyncProcess, Policy, Popen, Result, Sandbox
async def use(box: Sandbox) -> None:
    text: Result[str] = box.run(["a"], capture_output=True, text=True, check=True, timeout=3, cwd="/", env={})
    data: Result[bytes] = box.run(["a"], input=b"")
    process: Popen[str] = box.popen(["a"], encoding="utf-8", stdout=-1)
    later: Result[str] = await box.arun(["a"], text=True)
    async with await box.apopen(["a"], stdin=-1) as running:
        other: AsyncProcess = running
    print(text.denied[0].host, data.session, process.outcome, later.audit_log, other.returncode)
box = Sandbox(Policy())
box.run(["a"], input="text")  # E
box.run(["a"], shell=True)  # E
"""


def test_types_help_a_user(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent", "sample.py"]
    folders = [str(ROOT), *(str(ROOT / part) for part in ("proxy", "dns", "portmap", "interpose"))]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(folders)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    wrong = {int(line.split(":")[1]) for line in done.stdout.splitlines() if " error: " in line}
    assert wrong == {at for at, line in enumerate(USER.splitlines(), 1) if line.endswith("# E")}, done.stdout


def test_any_descriptor_can_be_a_standard_one(tmp_path: Path) -> None:
    """Even 3, where the helper keeps its channel, and even 0 and 1 the other way round."""
    text = tmp_path / "text"
    text.write_text("hello")
    script = f"""
import os
from netsandbox import LocalhostSettings, Policy, RunSettings, Sandbox, file_rules
os.closerange(3, 10)
source = os.open({str(text)!r}, os.O_RDONLY)
assert source == 3
out = os.open({str(tmp_path / "out")!r}, os.O_WRONLY | os.O_CREAT)
with Sandbox(Policy()) as box:
    print(box.run(["sh", "-c", "cat; readlink /proc/self/fd/0 >&2"], stdin=source, stdout=out, stderr=out).returncode)
"""
    root = Path(package.__file__).parent.parent
    paths = [str(root), *(str(root / part) for part in ("proxy", "dns", "portmap", "interpose"))]
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.stdout == "0\n", done.stderr
    assert (tmp_path / "out").read_text() == f"hello{text}\n"


@pytest.mark.usefixtures("user_namespaces")
def test_runs_leave_no_descriptor_open(short_tmp: Path) -> None:
    """A program that makes many sessions would run out of them; allowed sockets are pinned by descriptors."""
    place = short_tmp / "server"
    with socket.socket(socket.AF_UNIX) as server, Sandbox(Policy(allow_unix_sockets=[str(place)])) as box:
        server.bind(str(place))
        server.listen()
        box.run(["true"])
        before = set(os.listdir("/proc/self/fd"))
        box.run(["true"])
        assert set(os.listdir("/proc/self/fd")) == before


def test_what_cannot_go_together_is_said_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="isolate needs no rewriting"):
        Sandbox(Policy(), RunSettings(localhost=LocalhostSettings(engine="preload")))


def test_the_localhost_of_a_run_is_chosen_by_its_settings(tmp_path: Path) -> None:
    settings = RunSettings(localhost=LocalhostSettings(strategy="fail", count=3))
    with Sandbox(Policy(), settings) as box, open(tmp_path / "out", "w+b") as out:
        assert box.run(["sh", "-c", "echo $LISTENING_PORT_COUNT"], stdout=out.fileno()).returncode == 0
    assert (tmp_path / "out").read_text() == "3\n"
