"""INV-12: the table of defaults in docs/files.md is what the code of both systems does."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from netsandbox.backends.seatbelt.profile.mac_paths import RUN_BY_GIT, resolved
from netsandbox.backends.seatbelt.profile.profile_settings import OwnPaths as MacPaths
from netsandbox.backends.seatbelt.profile.profile_settings import ProfileSettings
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.policy.file_rules import FileRules, PathRule, is_within
from netsandbox.policy.shown_files import OBEYED
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import file

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
STATE = "~/.local/state/netsandbox"
CACHE = "~/.npm"
MAC_HOME = "/Users/me"
NOTHING = "\u2013"
ABSENT = ("PROJECT/.idea/workspace.xml", "PROJECT/.mcp.json")


def rows() -> list[tuple[str, str, str]]:
    """Each path of the table, with its access on Linux and on macOS."""
    table = PAGE.read_text("utf-8").partition("| what | paths | Linux | macOS |")[2].partition("\n\n")[0]
    found = []
    for line in table.splitlines()[2:]:
        _, _, paths, linux, mac, _ = (cell.strip() for cell in line.split("|"))
        found += [(path, linux.strip("`"), mac.strip("`")) for path in re.findall(r"`([^`]+)`", paths)]
    return found


ROWS = rows()


def placed(path: str, home: str) -> str:
    return path.replace("PROJECT", "~/app", 1).replace("~", home, 1)


def test_the_table_is_read() -> None:
    assert len(ROWS) > 35
    assert {access for _, *both in ROWS for access in both} == {
        *("write", "read", "held", "copy", "private", "empty", NOTHING)
    }


@pytest.fixture(scope="module")
def mac() -> Profile:
    app = f"{MAC_HOME}/app"
    return load(
        session_profile(
            ProfileSettings(
                app,
                MAC_HOME,
                projects=(app,),
                temporary=("/private/var/folders/ab/T/ns-1", "/private/tmp", "/private/var/tmp"),
                write=(placed(CACHE, MAC_HOME),),
                kept=tuple((app, f".git/{name}") for name in RUN_BY_GIT),
                own=MacPaths(hidden=(placed(STATE, MAC_HOME),)),
            )
        )
    )


@pytest.mark.parametrize(("path", "access"), [(path, access) for path, _, access in ROWS])
def test_macos_does_what_the_table_says(mac: Profile, path: str, access: str) -> None:
    real = resolved(placed(path, MAC_HOME))
    reads, writes = file("file-read-data", real), [file(f"file-write-{how}", real) for how in ("data", "create")]
    assert (allowed_under_all if access in ("read", "write") else denied_under_all)(mac, reads)
    for request in writes:
        assert (allowed_under_all if access == "write" else denied_under_all)(mac, request)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that has every file of the table."""
    folder = Path(os.path.realpath(tmp_path)) / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for path, _, _ in ROWS:
        if path.startswith(("~", "PROJECT")) and path not in ABSENT:
            made = Path(placed(path, str(folder)))
            made.parent.mkdir(parents=True, exist_ok=True)
            made.touch()
    (folder / "app" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="looks the view of Linux up on this machine")
def test_linux_does_what_the_table_says(home: Path) -> None:
    from netsandbox.backends.linux.project_view import ProjectView
    from netsandbox.runtime.protection import OwnPaths

    state = placed(STATE, str(home))
    rules = FileRules(caches=(PathRule(placed(CACHE, str(home)), "node.toml:1"),))
    view = ProjectView(rules, {b"PATH": b"/usr/bin:/bin"}, str(home / "app"), state)
    root = view.build("true", OwnPaths(hidden=(state,)), None)

    def access(path: str) -> str:
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        entry = root.entries.get(real)
        if entry is None or entry.kind == "folder":
            held = root.holder(real)
            entry = held[1] if held is not None else None
        if entry is None or "size=4k" in entry.source:
            return NOTHING
        if entry.source == view.folders.empty_file:
            return "empty"
        if entry.kind in ("cache", "cover"):
            return "copy"
        if entry.kind != "show" or (entry.upper == "ours" and entry.writable):
            return "private"
        is_held = any(is_within(path, each) for each in view.missing)
        return "held" if is_held else "write" if entry.writable else "read"

    found = [(path, access(placed(path, str(home)))) for path, _, _ in ROWS]
    view.folders.close()
    assert found == [(path, linux) for path, linux, _ in ROWS]


def test_the_table_of_protected_names_is_that_of_the_code() -> None:
    table = PAGE.read_text("utf-8").partition("| who obeys them | names |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()[2:]]
    assert {who: tuple(re.findall(r"`([^`]+)`", names)) for who, names in rows} == OBEYED
