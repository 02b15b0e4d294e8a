"""One search for the registries of a tool: its folder and variables, the files it examined, and notes for the user.

Settings of a project's file, or of a file that a session may have written, are marked with `project`. They have no
effect until the user trusts the file, and they must not hide the user's settings. So if a project's setting is the
strongest, the strongest of the others is kept too (`strongest`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from netsandbox.config.cache import fingerprint, with_prefix
from netsandbox.config.paths import trust_folder
from netsandbox.config.registries import provenance, query_sandbox, tool_process
from netsandbox.config.registries.readers import BadFile
from netsandbox.config.registries.urls import NotExpanded, expand
from netsandbox.config.trust import is_trusted
from netsandbox.frozen import copy_with, frozen
from netsandbox.text import single_line

Reader = Callable[["SettingsFile"], Iterable["Setting"]]

SYSTEM = "/etc"  # the folder of the system's settings
MAX_FILE_SIZE = 1 << 20
_MAX_FOLDERS = 64
_MAX_SYSTEM_FOLDERS = 20
_MAX_NOTES = 20
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_PAGE_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")


@frozen
class Setting:
    """One value of a tool's setting. It may hold credentials: it is never stored, shown or logged.

    An empty value names no registry; its key has another meaning, such as that the tool's default is not used.
    """

    key: str
    value: str
    origin: str
    project: bool = False


def strongest(settings: Iterable[Setting]) -> list[Setting]:
    """For each key the first setting, and the first that is not the project's."""
    found: dict[tuple[str, bool], Setting] = {}
    for each in settings:
        if (each.key, False) not in found:
            found.setdefault((each.key, each.project), each)
    return list(found.values())


def is_set(settings: Iterable[Setting], *keys: str) -> bool:
    """Whether a setting that is not the project's has one of *keys*."""
    return any(each.key in keys and not each.project for each in settings)


def split_values(settings: Iterable[Setting], separators: str = "") -> list[Setting]:
    """Each part of each value as a setting; parts end at blank space and at *separators*."""
    blanks = str.maketrans(separators, " " * len(separators))
    return [copy_with(each, value=part) for each in settings for part in each.value.translate(blanks).split()]


@frozen
class SettingsFile:
    """A file of settings; `project`: the project, a stranger or a session may have written it."""

    path: str
    data: bytes
    project: bool

    @property
    def text(self) -> str:
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise BadFile("is not UTF-8 text") from None

    def setting(self, key: str, value: str, place: int | str) -> Setting:
        """A setting of the file, at a line or under a key."""
        return Setting(key, value, f"{single_line(self.path)}:{place}", self.project)


def read_file(path: str) -> bytes | None:
    """The content, or None where there is no file. Links are followed; pipes, devices and very large files are not
    read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # before it is opened: opening a device may do something
            raise BadFile("is not an ordinary file")
        with open(os.open(path, _OPEN_FLAGS), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadFile("is not an ordinary file")
            data = file.read(MAX_FILE_SIZE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadFile(f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, BadFile):
            raise
        return None  # a name that no file can have
    if len(data) > MAX_FILE_SIZE:
        raise BadFile(f"is larger than {MAX_FILE_SIZE >> 20} MiB")
    return data


class Discovery:
    """The inputs of the search for one tool's settings, and a record of everything that it examined."""

    def __init__(self, folder: str, environment: Mapping[str, str], home: str) -> None:
        self.folder = os.path.abspath(folder)
        self.home = os.path.abspath(home)
        self.complete = True
        self.notes: list[str] = []
        self.inputs: dict[str, str] = {}
        self.untrusted_places: list[str] = []
        self._environment = environment
        # The project begins at the highest folder that is a repository, if any is.
        roots = [each for each in self.folders_upward() if os.path.lexists(os.path.join(each, ".git"))]
        self._project = roots[-1] if roots else self.folder

    def note(self, text: str) -> None:
        """Add a line for the user; their number is bounded."""
        if len(self.notes) < _MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def note_incomplete(self, text: str) -> None:
        """Add a note about a failed query; the result is cached only for a short time."""
        self.complete = False
        self.note(text)

    def variable(self, name: str) -> str | None:
        self._record(f"${name}")
        return self._environment.get(name)

    def variables(self, prefix: str) -> dict[str, str]:
        """The variables that begin with *prefix*, in any case."""
        self._record(f"${prefix}*")
        return {name: self._environment[name] for name in with_prefix(self._environment, prefix)}

    def folders_upward(self) -> Iterator[str]:
        """The folder and those above it that may belong to the project: below the home, and not the root."""
        folder = self.folder
        for _ in range(_MAX_FOLDERS):
            if tool_process.is_inside(self.home, folder):
                return
            yield folder
            folder = os.path.dirname(folder)

    def paths(self, template: str) -> list[str]:
        """The paths that *template* stands for. It begins with `~`, `/etc`, `$VARIABLE` or `${VARIABLE:-DEFAULT}`."""
        if template.startswith("${"):
            name, _, rest = template[2:].partition(":-")
            default, _, rest = rest.partition("}")
            value = self.variable(name)
            return [value + rest] if value else self.paths(default + rest)
        base, slash, rest = template.partition("/")
        if base == "$XDG_CONFIG_DIRS":
            listed = (self.variable(base[1:]) or os.path.join(SYSTEM, "xdg")).split(":")[:_MAX_SYSTEM_FOLDERS]
            return [os.path.join(each, rest) for each in listed if each.startswith("/")]
        if base == "$XDG_CONFIG_HOME":
            named = self.variable(base[1:]) or ""
            base = named if named.startswith("/") else os.path.join(self.home, ".config")
        elif base[:1] == "$":
            base = self.variable(base[1:]) or ""
            if not base:
                return []
        elif base == "~":
            base = self.home
        elif template.startswith("/etc/"):
            base, rest = SYSTEM, rest.removeprefix("etc/")
        return [base + slash + rest]

    def read(self, path: str, *, project: bool = False) -> SettingsFile | None:
        """The file at *path*, if it is there and can be read."""
        path = os.path.join(self.folder, path)
        self._record(path)
        try:
            data = read_file(path)
        except BadFile as reason:
            self._note_skipped(path, reason)
            return None
        return None if data is None else SettingsFile(path, data, project or self._is_foreign(path, data))

    def settings_in(self, path: str, reader: Reader, *, project: bool = False) -> list[Setting] | None:
        """The settings that *reader* finds; None if the file does not exist or is skipped."""
        file = self.read(path, project=project)
        try:
            return None if file is None else list(reader(file))
        except BadFile as reason:
            self._note_skipped(os.path.join(self.folder, path), reason)
            return None

    def expanded(
        self, settings: Iterable[Setting], value_of: Callable[[str], str | None] | None = None
    ) -> Iterator[Setting]:
        """The setting with `${VARIABLE}` replaced, where that is allowed; by *value_of*, or as a variable."""
        for each in settings:
            try:
                yield copy_with(each, value=expand(each.value, value_of or self.variable, project=each.project))
            except NotExpanded as reason:
                self.note(f"{each.origin}: {reason}; the line is passed over")

    def program(self, name: str) -> str | None:
        """The path of the tool, outside the project."""
        return next(iter(self._programs(name)), None)

    def trusted_program(self, name: str) -> str | None:
        """The first program of that name that no session can have written. If there is none, the folder of the first
        one is recorded as untrusted."""
        found = list(self._programs(name))
        for path in found:
            if self._place_to_trust(path) is None:
                return path
        return next((path for path in found[:1] if self.trusts_program(path)), None)

    def trusts_program(self, path: str) -> bool:
        """Whether no session can have written the program, nor its interpreter if it is a script. Otherwise the folder
        that the user would have to trust is recorded."""
        place = self._place_to_trust(path)
        if place is not None and place not in self.untrusted_places:
            self.untrusted_places.append(place)
        return place is None

    def query(self, name: str, *arguments: str, **variables: str) -> str:
        """The output of the tool; empty if there is no such tool."""
        path = self.trusted_program(name)
        if path is None:
            return ""
        output = query_sandbox.run([path, *arguments], {**self.tool_environment(), **variables}, self.home)
        if output is None:
            self.note_incomplete(f"{name} {' '.join(arguments)} gave no answer in its session")
        return (output or b"").decode("utf-8", "replace").strip()

    def tool_environment(self) -> dict[str, str]:
        return tool_process.tool_environment(self._environment, self._project, self.home)

    def page(self, url: str, accept: str) -> tuple[str, str, bytes] | None:
        """Final URL, type and bytes of a page, fetched through the user's proxy; None if that fails."""
        import sys

        from netsandbox.config.registries import fetch_page

        names = (spelling for name in _PAGE_VARIABLES for spelling in (name, name.upper()))
        environment = {name: value for name in names if (value := self.variable(name)) is not None}
        bundle = self.variable("PIP_CERT") or self.variable("REQUESTS_CA_BUNDLE")
        if bundle:
            environment.setdefault("SSL_CERT_FILE", bundle)
        command = [sys.executable, "-I", "-B", fetch_page.__file__]
        process = tool_process.start(command, environment, f"{url}\n{accept}\n".encode())
        parts = ((process and tool_process.output(process)) or b"").split(b"\n", 2)
        return (parts[0].decode(), parts[1].decode(), parts[2]) if len(parts) == 3 else None

    def _note_skipped(self, path: str, reason: BadFile) -> None:
        self.note(f"{single_line(path)} {reason}; it is passed over")

    def _record(self, name: str) -> None:
        if name not in self.inputs:
            self.inputs[name] = fingerprint(name, self._environment)

    def _programs(self, name: str) -> Iterator[str]:
        """The programs of that name, in the order of PATH, outside the project."""
        for folder in tool_process.safe_path(self.variable("PATH") or "", self._project):
            path = os.path.join(folder, name)
            self._record(path)
            if os.access(path, os.X_OK) and os.path.isfile(path) and not tool_process.is_inside(path, self._project):
                yield path

    def _place_to_trust(self, path: str) -> str | None:
        """The folder that the user would have to trust for the program or its interpreter; None if there is none."""
        self._record(path)
        interpreter = provenance.interpreter(path)
        if interpreter and not interpreter.startswith("/"):
            interpreter = self.program(interpreter) or ""
        for each in filter(None, (path, interpreter)):
            place = provenance.untrusted_place(each, self._environment)
            if place is not None:
                self._record(trust_folder())
                return place
        return None

    def _is_foreign(self, path: str, data: bytes) -> bool:
        """Whether the file is inside the project, or belongs to neither the user nor the system. A home that is also
        the project is the user's."""
        try:
            owner = os.stat(path).st_uid
        except OSError:
            return True
        inside = tool_process.is_inside(path, self._project) and not tool_process.is_inside(self.home, self._project)
        if inside or owner not in (0, os.getuid()):
            return True
        if provenance.is_out_of_reach(path):
            return False
        self._record(trust_folder())
        return not is_trusted(path, data)
