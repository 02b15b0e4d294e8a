"""The view of a session with an overlay: nothing that it writes in the folder is the host's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.backends.linux.session_root import HOST, READ_ONLY
from netsandbox.backends.namespaces.overlay_view import OverlayView, SessionOverlay, overlay_folder
from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths
from netsandbox.settings import RunSettings
from tests.rig.views import home  # noqa: F401 (a fixture)


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    app = home / "app"
    for name in (".git/hooks", ".git/objects", ".git/refs", ".vscode", "src"):
        (app / name).mkdir(parents=True)
    (app / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (app / ".git/config").write_text("[core]\n\thooksPath = tools/hooks\n")
    monkeypatch.chdir(app)
    return app


def steps(
    project: Path, rules: FileRules, folder: str = ""
) -> tuple[list[tuple[str, int | None, tuple[str, ...]]], tuple[str, ...]]:
    state = str(project.parent / "state")
    held = KeptOverlays(state).begin("fix", str(project / folder))
    try:
        view = OverlayView(rules, {}, str(project), state).use(held)
        found = list(view.build("true", OwnPaths(), None).steps())
        view.folders.close()
        return found, held.overlay.protected
    finally:
        held.close()


@pytest.mark.parametrize("named", ["", "src", ".vscode", ".git"])
def test_no_writable_mount_in_the_folder_is_of_the_host(project: Path, named: str) -> None:
    written = (PathRule(str(project / named), "--allow-write"),) if named else ()
    found, _ = steps(project, FileRules(allow_write=written))
    inside = [step for step in found if step[2][-1].startswith(str(project))]
    overlay = next(number for number, step in enumerate(inside) if step[0] == "U")
    assert inside[overlay][2] == (f"{HOST}{project}", inside[overlay][2][1], str(project))
    for operation, flags, texts in inside:
        if operation == "V":
            assert flags is not None
            assert flags & READ_ONLY or not texts[0].startswith(HOST), texts
    assert all(step[0] in "VA" for step in inside[:overlay])
    assert {step[2][-1] for step in inside[:overlay]} <= {str(project)}


def test_an_overlay_of_a_folder_leaves_the_rest_to_the_host(project: Path) -> None:
    found, _ = steps(project, FileRules(), "src")
    shown = {step[2][-1]: step for step in found if step[0] in "UV"}
    assert shown[str(project / "src")][0] == "U"
    assert shown[str(project)][1] is not None
    assert not shown[str(project)][1] & READ_ONLY


def test_what_is_protected_is_noted_for_apply(project: Path) -> None:
    missing = (PathRule(str(project / "later"), "--deny-write"),)
    found, protected = steps(project, FileRules(deny_write=missing))
    assert set(protected) >= {".git/hooks", ".vscode", "tools/hooks", "later"}
    assert {f"{project}/.vscode", f"{project}/.git/hooks"} <= {step[2][-1] for step in found if step[0] == "V"}


def test_nothing_is_made_in_the_repository_of_the_host(project: Path) -> None:
    before = sorted(os.walk(project))
    found, _ = steps(project, FileRules())
    assert sorted(os.walk(project)) == before
    assert not any(step[0] == "A" for step in found)  # no copy of git's configuration: it is in the overlay


def test_the_folder_is_the_project_or_one_in_it(project: Path) -> None:
    state = str(project.parent / "state")
    assert overlay_folder("", state) == str(project)
    assert overlay_folder(str(project / "src"), state) == str(project / "src")
    wrong = ((project / "gone", "not a folder"), (project.parent, "not in the project"), ("/usr", "not in"))
    for named, message in wrong:
        with pytest.raises(UsageError, match=message):
            overlay_folder(str(named), state)
    with pytest.raises(UsageError, match="state of netsandbox"):
        overlay_folder("", str(project / "state"))


def test_a_link_out_of_the_project_is_not_in_it(project: Path) -> None:
    (project / "out").symlink_to("/usr")
    with pytest.raises(UsageError, match="not in the project"):
        overlay_folder(str(project / "out"), "/state")


class Names:
    """A reservation that gives names."""

    def __init__(self) -> None:
        self.chosen: str | None = None

    def take_name(self, name: str) -> None:
        self.chosen = name

    def default_name(self, avoided: object) -> str:
        assert callable(avoided)
        return self.chosen or ("app-2" if avoided("app") else "app")


def test_a_default_name_is_never_that_of_kept_changes(project: Path) -> None:
    settings, state = RunSettings(files=FileRules(overlay="")), str(project.parent / "state")
    first = SessionOverlay(settings, state, Names())  # type: ignore[arg-type]
    Path(first.held.overlay.data, "new").touch()
    reader, writer = os.pipe()
    first.close(writer)
    assert b"1 change of ~/app kept; see `netsandbox changes app`" in os.read(reader, 4096)
    second = SessionOverlay(settings, state, Names())  # type: ignore[arg-type]
    assert second.held.overlay.name == "app-2"
    second.close(writer)
    assert KeptOverlays(state).names() == ["app"]  # the second changed nothing
    os.close(reader)
    os.close(writer)
