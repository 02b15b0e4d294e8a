"""Names are labels that can stand before .localhost, and no two live sessions have the same one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.session_name import branch_of, check_name, default_name, hold_name, is_name, numbered, slug

from netsandbox import paths
from netsandbox.errors import HostError, UsageError


@given(st.text(max_size=200))
def test_whatever_the_text_its_slug_is_a_name(text: str) -> None:
    name = slug(text)
    assert is_name(name)
    assert slug(name) == name
    assert check_name(name) == name


@given(st.text(alphabet="abz059-", max_size=60))
def test_a_slug_of_near_names_is_a_name_too(text: str) -> None:
    assert is_name(slug(text))


@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True).filter(is_name), st.integers(2, 999))
def test_a_numbered_name_is_a_name(name: str, number: int) -> None:
    assert is_name(numbered(name, number))
    assert numbered(name, number).endswith(f"-{number}")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("shop", "shop"),
        ("My Shop!", "my-shop"),
        ("feature//x", "feature-x"),
        ("", "session"),
        ("...", "session"),
        ("2024", "session-2024"),
        ("localhost", "session-localhost"),
        ("xn--caf-dma", "xn-caf-dma"),
        ("café", "caf"),
        ("a" * 39 + "-b", "a" * 39),
        ("../../etc", "etc"),
    ],
)
def test_slugs_read_like_what_they_were(text: str, name: str) -> None:
    assert slug(text) == name


@pytest.mark.attack(190)
@pytest.mark.parametrize(
    "text", ["", "../x", "a/b", "A", "a.b", "-a", "a-", "3000", "localhost", "xn--a", "a" * 41, "a\n", "é", "a b", "٣"]
)
def test_a_given_name_is_taken_as_it_is_or_refused_with_one_that_would_do(text: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be part of NAME\.localhost; .* --name ") as refused:
        check_name(text)
    assert is_name(str(refused.value).rpartition(" ")[2])


@pytest.mark.parametrize("text", ["a", "a--b", "0a", "shop-2", "a" * 40])
def test_any_label_is_a_name(text: str) -> None:
    assert check_name(text) == text


@pytest.mark.parametrize(
    ("folder", "branch", "name"),
    [
        ("/srv/shop", None, "shop"),
        ("/srv/shop", "main", "shop"),
        ("/srv/shop", "master", "shop"),
        ("/srv/shop", "trunk", "shop"),
        ("/srv/shop", "feature/Cart", "shop-feature-cart"),
        ("/srv/2024", "dev", "2024-dev"),
        ("/", None, "session"),
        ("/", "dev", "session-dev"),
        ("/srv/\u5546\u5e97", "shop", "session-shop"),  # else a branch alone would take the name of another project
        ("/srv/a-very-long-folder-name-of-a-shop", "fix/the-cart", "a-very-long-folder-name-of-fix-the-cart"),
    ],
)
def test_the_default_is_the_folder_and_a_branch_that_tells_something(
    folder: str, branch: str | None, name: str
) -> None:
    assert default_name(folder, branch) == name


def make_repository(folder: Path, head: str) -> None:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)


def test_the_branch_is_found_from_below(tmp_path: Path) -> None:
    make_repository(tmp_path, "ref: refs/heads/feature/cart\n")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    assert branch_of(str(tmp_path / "src" / "deep")) == "feature/cart"


def test_a_worktree_has_its_own_branch(tmp_path: Path) -> None:
    make_repository(tmp_path / "main", "ref: refs/heads/main\n")
    inner = tmp_path / "main" / ".git" / "worktrees" / "cart"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/cart\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    for spelling in (str(inner), "../main/.git/worktrees/cart"):
        (tree / ".git").write_text(f"gitdir: {spelling}\n")
        assert branch_of(str(tree)) == "cart"


def test_git_itself_agrees(tmp_path: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "init", "-q", "-b", "topic/x", str(tmp_path / "r")], check=True)
    assert branch_of(str(tmp_path / "r")) == "topic/x"
    subprocess.run(["git", "-C", "r", *identity, "commit", "-q", "--allow-empty", "-m", "a"], check=True, cwd=tmp_path)
    subprocess.run(["git", "-C", "r", "worktree", "add", "-q", "-b", "other", "../w"], check=True, cwd=tmp_path)
    assert branch_of(str(tmp_path / "w")) == "other"
    subprocess.run(["git", "-C", "r", "checkout", "-q", "--detach"], check=True, cwd=tmp_path)
    assert branch_of(str(tmp_path / "r")) is None


@pytest.mark.parametrize("head", ["", "0" * 40, "ref: refs/heads/", "ref: refs/tags/v1", "\0\xff", "x" * 100_000])
def test_no_branch_is_none(tmp_path: Path, head: str) -> None:
    make_repository(tmp_path, head)
    assert branch_of(str(tmp_path)) is None


@given(st.binary(max_size=200))
def test_hostile_files_say_nothing_and_break_nothing(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / ".git").write_bytes(data)
    assert branch_of(str(folder)) is None
    (folder / ".git").write_bytes(b"gitdir: " + data)
    assert branch_of(str(folder)) is None
    (folder / ".git").unlink()
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_bytes(b"ref: refs/heads/" + data)
    assert is_name(default_name(str(folder), branch_of(str(folder))))


def test_a_fifo_a_loop_and_a_missing_folder_do_not_hold_us_up(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(str(tmp_path)) is None
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".git").symlink_to(".git")
    assert branch_of(str(tmp_path / "b")) is None
    assert branch_of("/nowhere/a\0b") is None


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Path(paths.state_home())


def test_a_taken_default_gets_a_number_and_a_free_one_is_used_again(state: Path) -> None:
    held = [hold_name("shop", explicit=False) for _ in range(3)]
    assert [each.name for each in held] == ["shop", "shop-2", "shop-3"]
    held[1].close()
    held.append(hold_name("shop", explicit=False))
    assert held[-1].name == "shop-2"
    for each in held:
        each.close()
    assert (state / "names").stat().st_mode & 0o777 == 0o600


def test_a_default_that_is_avoided_gets_a_number(state: Path) -> None:
    """Kept changes have the name of their session."""
    held = hold_name("shop", explicit=False, avoided={"shop", "shop-2"}.__contains__)
    assert held.name == "shop-3"
    held.close()


def test_a_taken_explicit_name_is_an_error_that_says_what_to_do(state: Path) -> None:
    held = hold_name("shop", explicit=True)
    with pytest.raises(HostError, match="shop is running already; choose another --name or `netsandbox stop shop`"):
        hold_name("shop", explicit=True)
    held.close()
    hold_name("shop", explicit=True).close()


def test_a_name_is_free_when_its_holder_was_killed(state: Path) -> None:
    """INV-10."""
    code = "from netsandbox_portmap.session_name import *; h = hold_name('shop', explicit=1); print(flush=1); input()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes) as holder:  # type: ignore[call-overload]
        holder.stdout.readline()
        with pytest.raises(HostError):
            hold_name("shop", explicit=True)
        holder.kill()
        holder.wait(10)
    hold_name("shop", explicit=True).close()


def test_a_state_folder_that_will_not_do_is_an_error_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(HostError, match="set XDG_STATE_HOME"):
        hold_name("shop", explicit=False)


def test_it_costs_no_import_that_the_path_to_exec_cannot_afford() -> None:
    code = (
        "import sys; before = set(sys.modules); import netsandbox_portmap.session_name;"
        "print(*sorted(n for n in set(sys.modules) - before if not n.startswith('netsandbox')))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert set(done.stdout.split()) <= {"__future__"}


def test_a_working_folder_that_is_gone_still_gives_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert is_name(default_name(".", branch_of(".")))
