"""Which files of the host a git configuration of the user names, and which of them a session may see."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.backends.linux.git_settings import MAX_FILES, named_files
from netsandbox.policy.git_config import MAX_CONFIG


def found(home: Path) -> list[str]:
    return [path.removeprefix(f"{home}/") for path in named_files([f"{home}/.gitconfig"], str(home))]


def write(home: Path, **files: str) -> None:
    for name, text in files.items():
        (home / name).write_text(text)


def test_settings_and_what_they_include(tmp_path: Path) -> None:
    one = "[commit]\n template = ~/two\n[include]\n path = one\n"
    write(tmp_path, one=one, two="x", three="", four="[a]\n b = c\n")
    included = '[includeIf "gitdir:~/x/"]\n path = four\n[INCLUDE]\n path = one\n'
    text = f"[core]\n excludesFile = {tmp_path}/three\n{included}"
    (tmp_path / ".gitconfig").write_text(text)
    assert found(tmp_path) == ["three", "four", "one", "two"]


@pytest.mark.parametrize("value", ["", "~", "~other/x", "relative", "~/missing", "~/folder", "/dev/zero", "~/pipe/x"])
def test_what_is_no_plain_file_is_left_out(tmp_path: Path, value: str) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path, relative="x")
    (tmp_path / ".gitconfig").write_text(f"[commit]\n template = {value}\n")
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("[user]\n signingKey = ABC\n[credential]\n helper = store\n", True),
        ("[sendemail]\n smtpPass = x\n", False),
        ("[http]\n proxy = http://me:word@proxy.test\n", False),
        ("[http]\n extraHeader = X: y\n", False),
        ("[remote]\n url = https://example.com:443/a@b\n", True),
        ("a text of another kind\n", False),
        ("#" * (MAX_CONFIG + 1), False),
    ],
)
def test_an_included_file_with_credentials_is_left_out(tmp_path: Path, text: str, is_shown: bool) -> None:
    write(tmp_path, more=text)
    (tmp_path / ".gitconfig").write_text("[include]\n path = more\n")
    assert found(tmp_path) == (["more"] if is_shown else [])


def test_a_link_to_a_secret_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_x").write_text("x")
    (tmp_path / "template").symlink_to(".ssh/id_x")
    (tmp_path / ".gitconfig").write_text("[commit]\n template = ~/template\n")
    assert found(tmp_path) == []


def test_the_number_of_files_has_a_bound(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(MAX_FILES + 10)]
    write(tmp_path, **dict.fromkeys(names, ""))
    (tmp_path / ".gitconfig").write_text("[include]\n" + "".join(f" path = {name}\n" for name in names))
    assert len(found(tmp_path)) == MAX_FILES


@pytest.mark.parametrize(
    ("name", "text", "is_shown"),
    [
        ("id.pub", "ssh-ed25519 AAAAC3Nz me@example.com\n", True),
        ("id.pub", "sk-ssh-ed25519@openssh.com AAAA\n", True),
        ("id.pub", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", False),
        ("id.pub", "ssh-ed25519 AAAA\nsecond line\n", False),
        ("id", "ssh-ed25519 AAAA\n", False),
    ],
)
def test_the_public_key_that_signs_is_shown_and_no_other(tmp_path: Path, name: str, text: str, is_shown: bool) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / name).write_text(text)
    (tmp_path / ".gitconfig").write_text(f"[user]\n signingKey = ~/.ssh/{name}\n")
    assert found(tmp_path) == ([f".ssh/{name}"] if is_shown else [])


def test_a_public_name_for_a_private_key_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("ssh-ed25519 AAAA\n")
    (tmp_path / "x.pub").symlink_to(".ssh/id")
    (tmp_path / ".gitconfig").write_text("[user]\n signingKey = ~/x.pub\n")
    assert found(tmp_path) == []
