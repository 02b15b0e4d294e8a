"""What a session in the mode `project` sees, looked up on this host before the command runs.

The rules are in `policy.shown_files` and docs/files.md. Everything is resolved here; a rule that cannot be enforced is
an error, and no session starts half closed (INV-1).
"""

from __future__ import annotations

import os
import time

from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.backends.linux.session_root import (
    DEFAULT,
    DENIED,
    NAMED,
    OURS,
    PROJECT,
    PROTECTED,
    SessionRoot,
)
from netsandbox.errors import UsageError
from netsandbox.paths import home, short
from netsandbox.policy import shown_files
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.home_paths import OF_LINUX, touches
from netsandbox.runtime.project import Project, Repositories, all_repositories, base_of, find_project
from netsandbox.runtime.real_paths import RealPaths, links_out_of, names_in
from netsandbox.runtime.written_folders import is_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from netsandbox.backends.linux.agent_files import AgentFile
    from netsandbox.backends.linux.git_files import GitFiles
    from netsandbox.backends.linux.named_paths import NamedPaths
    from netsandbox.policy.file_rules import FileRules
    from netsandbox.runtime.protection import OwnPaths

SHELL_FILES = os.path.normpath(f"{os.path.abspath(__file__)}/../../../shells/files")  # what our shells begin with
MAX_PROGRAM_LINKS = 512  # symbolic links in folders of PATH that are followed


class ProjectView:
    """Builds the root. `project` is None if the working folder is the home, or holds it."""

    private_folders: type[PrivateFolders] = PrivateFolders

    def __init__(self, rules: FileRules, environment: Mapping[bytes, bytes], working: str | None, state: str) -> None:
        self.rules = rules
        self.environment = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
        self.paths = RealPaths()
        self.home = self.paths.reached(home())
        self.working = self.paths.reached(working) if working is not None else None
        self.project: Project | None = find_project(self.working, self.home) if self.working else None
        own = self.project.folder if self.project else self.home
        self.folders = self.private_folders(state, own, fresh=rules.fresh_home)
        self._projects: dict[str, str | None] = {}
        self.root = SessionRoot()
        self.written = self.writable_folders()
        self.sockets: tuple[str, ...] = ()
        self.parts: tuple[str, ...] = (SHELL_FILES,)  # of netsandbox, that the command reads
        self.agents: list[AgentFile] = []
        self.expected: list[tuple[str, str]] = []  # files that the host lacks, and where a session makes them
        self.forbidden: list[str] = []  # paths of `deny_write` that do not exist
        self.missing: dict[str, str] = {}  # protected names and those of `forbidden`, each with a folder around it
        self.absent: list[str] = []
        self.originals: list[str] = []  # folders that are shown, and of which the session changes copies
        self.settings: dict[str, str] = {}  # of package managers, and the file of ours that is shown in each place
        self.lines: list[str] = []  # for the user, before the command runs
        self.hidden: list[str] = []  # real paths in folders that are shown
        self.opened: list[str] = []  # real paths in the project that the user opened for writing
        self.repositories = Repositories()
        self.since = time.time() - 1  # the clock of files is a little behind
        self.git: GitFiles | None = None

    def build(
        self, program: str, own: OwnPaths, terminal: str | None, covers: tuple[tuple[str, str], ...] = ()
    ) -> SessionRoot:
        """*program* is the command's first word; *terminal* the device that its descriptors are. In each pair of
        *covers*, the first file appears at the second path."""
        self._system()
        self._devices(terminal)
        self._home()
        self._toolchains(program)
        self._tool_homes()
        self._git_settings()
        self._project()
        self._repositories()
        self._rules()
        self._tool_settings()
        self._sockets()
        self._own(own)
        self._covers(covers)
        self._missing()
        self._note()
        self.folders.clear_way(self.home, self.root)
        return self.root

    # The host

    def _system(self) -> None:
        root = self.root
        root.fresh("/proc", "", "proc")
        root.fresh("/run")
        for path in shown_files.TEMPORARY:
            if self.rules.share_tmp and path != "/dev/shm":  # noqa: S108
                self.show(path, writable=True)
                self.folders.remember_written(path)
            else:
                root.fresh(path, "mode=1777")
        for path in shown_files.LINUX_SYSTEM:
            self.show(path)
        for path in ("/var/run", "/var/lock"):
            root.link(path.replace("/var", "/run") if path == "/var/lock" else "/run", path)
        root.folder("/run/lock", "1777")
        named = [rule.path for rule in (*self.rules.allow_read, *self.rules.allow_write)]
        secrets = [
            path
            for path in shown_files.SYSTEM_SECRETS
            if os.access(path, os.R_OK) and not any(is_within(path, each) for each in named)
        ]
        if secrets:
            root.shield("/etc", self.folders.empty_folder)
        for path in secrets:
            self.cover(path)
        runtime = self.environment.get("XDG_RUNTIME_DIR", "")
        if is_within(os.path.normpath(runtime), "/run") and runtime != "/run":
            root.fresh(os.path.normpath(runtime), "mode=0700")

    def cover(self, path: str) -> None:
        """Hide a path in a folder that is shown: a folder appears empty, a file cannot be opened."""
        real = self.paths.reached(path)
        self.hidden.append(real)
        if os.path.isdir(real):
            self.root.fresh(real, "mode=0555,size=4k", rank=DENIED)
        else:
            self.root.place(self.folders.closed_file, real, rank=DENIED)

    def _devices(self, terminal: str | None) -> None:
        root = self.root
        root.fresh("/dev")
        for path in (*(f"/dev/{name}" for name in shown_files.DEVICES), *self.rules.devices):
            root.show(path, writable=True)
        for target, path in shown_files.DEVICE_LINKS:
            root.link(target, path)
        root.fresh("/dev/pts", "newinstance,ptmxmode=0666,mode=0620", "devpts")
        root.fresh("/dev/mqueue", "mode=1777")
        if terminal is not None:
            root.place(terminal, "/dev/console", writable=True)

    # The home

    def _home(self) -> None:
        self.root.place(self.folders.home, self.home, writable=True)
        self.links_to(home())
        empty = self.folders.empty_file
        for name in shown_files.SHELL_FILES:
            self.root.place(empty, f"{self.home}/{name}", rank=PROTECTED)
        for name in shown_files.SHELL_FOLDERS:
            self.root.place(self.folders.empty_folder, f"{self.home}/{name}", rank=PROTECTED)
        held = (self.home, self.project.folder if self.project else self.home)
        for name in shown_files.MOVED_HOMES:
            path = self.environment.get(name, "").partition(":")[0]  # GOPATH is a list
            if path.startswith("/"):
                real = self.paths.reached(path)
                if not self.is_too_much(real) and not any(is_within(real, folder) for folder in held):
                    self.root.place(self.folders.moved(name), real, writable=True, rank=DEFAULT)

    def _toolchains(self, program: str) -> None:
        there = set(names_in(self.home))
        for name in (*shown_files.TOOLCHAINS, *shown_files.SETTINGS):
            if name.partition("/")[0] in there:
                self._show_tool(f"{self.home}/{name}")
        for folder, prefix in shown_files.TOOLCHAIN_FOLDERS:
            for name in names_in(f"{self.home}/{folder}"):
                if name.startswith(prefix):
                    self._show_tool(f"{self.home}/{folder}/{name}")
        for path in shown_files.moved_toolchains(self.environment):
            self._show_unless_secret(os.path.normpath(path))
        links = 0
        for folder in dict.fromkeys(self.environment.get("PATH", "").split(":")):
            real = self.paths.real(folder) if folder.startswith("/") else None
            if real is None or self._is_system(real) or self.is_too_much(real):
                continue
            tree = shown_files.prefix_of(os.path.normpath(folder), self.home)
            self._show_unless_secret(folder if self.is_too_much(os.path.realpath(tree)) else tree)
            for entry in links_out_of(folder):
                links += 1
                if links <= MAX_PROGRAM_LINKS and _is_program(entry):
                    self._show_program(entry)
        found = self._which(program)
        if found is not None:
            self._show_program(found)

    def _tool_homes(self) -> None:
        """Folders of the host's tools that their manager writes at each call: the session changes a copy."""
        moved = (self.environment.get(name, "") for name in shown_files.TOOL_HOME_VARIABLES)
        for path in (*(f"{self.home}/{name}" for name in shown_files.TOOL_HOMES), *moved):
            real = self.paths.real(path) if path.startswith("/") else None
            shown = self.root.shown_entry(real) if real is not None else None
            if real is not None and shown is not None and os.path.isdir(real) and not self.is_too_much(real):
                self.root.cache(real, self.folders.scratch(real), real)
                self.originals.append(real)

    def _git_settings(self) -> None:
        """What the user's own git configuration names, such as the template of commit messages."""
        files = [f"{self.home}/{name}" for name in shown_files.GIT_CONFIGURATIONS]
        shown = [file for file in files if os.path.isfile(file) and self.root.shown_entry(self.paths.reached(file))]
        if not shown:
            return
        from netsandbox.backends.linux.git_settings import named_files

        for path in named_files(shown, self.home):
            self._show_tool(path)
            if is_within(path, self.home) and path in self.root.entries and self.folders.is_kept:
                self.folders.clean_later({path[len(self.home) + 1 :]: ""})

    def _tool_settings(self) -> None:
        """The user's settings of package managers hold inside too, without the credentials in them."""
        config = self.environment.get("XDG_CONFIG_HOME", "")
        there = set(names_in(self.home))
        for name in shown_files.TOOL_SETTINGS:
            path = f"{self.home}/{name}"
            if name.startswith(".config/") and config.startswith("/"):
                path = f"{self.paths.reached(config)}{name[len('.config') :]}"
            elif name.partition("/")[0] not in there:
                continue
            if os.path.isfile(path) and self.root.entry_of(path) is not None:
                self._show_settings(path)

    def _show_settings(self, path: str) -> None:
        from netsandbox.backends.linux.settings_copies import settings_copy

        real = self.paths.reached(path)
        denied = (self.paths.reached(rule.path) for rule in self.rules.deny_read)
        if self.root.shown_entry(real) is not None or any(is_within(real, each) for each in denied):
            return
        if self._made_inside(path, real):
            return
        try:
            copy = settings_copy(real, path, self.folders.settings)
        except (OSError, ValueError) as error:
            self.lines.append(f"{short(path)} does not hold in this session: {error}; --allow-read shows it as it is")
            return
        self.settings[path] = copy
        self.root.place(copy, path, rank=DEFAULT)
        if is_within(path, self.home) and self.folders.is_kept:
            self.folders.clean_later({path[len(self.home) + 1 :]: ""})

    def _show_program(self, path: str) -> None:
        """Show a program, its links, and the folder tree that it belongs to. One of the system may be called by its
        name in a virtual environment, which it reads then."""
        if (real := self.paths.real(path)) is None:
            return
        if not self._is_system(real):
            if self._made_inside(path, real):
                return
            tree = shown_files.packages_of(real) or shown_files.prefix_of(os.path.dirname(real), self.home)
            self._show_unless_secret(real if self.is_too_much(tree) else tree)
        elif os.path.isfile(f"{(tree := os.path.dirname(os.path.dirname(path)))}/pyvenv.cfg"):
            self._show_unless_secret(tree)
        self.links_to(path)

    def _show_unless_secret(self, path: str) -> None:
        """Show a toolchain that a variable or PATH names, unless it holds a secret or lies in one."""
        real = self.paths.real(path)
        if real is None or self.root.shown_entry(real) is not None:
            self.links_to(path)
            return
        if self.is_secret(real):
            return
        self._show_tool(path)
        base = base_of(real) if real in self.root.entries else None
        if base is None or self._is_system(base) or self.is_too_much(base) or self.is_secret(base):
            return
        if not self._leads_out(f"{real}/pyvenv.cfg", base):
            self.show(base)

    def is_secret(self, real: str) -> bool:
        """Whether a real path holds a secret of the home, or lies in one."""
        return touches(real, self.home, _SECRETS)

    def _show_tool(self, path: str) -> None:
        """Show a toolchain read-only, unless that would show the home, the project or secrets."""
        real = self.paths.real(path)
        if real is None or self.is_too_much(real) or self._made_inside(path, real):
            return
        if real in self.root.entries:
            self.links_to(path)
            return
        self.show(path)

    def _made_inside(self, path: str, real: str) -> bool:
        """Whether an earlier session may have chosen what is shown: it wrote the path, or a link on the way."""
        return f"{real}/".startswith(self.written) or bool(self.links_of_sessions(path, real))

    def links_of_sessions(self, path: str, real: str) -> list[str]:
        """The links on the way from *path* to *real* that a session may have made: those in what this one writes, and
        those that lead out of what another one could write."""
        links = [link for link, _ in self.paths.links(path)]
        return [link for link in links if f"{link}/".startswith(self.written) or self._leads_out(link, real)]

    def _leads_out(self, path: str, real: str) -> bool:
        """Whether *path* lies in a folder that a session could write, and *real* does not."""
        folder = self._project_of(os.path.dirname(path))
        return folder is not None and not is_within(real, folder)

    def _project_of(self, folder: str) -> str | None:
        """The nearest one; a session in the home itself has none."""
        if folder in ("/", self.home):
            return None
        if folder not in self._projects:
            self._projects[folder] = folder if is_written(folder) else self._project_of(os.path.dirname(folder))
        return self._projects[folder]

    def writable_folders(self) -> tuple[str, ...]:
        """The folders of the host that sessions like this one write, each with a slash at its end."""
        projects = (self.project.folder, self.project.git) if self.project is not None else ()
        named = (self.paths.real(rule.path) for rule in self.rules.allow_write)
        return tuple(f"{path}/" for path in (*projects, *named) if path is not None)

    def is_too_much(self, path: str) -> bool:
        return (
            path == "/"
            or any(is_within(each, path) for each in (self.home, self.working or self.home, self.folders.state))
            or path in shown_files.SHARED_FOLDERS
            or is_within(path, "/dev")
        )

    def _is_system(self, path: str) -> bool:
        return f"{path}/".startswith(_SYSTEM)  # its folders show it already

    def _which(self, program: str) -> str | None:
        if "/" in program:
            return os.path.abspath(program)
        for folder in self.environment.get("PATH", "").split(":"):
            path = f"{folder}/{program}"
            if folder.startswith("/") and os.access(path, os.X_OK):
                return path
        return None

    # The project and the user's rules

    def _project(self) -> None:
        if self.project is None:
            return
        self.show(self.project.folder, writable=True, rank=PROJECT)
        self.folders.remember_written(self.project.folder)
        if self.project.git is not None:
            self.show(self.project.git, writable=True, rank=PROJECT)
            self.folders.remember_written(self.project.git)
        self._break_links(self.project)
        for folder in self._obeyed_folders():
            for path in _below(folder, shown_files.PROTECTED):
                if os.path.lexists(path):
                    self._protect(path)

    def _break_links(self, project: Project) -> None:
        """Give a copy of its own to each file of the project that has another name outside."""
        note = self.folders.links_to_break if self.rules.overlay is None else None  # an overlay copies what is written
        if note is not None:
            from netsandbox.backends.linux.linked_files import own_copies

            self.lines += own_copies(filter(None, (project.folder, project.git)), note)

    def _protect(self, path: str) -> None:
        """Keep a file or folder of the project as it is, with the links that lead to it."""
        real = self.paths.real(path)
        if real != path and os.path.lexists(path):
            self._hold_links(path)
        shown = self.root.shown_entry(real) if real is not None else None
        if real is None or shown is None or not shown.writable or is_within(self.working or real, real):
            return
        self.root.hold(real)

    def _missing(self) -> None:
        """A mount needs something to cover, so a name that does not exist cannot be held. What the session makes there
        is taken away when it ends, unless a rule names it (`held_names`)."""
        named = [os.path.realpath(rule.path) for rule in self.rules.allow_write]
        for folder in self._obeyed_folders():
            for path in _below(folder, shown_files.PROTECTED):
                if not os.path.exists(path) and not any(is_within(each, path) for each in named):
                    above = os.path.dirname(path)
                    is_plain = not os.path.lexists(path) and (above == folder or not os.path.lexists(above))
                    self._add_missing(*((path,) if is_plain else (os.path.realpath(path), path)))
        for path in (f"{self.home}/{name}" for name in (*shown_files.SHELL_FILES, *shown_files.SHELL_FOLDERS)):
            held = self.root.holder(path)  # a rule may show the host's ~/.config
            if held is not None and not held[1].passes and not os.path.lexists(path):
                self.root.entries.pop(path, None)
                self._add_missing(path)
        absent = self.git.absent if self.git is not None else ()  # what git's configuration names, as hooks
        for path in (*self.forbidden, *(path for path in absent if "/.git/" not in path)):
            self._add_missing(os.path.realpath(path), path)

    def _note(self) -> None:
        """What another process needs to know if our own is killed before the session is settled (`unsettled`)."""
        project, git = self.project, self.git
        if project is None and not self.missing:
            return
        self.folders.note_unsettled(
            (project.folder if project else "", (project.git or "") if project else "", str(self.since)),
            (text for pair in self.missing.items() for text in pair),
            self.repositories.found,
            (repr(git.entries.get(path)) for path in self.repositories.found) if git is not None else (),
            self.opened,
            (text for held in git.held.items() for text in (held[0], _identity(held[1]))) if git is not None else (),
            (os.path.dirname(each.path) for each in git.copied) if git is not None else (),
            git.closed if git is not None else (),
            git.relative_hooks if git is not None else (),
        )

    def _add_missing(self, *places: str) -> None:
        """A path, and where a link leads from it: what the session can make."""
        for path in places:
            held = self.root.holder(path)
            shown = self.root.shown_entry(path)
            if held is not None and shown is not None and shown.writable and not os.path.lexists(path):
                top = (
                    self.project.folder
                    if self.project is not None and is_within(path, self.project.folder)
                    else held[0]
                )
                self.missing[path] = top

    def _obeyed_folders(self) -> tuple[str, ...]:
        if self.project is None:
            return ()
        return tuple(dict.fromkeys((self.project.folder, self.working or self.project.folder)))

    def _repositories(self) -> None:
        """Protect the repositories of the project; `project_results` compares them at the end."""
        if self.project is None:
            return
        folder = self.project.folder
        self.absent = [name for name in shown_files.REPORTED if not os.path.lexists(f"{folder}/{name}")]
        self.repositories = all_repositories(folder, self.folders.repositories)
        named = map(os.path.realpath, [rule.path for rule in self.rules.allow_write])
        self.opened = [path for path in named if not is_within(folder, path)]
        if self.repositories.found:
            denied = [os.path.realpath(rule.path) for rule in (*self.rules.deny_read, *self.rules.deny_write)]
            self.git = self._git_type()(self.root, self.folders, self.opened, denied)
            self.git.protect(self.repositories.found)

    def _git_type(self) -> type[GitFiles]:
        from netsandbox.backends.linux.git_files import GitFiles

        return GitFiles

    def _rules(self) -> None:
        if self.rules.names_paths:  # most sessions have no rules of their own, and load no module for them
            self._named_paths().apply()

    def _named_paths(self) -> NamedPaths:
        from netsandbox.backends.linux.named_paths import NamedPaths

        return NamedPaths(self)

    def _sockets(self) -> None:
        """Show the Unix sockets that a rule opens. One that its server makes later does not appear."""
        for path in self.sockets:
            if path.startswith("/") and "\0" not in path and os.path.exists(path):
                self.show(os.path.normpath(path), rank=NAMED)

    # netsandbox itself

    def _own(self, own: OwnPaths) -> None:
        for part in self.parts:
            real = self.paths.reached(part)
            if self.root.shown_entry(real) is None:
                self.root.show(real, rank=OURS)
            self.links_to(part)
        for path in own.read_only:
            real = self.paths.reached(path)
            if real != path:
                self._hold_links(path)
            shown = self.root.shown_entry(real)
            if shown is not None and (shown.writable or self.root.entries.get(real) is not None):
                self.root.hold(real, OURS)
            self._check_not_named(real)
            self.root.close(real)  # with what a rule or a project opened below
        for path in own.hidden:
            real = self.paths.reached(path)
            self.root.remove_below(real)
            if self.root.shown_entry(real) is not None and os.path.isdir(real):
                self.root.pin_above(real)
                self.root.fresh(real, "mode=0555,size=4k", rank=OURS)

    def _check_not_named(self, ours: str) -> None:
        for path, entry in self.root.entries.items():
            if entry.writable and entry.rank == NAMED and is_within(path, ours):
                advice = "leave it out, or install netsandbox in an environment of its own, as pipx does"
                raise UsageError(f"{path!a} is part of netsandbox, so no rule opens it for writing; {advice}")

    def _hold_links(self, path: str) -> None:
        from netsandbox.backends.linux.held_links import hold_links

        hold_links(self.root, path, self._is_replaceable)

    def _is_replaceable(self, link: str) -> bool:
        shown = self.root.shown_entry(link)
        return shown is not None and shown.writable and link not in self.root.entries

    def _covers(self, covers: tuple[tuple[str, str], ...]) -> None:
        for ours, path in covers:
            real = self.paths.reached(path)
            is_system = is_within(path, "/etc")  # resolv.conf may be a link into /run
            if is_system or self.root.shown_entry(real) is not None:
                self.root.place(self.paths.reached(ours), real)  # a mount follows no link

    # Showing

    def show(self, path: str, *, writable: bool = False, rank: int = 0) -> None:
        """Show *path* where it really is, and the links that lead there."""
        real = self.paths.real(path)
        if real is not None:
            self.root.show(real, writable=writable, rank=rank)
            self.links_to(path)

    def links_to(self, path: str) -> None:
        """Make the links on the way to *path* in the session too, so that the name works as on the host."""
        for link, target in self.paths.links(path):
            self.root.link(target, link)


_SECRETS = tuple(f"{secret}/" for secret in OF_LINUX)
_SYSTEM = tuple(f"{folder}/" for folder in shown_files.LINUX_SYSTEM)


def _identity(descriptor: int) -> str:
    state = os.fstat(descriptor)
    return f"{state.st_dev}:{state.st_ino}"


def _below(folder: str, names: Iterable[str]) -> list[str]:
    return [f"{folder}/{name}" for name in names]


def _is_program(path: str) -> bool:
    """A link on PATH may lead to anything; a folder or a text shows nothing."""
    return os.path.isfile(path) and os.access(path, os.X_OK)
