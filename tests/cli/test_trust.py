"""`netsandbox trust`: what a project's file would open is shown, and a yes is noted."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.cli import trust as command
from netsandbox.config.registries.provenance import untrusted_place
from netsandbox.config.trust import is_trusted
from netsandbox.errors import UsageError
from netsandbox.paths import session_state_home
from netsandbox.runtime import written_folders
from netsandbox.runtime.written_folders import release_written, remember_written
from tests.rig.file_clock import settle

OPENS = b"[network]\nallow_domains = ['a.test']\ndeny_domains = ['b.test']\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    made = tmp_path / ".netsandbox.toml"
    made.write_bytes(OPENS)
    return made


def test_what_it_opens_is_shown_before_it_is_trusted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--yes"]) == 0
    shown, told = capsys.readouterr().out.splitlines()
    assert shown == f"{path}:2: network.allow_domains: 'a.test'"
    assert told == f"{path} is trusted as it is now"
    assert is_trusted(str(path), OPENS)
    assert command.main([]) == 0
    assert capsys.readouterr().out == f"{path} is trusted already\n"


def test_a_long_value_is_shown_to_its_end(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said yes to must not stand behind what is shown."""
    path.write_text(f"[shell]\nset_env = {{ ABOUT = '{'harmless ' * 200}', BASH_ENV = '/tmp/\u202eevil' }}\n")
    assert command.main(["--yes"]) == 0
    about, evil, told = capsys.readouterr().out.splitlines()
    assert about == f"{path}:2: shell.set_env: ABOUT = '{'harmless ' * 200}'"
    assert evil == f"{path}:2: shell.set_env: BASH_ENV = '/tmp/\\u202eevil'"
    assert told == f"{path} is trusted as it is now"


def test_the_name_of_a_folder_is_nothing_that_a_terminal_obeys(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """172: a command that made the folder could write over what is asked about."""
    folder = path.parent / "a\x1b[2Jb\nc"
    folder.mkdir()
    (folder / path.name).write_bytes(OPENS)
    monkeypatch.chdir(folder)
    for arguments in (["--yes"], [], ["--forget"], ["--forget"]):
        command.main(arguments)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 5


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("Yes\n", 0), ("n\n", 1), ("\n", 1), ("", 1), ("yep\n", 1)])
def test_on_a_terminal_the_user_is_asked(path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: int) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert command.main([str(path)]) == status
    assert is_trusted(str(path), OPENS) is (status == 0)


def test_without_a_terminal_nobody_is_taken_at_his_silence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError, match="add --yes"):
        command.main([])
    assert not is_trusted(str(path), OPENS)


def test_a_file_that_opens_nothing_needs_no_trust(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("[network]\ndeny_domains = ['b.test']\n")
    assert command.main([]) == 0
    assert "opens nothing" in capsys.readouterr().out


def test_trust_is_listed_and_taken_back(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--yes"])
    capsys.readouterr()
    assert command.main(["--list"]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert command.main(["--forget"]) == 0
    assert not is_trusted(str(path), OPENS)
    assert command.main(["--forget"]) == 1
    assert command.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path} is trusted no longer",
        f"{path} was not trusted",
        "no file is trusted",
    ]


def test_a_file_with_a_mistake_is_not_trusted(path: Path) -> None:
    path.write_text("[network]\nallow_domain = ['a.test']\n")
    with pytest.raises(UsageError, match="did you mean allow_domains"):
        command.main(["--yes"])


def test_a_folder_without_a_project_says_so(path: Path) -> None:
    path.unlink()
    with pytest.raises(UsageError, match=r"has no \.netsandbox\.toml"):
        command.main([])
    with pytest.raises(UsageError, match="takes one file"):
        command.main(["a", "b"])


def test_a_file_that_shows_another_face_meanwhile_is_not_trusted(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that runs in the project would let the user see one host and say yes to another."""
    settings = tmp_path / ".npmrc"
    settings.write_bytes(b"registry=https://evil.test")
    monkeypatch.setenv("PATH", str(tmp_path))  # no tool is asked

    def ask(path: str) -> list[tuple[str, str, str]]:
        settings.write_bytes(b"registry=https://good.test")
        settings.write_bytes(b"registry=https://evil.test")
        return [("npm", "good.test:443", f"{path}:1")]

    monkeypatch.setattr(command, "registries_of", ask)
    with pytest.raises(UsageError, match="changed while it was looked at"):
        command.main(["--yes", str(settings)])
    assert not is_trusted(str(settings), settings.read_bytes())
    monkeypatch.setattr(command, "registries_of", lambda path: [("npm", "evil.test:443", f"{path}:1")])
    assert command.main(["--yes", str(settings)]) == 0
    assert is_trusted(str(settings), settings.read_bytes())


def test_each_file_of_a_project_is_trusted_or_not_by_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of other sandboxes too: one no is a no, and takes no other yes back."""
    other = path.parent / ".claude-sandbox.json"
    other.write_text('{\n"network_ports": [5432]}')
    monkeypatch.setattr("sys.stdin", Terminal("n\ny\n"))
    assert command.main([]) == 1
    assert f"{other}:2: localhost.connect_host: '5432'" in capsys.readouterr().out
    assert is_trusted(str(path), OPENS)
    assert not is_trusted(str(other), other.read_bytes())
    assert command.main(["--yes"]) == 0
    assert is_trusted(str(other), other.read_bytes())
    assert command.main(["--forget"]) == 0
    assert not is_trusted(str(other), other.read_bytes())
    assert not is_trusted(str(path), OPENS)


def test_a_file_of_the_users_that_counts_already_needs_no_trust(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it looks like: it is settings of a tool and none of ours."""
    (tmp_path / "home" / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    monkeypatch.chdir(tmp_path / "home" / "work")
    settings = tmp_path / "home" / ".npmrc"
    settings.write_text("registry=https://mine.test/\n")
    assert command.main([str(settings)]) == 0
    assert capsys.readouterr().out == "~/.npmrc opens nothing, so it needs no trust\n"
    session_state_home()
    remember_written(str(settings))
    release_written()
    settings.write_text("registry=https://later.test/\n")
    assert command.main(["--yes", str(settings)]) == 0
    assert "~/.npmrc:1: npm fetches from later.test:443\n" in capsys.readouterr().out
    assert command.main([str(settings)]) == 0
    assert capsys.readouterr().out == "~/.npmrc is trusted already\n"


class Toolchain:
    """A folder of programs in a home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / ".nvm"
        self.old, self.new = self.folder / "old", self.folder / "bin" / "new"
        self.new.parent.mkdir(parents=True)
        self.old.touch()
        settle(home)

    def session(self) -> None:
        """One that can write the folder, and does."""
        remember_written(str(self.folder))
        self.new.touch()
        settle(self.folder)
        release_written()


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolchain:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Toolchain(tmp_path / "home")


def test_a_folder_is_trusted_after_its_new_files_were_shown(
    toolchain: Toolchain, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([str(toolchain.folder)]) == 0
    assert capsys.readouterr().out == "no session could have written what is in ~/.nvm, so it needs no trust\n"
    toolchain.session()
    assert untrusted_place(str(toolchain.new), {}) == str(toolchain.folder)
    with pytest.raises(UsageError, match="trust asks on a terminal"):
        command.main([str(toolchain.folder)])
    capsys.readouterr()
    assert command.main(["--yes", str(toolchain.folder)]) == 0
    assert capsys.readouterr().out == "~/.nvm/bin/new\n~/.nvm is trusted, until a session can write there\n"
    assert untrusted_place(str(toolchain.new), {}) is None
    assert command.main(["--list"]) == 0
    assert "~/.nvm\n" in capsys.readouterr().out
    assert command.main(["--forget", str(toolchain.folder)]) == 0
    assert untrusted_place(str(toolchain.new), {}) == str(toolchain.folder)


def test_a_program_with_a_name_elsewhere_is_trusted_by_the_folder_that_a_launch_names(
    toolchain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As pnpm links what it installs with its store, though no session could write the folder itself."""
    session_state_home()
    remember_written("/srv/project")
    release_written()
    settle(tmp_path)
    toolchain.new.touch()
    os.link(toolchain.new, tmp_path / "store")
    settle(tmp_path)
    place = untrusted_place(str(toolchain.new), {})
    assert place == str(toolchain.folder)
    assert command.main(["--yes", place]) == 0
    assert "~/.nvm/bin/new\n" in capsys.readouterr().out
    assert untrusted_place(str(toolchain.new), {}) is None
    settle(tmp_path)
    (tmp_path / "store").write_text("changed by its other name")
    assert untrusted_place(str(toolchain.new), {}) == place


def test_a_home_is_no_folder_to_trust(toolchain: Toolchain) -> None:
    for path in (toolchain.folder.parent, "/"):
        with pytest.raises(UsageError, match="holds your home; name the folder of a tool"):
            command.main(["--yes", str(path)])


HOLDS = """\
import sys
from netsandbox.runtime import written_folders
from netsandbox.runtime.written_folders import release_written, remember_written
remember_written(sys.argv[1])
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.attack(228)
def test_a_folder_is_not_trusted_while_a_session_may_write_it(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one with another state home, which `ps` does not list, and one that has just begun."""
    memory = str(toolchain.folder.parent / ".local/share/netsandbox")
    monkeypatch.setattr(written_folders, "memory_home", lambda: memory)
    toolchain.session()
    begins = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "other")}
    for place, status in ((toolchain.folder, None), (toolchain.folder.parent, None), (tmp_path, None), ("/srv", 0)):
        words = [sys.executable, "-c", HOLDS, str(place)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=begins) as session:
            assert session.stdout is not None
            assert session.stdout.readline() == b"\n"
            if status is None:
                with pytest.raises(UsageError, match="a session that still runs may write there"):
                    command.main(["--yes", str(toolchain.folder)])
                assert untrusted_place(str(toolchain.new), {}) == str(toolchain.folder)
            else:
                assert command.main(["--yes", str(toolchain.folder)]) == status
            session.kill()


@pytest.mark.attack(228)
def test_a_session_that_begins_while_the_user_is_asked_gains_no_trust(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain.session()
    monkeypatch.setattr(command, "_agreed", lambda question: toolchain.session() is None)
    assert command.main([str(toolchain.folder)]) == 0
    assert untrusted_place(str(toolchain.old), {}) is None, "the twin: it is older"
    settle(toolchain.folder)
    toolchain.new.write_text("planted by the session, which goes on")
    assert untrusted_place(str(toolchain.new), {}) == str(toolchain.folder)


def test_a_table_is_shown_one_name_a_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text('[shell.set_env]\nA = "it\'s"\nB = "\\u001b[2J"\n[profiles.detect]\nnode = ["x"]\n')
    assert command.main(["--yes"]) == 0
    assert [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()[:-1]] == [
        'shell.set_env: A = "it\'s"',
        "shell.set_env: B = '\\x1b[2J'",
        "profiles.detect: node = ['x']",
    ]
