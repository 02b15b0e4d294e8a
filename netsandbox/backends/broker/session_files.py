"""What a session of this backend may read and write, as Landlock rights by path.

The command runs among the host's mounts. The rules are those of the namespaces backend; where that one puts something
else in the place of a path, this one has another path and a variable that names it, or says what it cannot keep:

| namespaces | here |
|---|---|
| the private home at `~` | the private home at its own path, HOME, and links in it to what is shown |
| private /tmp, /var/tmp, $XDG_RUNTIME_DIR | a private folder, and variables; /tmp itself is closed |
| an overlay over a cache | the private cache alone, which begins empty |
| a private /dev/shm | the host's, since many programs need it |
| private terminals in /dev/pts | the session's own terminal; new ones with --allow-device /dev/ptmx |
| a /proc with the session's processes | the host's, only to be read; Landlock guards memory and variables of others |

`docs/files.md` has the rest.
"""

from __future__ import annotations

import fcntl
import os
import stat

from netsandbox.backends.broker.carving import (
    CHANGE,
    DEVICE,
    EXECUTE,
    HANDLED,
    IOCTL_DEV,
    READ,
    READ_DIR,
    READ_FILE,
    TRUNCATE,
    WRITE,
    WRITE_FILE,
    Permits,
    carve,
)
from netsandbox.backends.broker.landlock_view import LandlockView, entries, own_file_error, own_places
from netsandbox.backends.broker.temporary_folder import TemporaryFolder
from netsandbox.backends.contract import path_of
from netsandbox.errors import HostError
from netsandbox.paths import short, working_folder
from netsandbox.policy.file_rules import PROJECT, is_within
from netsandbox.policy.shown_files import DEVICES
from netsandbox.runtime.inherited import terminal_of
from netsandbox.runtime.real_paths import names_in
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.broker.protected_files import ProtectedFiles
    from netsandbox.backends.contract import SessionContext
    from netsandbox.runtime.protection import OwnPaths
    from netsandbox.settings import RunSettings

# What is loaded after the command began, for `Backend.needed_modules`.
LATE_MODULES = (
    "netsandbox.backends.linux.git_operations",
    "netsandbox.backends.linux.git_results",
    "netsandbox.backends.linux.project_results",
    "netsandbox.backends.linux.new_repositories",
    "netsandbox.backends.linux.held_names",
    "netsandbox.backends.linux.kept_overlays",
    "netsandbox.backends.linux.private_home",
    "netsandbox.policy.git_index",
    "netsandbox.policy.git_merge",
    "netsandbox.policy.git_operations",
)
SHARED_MEMORY = "/dev/shm"  # noqa: S108 (the host's, which is permitted)
TERMINAL_MAKERS = ("/dev/ptmx", "/dev/pts/ptmx")
RESOLVER = "/etc/resolv.conf"  # often a link into /run
PROCESSES = "/proc"
# The rights of a descriptor, by the flags that it was opened with.
ACCESS = {
    os.O_RDONLY: READ_FILE,
    os.O_WRONLY: WRITE_FILE | TRUNCATE,
    os.O_RDWR: READ_FILE | WRITE_FILE | TRUNCATE,
}
ADVICE = "leave it out, or use --backend namespaces where user namespaces work"


class SessionFiles:
    """*own* are the paths of netsandbox.

    `permits` are rights and real paths; they hold at the path and below it. The helper applies them, follows no link
    and leaves out a path that is gone meanwhile, so that it stays closed. `handled` are the rights that a command has
    only by a permit. `working` is where the command begins. `notices` are lines for the user before it begins.
    """

    def __init__(self, context: SessionContext, state: str, own: OwnPaths) -> None:
        self._context = context
        self._settings = context.settings
        self._collected = Permits()
        self._temporary: TemporaryFolder | None = None
        self._protected: ProtectedFiles | None = None
        self.view: LandlockView | None = None
        self.handled = HANDLED
        self.notices = check_options(context.settings)
        self.working = working_folder()
        self._kept, self._hidden = own_places(own.read_only), own_places(own.hidden)
        try:
            if context.settings.files.mode == PROJECT:
                self._project(state, own)
            else:
                self._open(own)
            self._devices()
            self._processes()
            self._programs()
            self._check_own()
        except BaseException:
            self.close()
            raise
        self.permits = self._collected.result()

    # What is permitted

    def _project(self, state: str, own: OwnPaths) -> None:
        from netsandbox.backends.broker.home_links import link_home
        from netsandbox.backends.broker.protected_files import ProtectedFiles
        from netsandbox.backends.broker.session_variables import Places
        from netsandbox.backends.linux.project_results import unprotected_lines

        command, files = self._context.command, self._settings.files
        view = self.view = LandlockView(files, command.environment, self.working, state)
        view.sockets = self._settings.unix_sockets
        view.ours = *self._kept, *self._hidden
        view.build(command.words[0], own, terminal_of(command.stdio))
        view.check_secrets()
        self._permit_view(view)
        if not files.share_tmp:
            self._make_temporary()
        self._protected = ProtectedFiles(view.all_watched())
        link_home(view)
        if view.working is not None:
            self.working = Places(view).place_of(view.working)
        self.notices += unprotected_lines(view, verbose=self._settings.verbose)
        if self._protected.exist:
            self.notices.append(
                "the command can change what the host runs or obeys in the project, such as .git/hooks and .vscode,"
                " while it runs; the end of the session puts that back"
            )

    def _permit_view(self, view: LandlockView) -> None:
        for rights, path in view.writable_parts():
            self._collected.add(rights, path)
        for path, closed in view.readable_parts():
            self._collected.add(READ, *carve(path, closed, entries).paths)
        self._collected.add(READ_FILE, os.path.realpath(RESOLVER))

    def _open(self, own: OwnPaths) -> None:
        from netsandbox.backends.broker.open_files import OpenFiles
        from netsandbox.backends.linux.open_folders import remember_open_folders

        environment = self._context.command.environment
        found = OpenFiles(self._settings.files, environment, own, self._collected)
        self.notices += found.notices
        if found.replaced:
            self._make_temporary()
        if not self._settings.own_command:
            remember_open_folders(self._settings.files, environment)

    @property
    def temporary_path(self) -> str | None:
        """The private temporary folder; None if the session uses the host's."""
        return None if self._temporary is None else self._temporary.path

    def _make_temporary(self) -> None:
        self._temporary = TemporaryFolder(os.fsdecode(self._context.command.environment.get(b"TMPDIR", b"")))
        self._collected.add(WRITE, self._temporary.path)

    def _check_own(self) -> None:
        """Whatever was permitted and why: nothing of netsandbox is written, and its state is not read (INV-8)."""
        for places, rights in ((self._kept, CHANGE), (self._hidden, CHANGE | READ_FILE)):
            for path in places:
                if (folder := self._collected.folder_with(rights, path)) is not None:
                    raise own_file_error(path, folder)

    def _devices(self) -> None:
        """The same in all modes. Other terminals of the user stay closed: who opens one reads what is typed there."""
        opened = self._settings.files.devices
        self._collected.add(DEVICE, *(f"/dev/{name}" for name in DEVICES), *opened)
        if any(path in TERMINAL_MAKERS for path in opened):
            self._collected.add(DEVICE | READ_DIR, "/dev/pts")
            self.notices.append("--allow-device /dev/ptmx opens your other terminals too: the command can read them")
        for descriptor in self._context.command.stdio:
            self._descriptor(descriptor)
        closed = (*self._kept, *self._hidden, *(self.view.hidden if self.view is not None else ()))
        self._collected.add(WRITE, *carve(SHARED_MEMORY, closed, entries).paths)
        others = [name for name in names_in(SHARED_MEMORY) if os.access(f"{SHARED_MEMORY}/{name}", os.R_OK)]
        if others:
            what = few(map(single_line, others))
            self.notices.append(f"{SHARED_MEMORY} is the host's: the command can open {what} there")

    def _descriptor(self, descriptor: int) -> None:
        """A command may open its standard descriptors anew, as /dev/stdout, with the rights that it has already."""
        try:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            found = os.fstat(descriptor)
            if not path.startswith("/") or not os.path.samestat(os.lstat(path), found):
                return
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        except OSError:  # a pipe, a socket, or a file without a name
            return
        if os.isatty(descriptor):
            self._collected.add(DEVICE, path)
        elif not stat.S_ISDIR(found.st_mode):
            self._collected.add(ACCESS.get(flags & os.O_ACCMODE, 0) | IOCTL_DEV, path)

    def _processes(self) -> None:
        """Nothing of /proc is written: as root that would change the kernel's settings. With --no-debug the files of
        processes are closed."""
        if self._settings.no_debug:
            plain = [f"{PROCESSES}/{name}" for name in names_in(PROCESSES) if not name.isdigit()]
            self._collected.add(READ_DIR, PROCESSES)
            self._collected.add(READ_FILE | READ_DIR, *(path for path in plain if not os.path.islink(path)))
        else:
            self._collected.add(READ_FILE | READ_DIR, PROCESSES)

    def _programs(self) -> None:
        files, command = self._settings.files, self._context.command
        if not files.listed_only:
            return
        from netsandbox.backends.linux.programs import find_program, needed_programs

        path = path_of(command.environment)
        started = find_program(command.words[0], path)
        listed = [os.path.realpath(rule.path) for rule in files.allow_execute]
        self._collected.without(EXECUTE)
        self._collected.add(EXECUTE, *needed_programs([*([started] if started else ()), *listed], path))

    # For the command

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """*inner*, changed for this session."""
        if self.view is not None:
            from netsandbox.backends.broker.session_variables import session_variables

            words = self._context.command.words
            return session_variables(inner, self._settings, words[0], self.view, self._temporary)
        return {**inner, b"TMPDIR": os.fsencode(self._temporary.path)} if self._temporary is not None else inner

    # After the command

    def finish(self) -> list[str]:
        """Take over what a session may change of its project. Returns lines for the user."""
        if self.view is None or self._protected is None:
            return []
        from netsandbox.backends.linux.project_results import finish

        protected, self._protected = self._protected, None
        return [*put_back(self.view, protected), *finish(self.view)]

    def close(self) -> None:
        if self.view is not None:
            self.view.folders.close()
        if self._temporary is not None:
            self._temporary.close()


def put_back(view: LandlockView, protected: ProtectedFiles) -> list[str]:
    """Give the protected files that changed their old content, and keep what the session made of them. Settings of git
    that could run a program have lines of their own (`project_results`)."""
    from netsandbox.backends.linux.held_names import HeldFolder

    project = view.project
    tops = (project.folder, project.git or project.folder) if project is not None else ()
    copied = {each.path for each in view.git.copied if _is_plain(each.path)} if view.git is not None else set()
    held: dict[str, HeldFolder] = {}

    def take(path: str) -> None:
        top = next((top for top in tops if is_within(path, top)), os.path.dirname(path))
        held.setdefault(top, HeldFolder(top, view.folders.state)).take(path)

    changed, left = protected.put_back(copied.__contains__, take)
    what = "put back in {folder} as before the session, since programs of the host obey {them}"
    lines = [line for each in held.values() for line in each.finish(what, " --force")]
    lost = [path for path in changed if path not in left]
    if not lines and lost:
        lines.append(f"put back, since programs of the host obey them: {few(map(_shown, lost))}")
    if left:
        lines.append(
            f"changed by the session: {few(map(_shown, left))}; programs of the host obey or run these, so look at"
            " them first"
        )
    return lines


def _shown(path: str) -> str:
    return single_line(short(path), 200)


def _is_plain(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def check_options(settings: RunSettings) -> list[str]:
    """An error for an option that needs mounts. Returns lines about what is weaker."""
    if settings.files.overlay is not None:
        raise HostError(f"--overlay needs mounts, which the broker backend does not have; {ADVICE}")
    if settings.asks_files and settings.ask is None:
        raise HostError(f"--ask: the broker backend cannot ask about files; {ADVICE}")
    lines = []
    if settings.learn_files is not None:
        lines.append("learn records names only: the broker backend does not see which files are used")
    if settings.asks_files:
        lines.append("--ask asks about names only: the broker backend cannot ask about files")
    return lines
