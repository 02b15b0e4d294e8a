"""Rules for files in the default mode, from the command line, files and the user's lists: what a session then sees."""

from __future__ import annotations

import os
import tomllib
from typing import Any

import pytest

from tests.rig.landlocked import SECRET, put

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]

SHOWN = "shown-91ab"


def everything(home: Any) -> list[str]:
    return ["sh", "-c", f"grep -rs . {home.path} | cat; true"]


def test_wildcards_show_what_they_match_and_nothing_else(netsandbox: Any) -> None:
    home = netsandbox.home()
    for name in ("a/docs/x", "b/docs/x"):
        put(home, f"other/{name}", SHOWN)
    for name in ("other/a/src/x", "other/.hidden/docs/x", "other/c/x"):
        put(home, name)
    run = netsandbox("run", "--allow-read", "~/other/*/docs", "--", *everything(home))
    assert run.stdout.count(SHOWN) == 2
    assert SECRET not in run.stdout
    assert run.stderr == ""
    nothing = netsandbox("run", "--allow-read", "~/absent/*", "--", "true")
    assert "~/absent/* is matched by nothing, so not shown" in nothing.stderr


def test_a_wildcard_follows_no_link_of_an_earlier_command(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, ".ssh/docs/id")
    put(home, "other/a/docs/x", SHOWN)
    (home.path / "other/planted").symlink_to(home.path / ".ssh")
    run = netsandbox("run", "--allow-read", "~/other/*/docs", "--", *everything(home))
    assert SHOWN in run.stdout
    assert SECRET not in run.stdout


def test_a_denied_wildcard_hides_what_is_there(netsandbox: Any) -> None:
    home = netsandbox.home()
    for name in ("work/a.pem", "work/.b.pem"):
        put(home, name)
    put(home, "work/c.txt", SHOWN)
    shown = netsandbox("run", "--", *everything(home))
    assert SECRET in shown.stdout
    run = netsandbox("run", "--deny-read", "*.pem", "--", *everything(home))
    assert SHOWN in run.stdout
    assert SECRET not in run.stdout


def test_a_missing_path_is_a_warning_and_the_command_runs(netsandbox: Any) -> None:
    home = netsandbox.home()
    run = netsandbox("run", "--allow-read", "~/absent", "--", "echo", "ran")
    assert (run.returncode, run.stdout) == (0, "ran\n")
    assert run.stderr == (
        "netsandbox: --allow-read: ~/absent is missing, so not shown, even if it appears later; make it first\n"
    )
    made = netsandbox("run", "--allow-write", "~/made/", "--", "sh", "-c", f"echo {SHOWN} > ~/made/x")
    assert (made.returncode, made.stderr) == (0, "")
    assert (home.path / "made/x").read_text() == f"{SHOWN}\n"
    assert netsandbox("run", "-q", "--allow-read", "~/absent", "--", "true").stderr == ""


@pytest.mark.parametrize("mode", ["project", "readable"])
def test_a_secret_that_is_named_is_shown_and_told(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    put(home, ".ssh/id", SHOWN)
    put(home, ".netrc")
    for option in ("--allow-read", "--allow-write"):
        run = netsandbox("run", "--files", mode, option, "~/.ssh", "--", "sh", "-c", "cat ~/.ssh/id ~/.netrc; true")
        assert SHOWN in run.stdout
        assert SECRET not in run.stdout
        assert f"{option}: the command can read" in run.stderr
        assert "~/.ssh, which may hold secrets" in run.stderr


@pytest.mark.attack(270)
def test_start_files_of_shells_are_not_made_in_a_folder_that_is_opened(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, ".config/tool/x", SHOWN)
    script = "mkdir -p ~/.config/fish; echo 'touch ~/run' > ~/.config/fish/config.fish; echo y > ~/.config/tool/y"
    run = netsandbox("run", "--files", "project", "--allow-write", "~/.config", "--", "sh", "-c", script)
    assert ((home.path / ".config/tool/y").exists(), run.returncode) == (True, 0)
    assert not (home.path / ".config/fish/config.fish").exists()


@pytest.mark.parametrize("mode", ["project", "readable"])
def test_secrets_in_a_folder_that_is_opened_for_writing_stay_hidden(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    put(home, ".config/gh/hosts.yml")
    put(home, ".config/tool/x", SHOWN)
    script = "cat ~/.config/gh/hosts.yml ~/.config/tool/x; echo y > ~/.config/tool/y; mv ~/.config/gh ~/.config/moved"
    run = netsandbox("run", "--files", mode, "--allow-write", "~/.config", "--", "sh", "-c", script)
    assert run.stdout == SHOWN
    assert (home.path / ".config/tool/y").exists()
    assert (home.path / ".config/gh/hosts.yml").read_text() == SECRET
    both = ["--allow-write", "~/.config", "--allow-read", "~/.config/gh"]
    named = netsandbox("run", "--files", mode, *both, "--", "sh", "-c", script)
    assert SECRET in named.stdout


def test_a_listed_place_of_secrets_breaks_no_run(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, ".ssh/id", SHOWN)
    assert "which may hold secrets" in netsandbox("config", "add-path", "~/.ssh").stderr
    for mode in ("project", "readable", "open"):
        run = netsandbox("run", "--files", mode, "--", "cat", str(home.path / ".ssh/id"))
        assert (run.returncode, run.stdout) == (0, SHOWN), run.stderr
    assert netsandbox("config", "remove-path", "~/.ssh").returncode == 0
    closed = netsandbox("run", "--", "sh", "-c", "cat ~/.ssh/id; echo x > ~/.bashrc")
    assert SHOWN not in closed.stdout
    assert not (home.path / ".bashrc").exists()


@pytest.mark.parametrize("mode", ["project", "readable"])
def test_a_deny_wins_over_an_allow_inside_of_it_and_both_are_named(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    put(home, "data/inner/x")
    put(home, "beside/x", SHOWN)
    options = ["--allow-read", "~/data/inner", "--allow-read", "~/beside", "--deny-read", "~/data"]
    run = netsandbox("run", "--files", mode, *options, "--", *everything(home))
    assert SECRET not in run.stdout
    assert SHOWN in run.stdout
    assert "--allow-read: ~/data/inner is denied by --deny-read (~/data), which wins" in run.stderr


@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_what_may_not_be_written_stays(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    put(home, "work/keep/x", SHOWN)
    tries = "echo y > keep/x; echo y > keep/new; rm -f keep/x; mv keep moved; echo fine > other; cat keep/x"
    run = netsandbox("run", "--files", mode, "--deny-write", "keep", "--", "sh", "-c", tries)
    assert run.stdout == SHOWN
    assert sorted(os.listdir(home.work / "keep")) == ["x"]
    assert (home.work / "keep/x").read_text() == SHOWN
    assert (home.work / "other").read_text() == "fine\n"


def test_what_a_toolchain_shows_can_be_hidden(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, ".local/bin/tool", SHOWN)
    assert SHOWN in netsandbox("run", "--", *everything(home)).stdout
    assert SHOWN not in netsandbox("run", "--deny-read", "~/.local", "--", *everything(home)).stdout


def test_the_working_folder_cannot_be_hidden(netsandbox: Any) -> None:
    for path in (".", "~", "/"):
        run = netsandbox("run", "--deny-read", path, "--", "echo", "ran")
        assert (run.returncode, run.stdout) == (2, "")
        assert "leave it out" in run.stderr or "cannot be hidden" in run.stderr


def test_options_files_and_lists_count_alike(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, "data/x", SHOWN)
    script = ["sh", "-c", "cat ~/data/x; echo y > ~/data/y"]
    rules = put(home, "work/rules.toml", '[filesystem]\nallow_write = ["~/data"]\n')
    (home.path / ".config/netsandbox/profiles").mkdir(parents=True, exist_ok=True)
    for options in (["--allow-write", "~/data"], ["--rw", "~/data"], ["--config", str(rules)]):
        run = netsandbox("run", *options, "--", *script)
        assert (run.returncode, run.stdout) == (0, SHOWN), run.stderr
        (home.path / "data/y").unlink()
    assert netsandbox("config", "add-path", "~/data").returncode == 0
    assert netsandbox("run", "--", *script).stdout == SHOWN
    assert (home.path / "data/y").exists()


def test_learning_is_as_closed_as_a_run_and_proposes_what_was_refused(netsandbox: Any) -> None:
    home = netsandbox.home()
    rc = put(home, ".bashrc", "true\n")
    put(home, "Documents/plan.md", SHOWN)
    put(home, ".ssh/id")
    put(home, "data/x", "old")
    tries = (
        "cat ~/.bashrc ~/Documents/plan.md ~/.ssh/id; echo planted >> ~/.bashrc; mkdir -p ~/.npm/_cacache/a/b;"
        f" echo x > ~/.npm/_cacache/a/b/c; echo new > {home.path}/data/x"
    )
    learned = netsandbox("learn", "-w", "--", "sh", "-c", tries)
    assert SECRET not in learned.stdout
    assert rc.read_text() == "true\n"
    found = tomllib.loads((home.work / ".netsandbox.toml").read_text())["filesystem"]
    assert found["allow_read"] == ["~/Documents/plan.md"]
    assert ".bashrc" not in str(found)
    assert ".npm" not in str(found)
    assert ".ssh" not in str(found)
    assert netsandbox("trust", "--yes").returncode == 0
    assert netsandbox("run", "--", "cat", str(home.path / "Documents/plan.md")).stdout == SHOWN


def test_a_dry_run_prints_the_root_and_makes_nothing(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, "data/x")
    before = sorted(str(path) for path in home.path.rglob("*") if "netsandbox" not in str(path))
    run = netsandbox("run", "--dry-run", "--allow-read", "~/data", "--allow-write", "~/made/", "--", "true")
    for line in (f"writable   {home.work}", f"writable   {home.path}/made", f"read-only  {home.path}/data"):
        assert f"          {line}\n" in run.stdout
    assert sorted(str(path) for path in home.path.rglob("*") if "netsandbox" not in str(path)) == before


def test_what_an_option_showed_leaves_no_empty_place_in_the_private_home(netsandbox: Any) -> None:
    home = netsandbox.home()
    for name in ("data/deep/x", "single", "written/x"):
        put(home, name, SHOWN)
    (home.path / "link").symlink_to("data")
    options = ["--allow-read", "~/data/deep", "--allow-read", "~/single", "--allow-write", "~/written"]
    run = netsandbox(
        "run", *options, "--allow-read", "~/link", "--", "sh", "-c", "cat ~/data/deep/x ~/single ~/link/deep/x"
    )
    assert run.stdout.count(SHOWN) == 3
    later = netsandbox("run", "--", "sh", "-c", "touch ~/mine; ls -A ~")
    left = later.stdout.split()
    assert "mine" in left
    assert not {"data", "single", "written", "link"} & set(left)
    assert (home.path / "written/x").read_text() == SHOWN
