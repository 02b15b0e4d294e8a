"""`netsandbox audit` shows the right log, answers programs in JSON, and refuses what it does not know in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox import paths
from netsandbox.audit import placed_log
from netsandbox.audit.log import AuditLog
from netsandbox.cli.audit import EVENTS, OPTIONS, main, read_query
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import parse

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW = "20250130T120000000-0123456789abcdef", "20250131T120000000-fedcba9876543210"
LATER = "20250201T120000000-0000000000000000"


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two finished sessions, the newer of which was denied something by a hostile name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for session in (OLD, NEW):
        log = AuditLog.open(paths.log_path(session), session)
        log.write("session.start", command="npm")
        log.write("egress", verdict="allow", reason="rule", host="example.com", port=443)
        log.write("egress.end", host="example.com", port=443, bytes_up=100, bytes_down=2048)
        if session == NEW:
            log.write(
                "egress",
                verdict="deny",
                reason="not-allowed",
                host="evil\x1b[2J.test",
                port=443,
                hint="--allow-domain x.test",
            )
        log.write("session.end", status=0)
        log.close()
    return tmp_path


@pytest.mark.usefixtures("sessions")
class TestReading:
    def test_the_newest_session_is_the_default(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["summary"]) == 0
        assert NEW in capsys.readouterr().out

    @pytest.mark.parametrize("target", [OLD, "20250130", "0123456789abcdef"])
    def test_a_session_is_named_by_its_id_or_a_part_of_it(
        self, capsys: pytest.CaptureFixture[str], target: str
    ) -> None:
        assert main(["summary", target]) == 0
        assert OLD in capsys.readouterr().out

    def test_a_session_without_inspected_requests_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["show", "--http"]) == 0
        shown = capsys.readouterr()
        assert (shown.out, "no such request was inspected" in shown.err) == ("", True)
        assert main(["show", "--http", "--json"]) == 0
        assert capsys.readouterr().err == ""

    def test_a_path_reads_any_log(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["show", paths.log_path(OLD), "--json"]) == 0
        assert {json.loads(line)["session"] for line in capsys.readouterr().out.splitlines()} == {OLD}

    def test_a_newer_session_that_placed_its_log_is_told_of(self, capsys: pytest.CaptureFixture[str]) -> None:
        placed_log.note(OLD, "/logs/a.jsonl")
        assert main(["summary"]) == 0
        assert capsys.readouterr().err == ""
        placed_log.note(LATER, "/my logs/\x1b.jsonl")
        assert main(["summary"]) == 0
        shown = capsys.readouterr()
        assert NEW in shown.out
        assert shown.err == (
            "netsandbox: the newest session wrote its log elsewhere: `netsandbox audit summary '/my logs/\\x1b.jsonl'`"
            " reads it; this is the newest of the others\n"
        )
        assert main(["summary", NEW]) == 0
        assert capsys.readouterr().err == ""

    def test_of_a_folder_of_logs_the_newest_is_read(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        folder = tmp_path / "logs"
        folder.mkdir()
        assert main(["summary", str(folder)]) == 1
        assert "has no session's log; name one: `netsandbox audit summary PATH`" in capsys.readouterr().err
        for session in (NEW, OLD):
            (folder / f"{session}.jsonl").write_bytes(Path(paths.log_path(session)).read_bytes())
        (folder / "zzz.jsonl").write_text("mine")
        assert main(["summary", f"{folder}/"]) == 0
        assert NEW in capsys.readouterr().out

    def test_the_part_of_an_id_must_be_unique(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["show", "202501"]) == 2
        assert "fits 2 sessions" in capsys.readouterr().err

    @pytest.mark.attack(172)
    @pytest.mark.parametrize("arguments", [["show"], ["tail"], ["summary"], ["show", "--json"], ["summary", "--json"]])
    def test_172_output_never_carries_terminal_escapes(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert "evil" in out
        assert out.isascii()
        assert out.replace("\n", "").isprintable()

    def test_tail_gives_the_last_records(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["tail", "-n", "2", "--json"]) == 0
        events = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
        assert events == ["session.end", "audit.seal"]

    def test_following_a_finished_session_ends(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["tail", "-f", "--lines=1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["event"] == "audit.seal"

    @pytest.mark.parametrize(
        ("arguments", "count"),
        [
            (["--denied"], 1),
            (["--host", "example.com"], 2),
            (["--event=egress"], 2),
            (["--since", "1h"], 6),
            (["--since=2999-01-01"], 0),
        ],
    )
    def test_options_select_records(self, capsys: pytest.CaptureFixture[str], arguments: list[str], count: int) -> None:
        assert main(["show", "--json", *arguments]) == 0
        assert len(capsys.readouterr().out.splitlines()) == count

    def test_a_filtered_summary_still_knows_that_the_session_ended(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["summary", "--host", "example.com"]) == 0
        out = capsys.readouterr().out
        assert "ended, exit status 0" in out
        assert "Denied: nothing" in out
        assert "2.048 kB down" in out

    @pytest.mark.attack(180)
    def test_180_a_denial_is_visible_and_fails_a_check_on_request(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["summary", NEW, "--fail-on-denied"]) == 1
        assert "--allow-domain x.test" in capsys.readouterr().out
        assert main(["summary", OLD, "--fail-on-denied"]) == 0

    def test_all_sessions_are_summed_up(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["summary", "--all", "--fail-on-denied"]) == 1
        out = capsys.readouterr().out
        assert out.startswith("2 sessions from ")
        assert "example.com:443  2x  200 B up  4.096 kB down" in out
        assert main(["summary", "--all", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["sessions"] == [OLD, NEW]

    def test_of_all_sessions_those_that_ended_before_are_left_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        os.utime(paths.log_path(OLD), (0, 0))
        assert main(["summary", "--all", "--since", "1h", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["sessions"] == [NEW]

    @pytest.mark.attack(181)
    def test_181_verify_says_ok_or_names_the_first_broken_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["verify"]) == 0
        path = Path(paths.log_path(NEW))
        path.write_bytes(path.read_bytes().replace(b"example.com", b"example.net", 1))
        assert main(["verify"]) == 1
        assert "BROKEN, first at line 3" in capsys.readouterr().out
        assert main(["verify", "--json"]) == 1
        report = json.loads(capsys.readouterr().out)
        assert (report["ok"], report["problems"][0]["line"]) == (False, 3)

    def test_damaged_lines_are_told_and_do_not_hide_the_rest(self, capsys: pytest.CaptureFixture[str]) -> None:
        path = Path(paths.log_path(NEW))
        path.write_bytes(b"junk\n" + path.read_bytes())
        assert main(["show", "--json"]) == 0
        captured = capsys.readouterr()
        assert len(captured.out.splitlines()) == 6
        assert "1 damaged lines were left out; run `netsandbox audit verify" in captured.err

    def test_a_reader_that_leaves_early_is_no_error(self) -> None:
        session = paths.new_session_id()
        log = AuditLog.open(paths.log_path(session), session)
        for _ in range(1000):  # more than a pipe holds
            log.write("egress", verdict="deny", host="a" * 400)
        log.close()
        code = "import sys; from netsandbox.cli.audit import main; sys.exit(main(['show']))"
        script = '"$0" -c "$1" | head -c 1; test ${PIPESTATUS[0]} -eq 0'
        done = subprocess.run(
            ["bash", "-c", script, sys.executable, code],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_without_any_session_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["summary"]) == 1
    assert "netsandbox run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["frobnicate"], ["show", "--frob"], ["show", "-x"], ["show", "a", "b"],
        ["show", "--host"], ["show", "--host="], ["show", "--json=yes"], ["show", "-n", "5"], ["show", "-f"],
        ["verify", "--denied"], ["tail", "--fail-on-denied"],
        ["tail", "-n", "-1"], ["tail", "-n", "many"], ["show", "--since", "soon"],
        ["show", "--event", "foo"], ["summary", "--event", "session"],
    ],
)  # fmt: skip
@pytest.mark.usefixtures("sessions")
def test_what_it_does_not_know_is_refused_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("netsandbox: ")
    assert captured.err.count("\n") == 1
    assert ";" in captured.err


@given(
    st.lists(
        st.sampled_from(["tail", "show", "-n", "--json", "--host", "=", "--since=1m"]) | st.text(max_size=8), max_size=5
    )
)
def test_any_words_are_options_or_a_usage_error(words: list[str]) -> None:
    try:
        query = read_query(parse(words, OPTIONS, "netsandbox audit"))
    except UsageError:
        return
    assert query.action in words


@pytest.mark.attack(190)
@pytest.mark.usefixtures("sessions")
def test_190_a_forged_session_name_reads_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    for forged in ("/etc/passwd", "../../../../../../etc/passwd", "..", f"{NEW}/../{OLD}"):
        assert main(["show", forged]) == 1
    assert capsys.readouterr().out == ""


def test_help_names_every_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(action in out for action in ("tail", "show", "summary", "verify"))


@pytest.mark.usefixtures("sessions")
def test_colour_is_for_terminals_without_no_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(["show"])
    assert "\x1b[31mdeny" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["show"])
    assert "\x1b" not in capsys.readouterr().out


def test_an_unknown_event_is_answered_with_the_known_ones(sessions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--event", "egres"]) == 2
    assert f"no event is called 'egres'; --event takes {', '.join(EVENTS)}" in capsys.readouterr().err
    for event in EVENTS:
        assert main(["show", "--event", event]) == 0
