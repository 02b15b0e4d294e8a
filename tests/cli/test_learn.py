"""`netsandbox learn`: what is shown, what is written, and what is refused before anything runs."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from netsandbox.cli import learn
from netsandbox.config.file_settings import FileSettings
from netsandbox.errors import UsageError
from netsandbox.learn.name_folding import Proposal
from netsandbox.learn.project_text import ProjectText
from netsandbox.learn.proposed import Proposed

FOUND = Proposed((Proposal("a.test"), Proposal("b.test:8443")), ("192.0.2.7:22",))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "learn needs a command to watch; write `netsandbox learn -- npm ci`"),
        (["--"], "learn needs a command"),
        (["online", "--", "true"], "learn always runs online, so the profile online has no meaning"),
        (["--profile", "offline", "--", "true"], "learn always runs online"),
        (["--offline", "--", "true"], "unknown option '--offline'"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        learn.main(arguments)


def offered(path: Path, capsys: pytest.CaptureFixture[str], *, write: bool = False, found: Proposed = FOUND) -> str:
    learn._offer_change(found, ProjectText(str(path)), write=write)
    return capsys.readouterr().err.replace(str(path), "PATH")


def test_the_change_is_shown_and_written_when_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".netsandbox.toml"
    path.write_text("[network]\nallow_domains = ['a.test']\n")
    assert offered(path, capsys, write=True) == (
        "netsandbox: to let it through without --online, change PATH so:\n"
        "--- .netsandbox.toml\n"
        "+++ .netsandbox.toml\n"
        "@@ -1,2 +1,5 @@\n"
        " [network]\n"
        "-allow_domains = ['a.test']\n"
        "+allow_addresses = [\n"
        '+    "192.0.2.7:22",\n'
        "+]\n"
        "+allow_domains = ['a.test', \"b.test:8443\"]\n"
        "netsandbox: PATH is written; `netsandbox trust` shows it once more and puts it into effect\n"
    )
    assert offered(path, capsys, write=True) == (
        "netsandbox: PATH asks for all that it used; `netsandbox trust` puts it into effect\n"
    )
    assert offered(path, capsys, write=True, found=Proposed()) == f"netsandbox: {learn.NOTHING}\n"
    unreached = Proposed(remarks=("let through, but not reached, so not proposed:", "  c.test:443"))
    assert offered(path, capsys, write=True, found=unreached) == (
        "netsandbox: all that it reached, read and wrote is allowed already, so there is nothing to write;"
        " what is listed above is left to you\n"
    )


def test_paths_are_shown_beside_names_and_written_with_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".netsandbox.toml"
    found = Proposed((Proposal("a.test"),), writable=(("~/.cache/x/", ""), ("~/x", "look twice")))
    assert offered(path, capsys, write=True, found=found) == (
        "netsandbox: to let it through without --online and to show it these files, change PATH so:\n"
        "--- .netsandbox.toml\n"
        "+++ .netsandbox.toml\n"
        "@@ -0,0 +1,10 @@\n"
        "+[network]\n"
        "+allow_domains = [\n"
        '+    "a.test",\n'
        "+]\n"
        "+\n"
        "+[filesystem]\n"
        "+allow_write = [\n"
        '+    "~/.cache/x/",\n'
        '+    "~/x",  # look twice\n'
        "+]\n"
        "netsandbox: PATH is written; `netsandbox trust` shows it once more and puts it into effect\n"
    )
    assert offered(path, capsys, write=True, found=found).endswith(
        "asks for all that it used; `netsandbox trust` puts it into effect\n"
    )


def test_files_to_read_are_written_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".netsandbox.toml"
    shown = offered(path, capsys, write=True, found=Proposed(readable=(("~/data", ""),)))
    assert shown.startswith("netsandbox: to show it these files, change PATH so:\n")
    assert path.read_text() == '[filesystem]\nallow_read = [\n    "~/data",\n]\n'


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("yes\n", True), ("\n", False), ("", False)])
def test_on_a_terminal_the_user_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, written: bool
) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    path = tmp_path / ".netsandbox.toml"
    learn._offer_change(FOUND, ProjectText(str(path)), write=False)
    assert path.exists() is written
    assert "Write this? [y/N] " in shown.getvalue()
    assert "\x1b" not in shown.getvalue()
    assert ("nothing was written" in shown.getvalue()) is not written


def test_colours_are_for_terminals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(""))
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    learn._offer_change(FOUND, ProjectText(str(tmp_path / ".netsandbox.toml")), write=False)
    assert '\x1b[32m+    "a.test",\x1b[0m' in shown.getvalue()


def test_without_a_terminal_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".netsandbox.toml"
    assert offered(path, capsys).endswith(
        "netsandbox: nothing was written; `netsandbox learn --write -- …` writes without asking\n"
    )
    assert not path.exists()


@pytest.mark.parametrize("content", [b"network = { mode = 'filtered' }\n", b"\xff", b"[network\n"])
def test_a_file_that_cannot_be_extended_is_left_and_the_lines_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / ".netsandbox.toml"
    path.write_bytes(content)
    assert offered(path, capsys, write=True) == (
        "netsandbox: cannot add to PATH without changing more of it; put this into its tables yourself:\n"
        '[network]\nallow_domains = [\n    "a.test",\n    "b.test:8443",\n]\n'
        'allow_addresses = [\n    "192.0.2.7:22",\n]\n'
    )
    assert path.read_bytes() == content


def test_a_line_of_the_file_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".netsandbox.toml"
    path.write_text("[network] # \u202e\x7f".replace("\x7f", "") + "\n")
    assert "\\u202e" in offered(path, capsys)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "true").mkdir()
    (tmp_path / "home").symlink_to("true")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "true"


def test_secrets_and_our_own_folders_bear_no_rule(home: Path) -> None:
    found = learn.entry_limits()
    assert found.home == str(home)
    closed = (".ssh", ".ssh/x", ".cargo", ".config", ".config/netsandbox", ".local/state/netsandbox/x")
    assert not [name for name in closed if found.permits(f"{home}/{name}")]
    allowed = (".cache/pip", ".config/tool", ".cargo/registry", "x")
    assert not [name for name in allowed if not found.permits(f"{home}/{name}")]
    package = str(Path(__file__).resolve().parents[2] / "netsandbox")
    assert not found.permits(package)
    assert not found.permits(os.path.dirname(package))


def test_an_organisation_that_bounds_the_mode_is_named_and_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = FileSettings(mode="filtered", bounded=(("mode", "filtered", "/etc/netsandbox/config.toml:2"),))
    monkeypatch.setattr("netsandbox.cli.learn.read_config", lambda parsed: bounded)
    with pytest.raises(UsageError, match=r"^learn runs online: .* allows no mode wider than filtered; leave"):
        learn.main(["--", "true"])


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["--inspect", "--", "npm", "ci"], ["--inspect=*", "--", "npm", "ci"]),
        (["--inspect"], ["--inspect=*"]),
        (["--inspect", "-w", "--", "a"], ["--inspect=*", "-w", "--", "a"]),
        (["--inspect", "a.test", "--", "--inspect"], ["--inspect", "a.test", "--", "--inspect"]),
        (["--inspect=a.test"], ["--inspect=a.test"]),
    ],
)
def test_inspect_without_a_host_is_about_every_one(given: list[str], read: list[str]) -> None:
    assert learn.with_every_host(given) == read
