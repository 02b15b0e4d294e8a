"""Each shell is started so that it reads our file and then the user's; others are started as they are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.shells.interactive import FILES, fish_quoted, interactive, title
from tests.rig.completing import needs


@pytest.mark.parametrize("shell", ["/usr/bin/tcsh", "nu", "/opt/bash/elvish", "/bin/rbash"])
def test_another_shell_is_started_as_it_is(shell: str) -> None:
    assert interactive(shell, {"ZDOTDIR": "/somewhere"}) == ([shell], ())


def test_dash_is_started_without_job_control_whatever_its_name_is(tmp_path: Path) -> None:
    link = tmp_path / "sh"
    (tmp_path / "dash").write_text("")
    link.symlink_to(tmp_path / "dash")
    assert interactive(str(link), {}) == ([str(link), "+m"], ())


def test_bash_reads_our_file_instead_of_the_users() -> None:
    assert interactive("/bin/bash", {}) == (["/bin/bash", "--rcfile", f"{FILES}/start.bash"], ())


def test_zsh_finds_our_file_by_the_folder_and_the_users_folder_is_kept() -> None:
    assert interactive("/bin/zsh", {}) == (["/bin/zsh"], (("ZDOTDIR", f"{FILES}/zsh"),))
    _, variables = interactive("zsh", {"ZDOTDIR": "/home/me/.zsh"})
    assert dict(variables) == {"ZDOTDIR": f"{FILES}/zsh", "NETSANDBOX_ZDOTDIR": "/home/me/.zsh"}


def test_fish_reads_our_file_after_its_own() -> None:
    assert interactive("fish", {}) == (["fish", "--init-command", f"source '{FILES}/prompt.fish'"], ())


def test_the_files_are_there_and_the_shells_can_parse_them() -> None:
    for shell, names in {"bash": ("start.bash", "prompt.bash"), "zsh": ("prompt.zsh", "zsh/.zshenv")}.items():
        for name in names:
            subprocess.run([needs(shell), "-n", Path(FILES, name)], check=True, timeout=60)
    subprocess.run([needs("fish"), "--no-execute", Path(FILES, "prompt.fish")], check=True, timeout=60)


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=40))
def test_a_quoted_word_of_fish_ends_where_it_began(text: str) -> None:
    quoted = fish_quoted(text)
    assert quoted[0] == quoted[-1] == "'"
    inner = quoted[1:-1].replace("\\\\", "").replace("\\'", "")
    assert "'" not in inner
    assert "\\" not in inner


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("text", ["plain", "it's", "a\\", "\\'", "$HOME (date) `date`", "*?~{a,b}", "\\\\''"])
def test_fish_reads_a_quoted_word_as_it_was(text: str) -> None:
    told = subprocess.run(
        ["fish", "--no-config", "-c", f"printf %s {fish_quoted(text)}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (told.stdout, told.stderr) == (text, "")


@pytest.mark.parametrize("term", ["xterm-256color", "tmux-256color", "alacritty"])
def test_the_title_is_the_mode_and_is_restored(term: str) -> None:
    assert title("filtered", term) == ("\x1b[22;2t\x1b]2;[sandbox:filtered]\x07", "\x1b[23;2t")


@pytest.mark.parametrize(
    ("mode", "term"), [("filtered", "dumb"), ("filtered", "linux"), ("x\x07y", "xterm"), ("", "xterm")]
)
def test_no_other_terminal_gets_a_title_and_no_other_text_is_one(mode: str, term: str) -> None:
    assert title(mode, term) == ("", "")
