"""The Python API as documented: a Sandbox runs commands under one Policy and says what was refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import netsandbox as package
from netsandbox import LocalhostSettings, Policy, RunSettings, Sandbox, file_rules
from netsandbox.errors import CommandError, NetsandboxError, UsageError
from netsandbox.policy.file_rules import FileRules
from netsandbox.policy.variables import Layer


@pytest.fixture(autouse=True)
def private_state(workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")  # sessions with other state homes would disturb one another in a repository
    return tmp_path


@pytest.fixture
def pipe() -> Iterator[Any]:
    """pipe.write is a descriptor for a command's output; pipe.read() is what it wrote."""
    reader, writer = os.pipe()

    class Pipe:
        write = writer

        def read(self) -> bytes:
            os.close(writer)
            with open(reader, "rb") as file:
                return file.read()

    yield Pipe()
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            pass


def test_the_package_offers_what_it_documents() -> None:
    classes = {"LocalhostSettings", "Policy", "Result", "RunSettings", "Sandbox"}
    assert set(package.__all__) == {*classes, "__version__", "file_rules"}
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
    def test_rules_for_files_hold(self, pipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = tmp_path / "home"
        for name in ("work", "data/a", "data/.b", "other"):
            (home / name).mkdir(parents=True)
            (home / name / "x").write_text(f"{name};")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.chdir(home / "work")
        rules = file_rules(allow_read=["~/data/*"], deny_read=["x"])
        script = "cat ~/data/a/x ~/data/.b/x ~/other/x x; echo y > ~/data/a/y; true"
        Sandbox(Policy(), RunSettings(files=rules)).run(["sh", "-c", script], stdout=pipe.write)
        assert pipe.read() == b"data/a;"
        assert not (home / "data/a/y").exists()

    def test_a_result_tells_status_session_log_and_denials(self, pipe: Any) -> None:
        with Sandbox(Policy(allow_domains=["example.com"])) as box:
            result = box.run(["sh", "-c", "getent hosts denied.test; echo out; exit 3"], stdout=pipe.write)
        assert result.returncode == 3
        assert pipe.read() == b"out\n"
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

    def test_the_environment_is_ours_unless_given(self, pipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OUTER", "seen")
        box = Sandbox(Policy())
        box.run(["sh", "-c", 'printf "%s;" "$OUTER"'], stdout=pipe.write)
        box.run(
            ["sh", "-c", 'printf "%s" "$OUTER$GIVEN"'],
            env={"PATH": os.environ["PATH"], "GIVEN": "g"},
            stdout=pipe.write,
        )
        assert pipe.read() == b"seen;g"

    def test_secrets_of_ours_are_withheld_unless_named_or_given(
        self, pipe: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("A_TOKEN", "hush")
        monkeypatch.setenv("B_TOKEN", "named")
        settings = RunSettings(variables=(Layer(passed=("B_TOKEN",)),), set_env=(("C_TOKEN", "set"),))
        command = ["sh", "-c", 'printf "%s;" "$A_TOKEN,$B_TOKEN,$C_TOKEN"']
        Sandbox(Policy(), settings).run(command, stdout=pipe.write)
        Sandbox(Policy()).run(command, env={"PATH": os.environ["PATH"], "A_TOKEN": "given"}, stdout=pipe.write)
        assert pipe.read() == b",named,set;given,,;"

    def test_settings_are_obeyed(self, tmp_path: Path, pipe: Any) -> None:
        log = tmp_path / "here.jsonl"
        settings = RunSettings(audit_log=str(log), proxy_env=False, name="test")
        result = Sandbox(Policy(), settings).run(["sh", "-c", 'printf "%s" "$http_proxy"'], stdout=pipe.write)
        assert pipe.read() == b""
        assert result.audit_log == str(log)
        assert '"name":"test"' in log.read_text()

    def test_a_command_that_cannot_be_executed_raises_with_its_status(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError) as caught:
            Sandbox(Policy()).run(["no-such-command-here"])
        assert caught.value.status == 127
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
