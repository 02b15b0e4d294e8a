"""A session with `--overlay`: it sees its project, or a folder of it, and changes a copy (`kept_overlays`).

What programs of the host obey stays read-only inside as without an overlay, with one exception: git's configuration is
the overlay's copy, since the host does not see it before `apply`, which merges it by key.
"""

from __future__ import annotations

import os

from netsandbox.backends.linux.git_files import GitFiles, config_at
from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.backends.linux.session_root import HOST, PROJECT, PROTECTED, SessionRoot
from netsandbox.backends.namespaces.overlay_files import count_if_many, scan
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import home, short, working_folder
from netsandbox.policy.file_rules import PROJECT as PROJECT_MODE
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.overlay_changes import folded
from netsandbox.runtime.inherited import write_notice
from netsandbox.runtime.project import all_repositories, find_project
from netsandbox.text import plural, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox_portmap.reservation import Reservation

    from netsandbox.backends.linux.kept_overlays import HeldOverlay
    from netsandbox.policy.file_rules import FileRules
    from netsandbox.policy.git_config import Line
    from netsandbox.settings import RunSettings


class SessionOverlay:
    """The overlay of one session, held until it ends. `mount`: its folder, and options for a session without a root of
    its own."""

    def __init__(self, settings: RunSettings, state: str, reservation: Reservation) -> None:
        kept = KeptOverlays(state)
        folder = overlay_folder(settings.files.overlay or "", os.path.realpath(state))
        if settings.name is not None:
            reservation.take_name(settings.name)
        self.held: HeldOverlay = kept.begin(reservation.default_name(kept.has), folder)
        self.mount = (folder, self.held.overlay.options())
        if settings.files.mode != PROJECT_MODE:  # nothing is read-only inside, and `apply` protects the same names
            self.held.protect(obeyed_by_git(folder, state))

    def project_view(
        self, rules: FileRules, environment: Mapping[bytes, bytes], working: str | None, state: str
    ) -> ProjectView:
        return OverlayView(rules, environment, working, state).use(self.held)

    def close(self, stderr: int) -> None:
        """Say what is kept; an overlay without changes is removed."""
        overlay = self.held.overlay
        try:
            many = count_if_many(overlay.data)
            count = many or len(folded(scan(overlay).changes))
            if count:
                amount = f"{'more than ' if many else ''}{plural(count, 'change')}"
                advice = f"see `netsandbox changes {overlay.name}`; `apply` brings them out, `discard` removes them"
                write_notice(stderr, f"{amount} of {single_line(short(overlay.folder))} kept; {advice}")
            else:
                self.held.remove()
        except NetsandboxError as error:
            write_notice(stderr, f"changes are kept, but could not be counted: {single_line(str(error))}")
        finally:
            self.held.close()


def overlay_folder(named: str, state: str) -> str:
    """The real path of the folder; *named* is that of the option, or empty."""
    working = working_folder()
    project = find_project(os.path.realpath(working), os.path.realpath(home())) if working is not None else None
    if project is None:
        raise UsageError("--overlay: the working folder is not a project; enter the folder of one, or leave it out")
    folder = os.path.realpath(named) if named else project.folder
    if not os.path.isdir(folder):
        raise UsageError(f"--overlay={named!a} is not a folder; make it first, or name another")
    if not is_within(folder, project.folder):
        raise UsageError(
            f"--overlay={named!a} is not in the project {short(project.folder)!a}; enter its project, or leave it out"
        )
    if is_within(state, folder):
        raise UsageError(
            f"--overlay: {short(folder)!a} holds the state of netsandbox; leave it out, or set XDG_STATE_HOME"
        )
    return folder


def obeyed_by_git(folder: str, state: str) -> list[str]:
    """The paths in *folder* that its repositories and the user's configuration have git run or read."""
    root = SessionRoot()
    root.show(folder, writable=True, rank=PROJECT)
    root.overlay = folder, ""
    folders = PrivateFolders(state, folder)
    try:
        git = OverlayGit(root, folders, ())
        git.protect(all_repositories(folder, folders.repositories).found)
    finally:
        folders.close()
    return [*_protected(root), *git.absent]


def _protected(root: SessionRoot) -> list[str]:
    return [path for path, entry in root.entries.items() if entry.rank == PROTECTED]


class OverlayView(ProjectView):
    """The view of a project, of which the overlay's folder is a copy."""

    held: HeldOverlay

    def use(self, held: HeldOverlay) -> OverlayView:
        self.held = held
        return self

    def _project(self) -> None:
        super()._project()
        folder = self.held.overlay.folder
        self.root.show(folder, writable=True, rank=PROJECT)
        self.root.overlay = folder, self.held.overlay.options(HOST)
        if self.project is not None and self.project.git is not None:  # outside of the overlay
            self.root.show(self.project.git, rank=PROJECT)

    def _git_type(self) -> type[GitFiles]:
        return OverlayGit

    def _rules(self) -> None:
        super()._rules()
        self.held.protect([*_protected(self.root), *self.forbidden, *(self.git.absent if self.git is not None else ())])


class OverlayGit(GitFiles):
    """Protects as ever, but makes and copies nothing in the folder of the overlay."""

    def _private(self, path: str, folder: int) -> list[Line]:
        return config_at(path) if self.is_copied(path) else super()._private(path, folder)

    def _make(self, path: str, content: bytes | None, folder: int) -> None:
        if not self.is_copied(path):
            super()._make(path, content, folder)
