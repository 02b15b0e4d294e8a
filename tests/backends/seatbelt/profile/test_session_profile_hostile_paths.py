"""Folders with odd names, at odd places: a clear error or a safe profile, and never a command that runs unconfined."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from netsandbox.cli.run import main
from netsandbox.errors import UsageError
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import connect, file

DRY = ["--dry-run", "--backend", "seatbelt", "--", "true"]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Not below /tmp, which is opened for every session."""
    with TemporaryDirectory(dir="/var/tmp") as name:
        monkeypatch.setenv("HOME", name)
        monkeypatch.setenv("TMPDIR", "/var/folders/T")
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.chdir(name)
        yield Path(name)
        os.chdir("/")


def at(folder: Path | bytes) -> list[str]:
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    return DRY


@pytest.mark.attack(139)
@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "a)b", "a;b", "a b", "caf\u00e9", '"))(allow default)(deny file* (literal "']
)
def test_a_name_that_can_be_written_is_one_folder_of_the_profile(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(at(home / name)) == 0
    judged = load(capsys.readouterr().out)
    judged.checked()
    assert allowed_under_all(judged, file("file-write-create", str(home / name / "x")))
    assert denied_under_all(judged, file("file-write-create", str(home / "x")))
    assert denied_under_all(judged, connect("203.0.113.7", 443))


@pytest.mark.attack(139)
@pytest.mark.parametrize("name", [b"a\nb", b"a\rb", b"a\x01b", b"a\x7fb", b"a\xffb", "a\u2028b".encode(), b"a\x1b[2Jb"])
def test_a_name_that_cannot_be_written_is_refused_in_printable_words(
    home: Path, name: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="cannot stand in a Seatbelt profile; rename it") as caught:
        main(at(os.fsencode(home) + b"/" + name))
    assert str(caught.value).isprintable()
    assert str(caught.value).isascii()
    assert capsys.readouterr().out == ""


@pytest.mark.attack(151)
@pytest.mark.parametrize(
    ("folder", "says"),
    [
        (".ssh", "which stays closed; use another folder"),
        (".aws/x", "which stays closed; use another folder"),
        (".local/state/netsandbox/sessions", "which stays closed; use another folder"),
        ("Library/Keychains", "which stays closed; use another folder"),
    ],
)
def test_a_working_directory_that_cannot_be_opened_is_an_error(
    home: Path, folder: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=says):
        main(at(home / folder))
    assert capsys.readouterr().out == ""


@pytest.mark.attack(151)
@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_that_holds_the_home_is_no_project(
    home: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session there opens nothing of it, and the mode that would open the working folder is an error."""
    (home / "notes").touch()
    assert main(at(home / folder)) == 0
    judged = load(capsys.readouterr().out)
    for name in ("notes", "new", "src/app/x"):
        assert denied_under_all(judged, file("file-write-create", str(home / name)))
        assert denied_under_all(judged, file("file-read-data", str(home / name)))
    assert allowed_under_all(judged, file("file-read-metadata", str((home / folder).resolve())))
    with pytest.raises(UsageError, match="holds the whole home directory"):
        main(["--files", "readable", *DRY])


@pytest.mark.attack(146)
def test_a_link_to_a_secret_is_no_way_around(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / "project").symlink_to(".ssh")
    with pytest.raises(UsageError, match="which stays closed"):
        main(at(home / "project"))


def test_a_folder_that_holds_our_state_is_opened_without_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".local").mkdir(exist_ok=True)
    (home / "app").mkdir()
    assert main(["--allow-write", str(home / ".local"), *at(home / "app")]) == 0
    judged = load(capsys.readouterr().out)
    assert allowed_under_all(judged, file("file-write-create", str(home / ".local/x")))
    assert denied_under_all(judged, file("file-read-data", str(home / ".local/state/netsandbox/x")))
    assert denied_under_all(judged, file("file-write-unlink", str(home / ".local/state")))


@pytest.mark.parametrize("temporary", ["/", "~", "."])
def test_a_temporary_folder_that_is_everything_is_an_error(
    home: Path, temporary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(home) if temporary == "~" else temporary)
    project = home / "project"
    command = ["--share-tmp", *at(project)]
    if temporary == ".":  # the working directory itself, which is fine
        assert main(command) == 0
        return
    with pytest.raises(UsageError, match=r"the temporary folder .* holds the whole home directory"):
        main(command)


@pytest.mark.attack(145)
def test_a_folder_named_like_another_opens_only_itself(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(at(home / "app")) == 0
    judged = load(capsys.readouterr().out)
    assert denied_under_all(judged, file("file-write-create", str(home / "app-evil/x")))
    assert denied_under_all(judged, file("file-write-create", f"{home}/app/../x"))
