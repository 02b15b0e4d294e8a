"""One search for registries: the folder and variables it is about, and all that it looked at and noticed on the way."""

from __future__ import annotations

import os

from netsandbox.config.document import read
from netsandbox.config.paths import trust_folder
from netsandbox.config.registries import files, provenance, query_sandbox, tool_process
from netsandbox.config.registries.expansion import Unexpanded, expand
from netsandbox.config.registries.setting import Setting
from netsandbox.config.registries.toml import BadToml, document
from netsandbox.config.trust import is_trusted
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.runtime.fingerprint import stamp, with_prefix
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SYSTEM = "/etc"  # where the system's settings are
_MAX_FOLDERS = 64
_MAX_NOTES = 20
_PAGE_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")


def shown(path: str) -> str:
    """*path* in one printable line; whole, since its end is what tells files apart."""
    return single_line(path)


@frozen
class Text:
    """A file of settings, and whether the project brought it along."""

    path: str
    text: str
    project: bool

    def said(self, key: str, value: str, place: int | str) -> Setting:
        """A setting in it, at a line or under a key."""
        return Setting(key, value, f"{shown(self.path)}:{place}", self.project)


class Discovery:
    """What a tool's module asks of the world."""

    def __init__(self, folder: str, environment: Mapping[str, str], home: str) -> None:
        self.folder = os.path.abspath(folder)
        self.home = os.path.abspath(home)
        self.complete = True
        self.notes: list[str] = []
        self.consulted: dict[str, str] = {}
        self.unasked: list[str] = []
        self._environment = environment
        self._project = self._root()

    def _root(self) -> str:
        """Where the project begins: of the folder and those above it the highest that is a repository, if any is."""
        found = [each for each in self.upward() if os.path.lexists(os.path.join(each, ".git"))]
        return found[-1] if found else self.folder

    def note(self, text: str) -> None:
        """A line for the user; not without end."""
        if len(self.notes) < _MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def variable(self, name: str) -> str | None:
        self._consult(f"${name}")
        return self._environment.get(name)

    def variables(self, prefix: str) -> dict[str, str]:
        """Those that begin with *prefix*, in any case."""
        self._consult(f"${prefix}*")
        return {name: self._environment[name] for name in with_prefix(self._environment, prefix)}

    def said(self, key: str, *names: str) -> Iterator[Setting]:
        """What the first of the variables *names* says that is not empty."""
        for name in names:
            value = self.variable(name)
            if value:
                yield Setting(key, value, name, project=False)
                return

    def config_home(self, *parts: str) -> str:
        base = self.variable("XDG_CONFIG_HOME") or ""
        return os.path.join(base if base.startswith("/") else os.path.join(self.home, ".config"), *parts)

    def system(self, *parts: str) -> str:
        return os.path.join(SYSTEM, *parts)

    def upward(self) -> Iterator[str]:
        """The folder and those above it, as long as they may belong to the project: below home, and not the root."""
        folder = self.folder
        for _ in range(_MAX_FOLDERS):
            if tool_process.is_inside(self.home, folder):
                return
            yield folder
            folder = os.path.dirname(folder)

    def data(self, path: str, *, project: bool = False) -> tuple[bytes, bool] | None:
        """The bytes of a file, and whether the project, a stranger or a session may have written it."""
        path = os.path.join(self.folder, path)
        self._consult(path)
        try:
            content = files.read(path)
        except files.Unreadable as reason:
            self.note(f"{shown(path)} {reason}; it is passed over")
            return None
        return None if content is None else (content, project or self._is_foreign(path, content))

    def text(self, path: str, *, project: bool = False) -> Text | None:
        found = self.data(path, project=project)
        if found is None:
            return None
        try:
            text = found[0].decode("utf-8-sig")
        except UnicodeDecodeError:
            self.note(f"{shown(path)} is not UTF-8 text; it is passed over")
            return None
        return Text(os.path.join(self.folder, path), text, found[1])

    def toml(self, path: str, *, project: bool = False) -> tuple[Text, dict[str, object]] | None:
        text = self.text(path, project=project)
        if text is None:
            return None
        try:
            return text, document(text.text)
        except BadToml as reason:
            self.note(f"{shown(text.path)} {reason}; it is passed over")
            return None

    def expanded(self, said: Iterable[Setting]) -> Iterator[Setting]:
        """With `${VARIABLE}` replaced, where that may be."""
        for each in said:
            try:
                text = expand(each.text, self.variable, project=each.project)
            except Unexpanded as reason:
                self.note(f"{each.origin}: {reason}; the line is passed over")
            else:
                yield Setting(each.key, text, each.origin, each.project)

    def names(self, folder: str) -> list[str]:
        """Of the files in a folder of the user's."""
        self._consult(folder)
        try:
            return sorted(os.listdir(folder))
        except OSError:
            return []

    def program(self, name: str) -> str | None:
        """Where the tool is, outside of the project."""
        return next((path for path in self._programs(name)), None)

    def asked_program(self, name: str) -> str | None:
        """The first of that name that no session can have put there; if there are only others, one is kept in mind."""
        found = list(self._programs(name))
        for path in found:
            if self._starts_soundly(path):
                return path
        self.unasked += [path for path in found[:1] if path not in self.unasked]
        return None

    def believes_program(self, path: str) -> bool:
        """Whether the user has it from before the first session, or has said yes to it as it is."""
        self._consult(path)
        if provenance.is_old_program(path):
            return True
        self._consult(trust_folder())
        try:
            return is_trusted(path, read(path, regular=True))
        except NetsandboxError:
            return False

    def ask(self, name: str, *arguments: str, **variables: str) -> str:
        """What the tool prints; nothing if there is no such tool."""
        path = self.asked_program(name)
        if path is None:
            return ""
        said = query_sandbox.ask([path, *arguments], {**self.tool_environment(), **variables}, self.home)
        if said is None:
            self.unanswered(f"{name} {' '.join(arguments)} gave no answer in a session of its own")
        return (said or b"").decode("utf-8", "replace").strip()

    def asked(self, key: str, name: str, *arguments: str) -> list[Setting]:
        """The last line of what the tool prints, if it is a URL."""
        last = self.ask(name, *arguments).rpartition("\n")[2].strip()
        said = Setting(key, last, " ".join((name, *(each for each in arguments if each[:2] != "--"))), project=False)
        return [said] if last.startswith(("http://", "https://")) else []

    def tool_environment(self) -> dict[str, str]:
        return tool_process.tool_environment(self._environment, self._project, self.home)

    def unanswered(self, what: str) -> None:
        """A note, and the answer is not kept for long."""
        self.complete = False
        self.note(what)

    def page(self, url: str, accept: str) -> tuple[str, str, bytes] | None:
        """Final URL, type and bytes of a page, by the user's proxy; None if it cannot be had."""
        import sys

        from netsandbox.config.registries import fetch_page

        names = (spelling for name in _PAGE_VARIABLES for spelling in (name, name.upper()))
        environment = {name: value for name in names if (value := self.variable(name)) is not None}
        bundle = self.variable("PIP_CERT") or self.variable("REQUESTS_CA_BUNDLE")
        if bundle:
            environment.setdefault("SSL_CERT_FILE", bundle)
        command = [sys.executable, "-I", "-B", fetch_page.__file__]
        reply = tool_process.ask(command, environment, f"{url}\n{accept}\n".encode())
        parts = (reply or b"").split(b"\n", 2)
        return (parts[0].decode(), parts[1].decode(), parts[2]) if len(parts) == 3 else None

    def _consult(self, name: str) -> None:
        if name not in self.consulted:
            self.consulted[name] = stamp(name, self._environment)

    def _programs(self, name: str) -> Iterator[str]:
        """Those of that name, in the order of PATH, outside of the project."""
        for folder in tool_process.safe_path(self.variable("PATH") or "", self._project):
            path = os.path.join(folder, name)
            self._consult(path)
            if os.access(path, os.X_OK) and os.path.isfile(path) and not tool_process.is_inside(path, self._project):
                yield path

    def _starts_soundly(self, path: str) -> bool:
        """It is believed, and so is what starts it if it is a script."""
        if not self.believes_program(path):
            return False
        starter = provenance.interpreter(path)
        if starter and not starter.startswith("/"):
            starter = self.program(starter) or ""
        return not starter or self.believes_program(starter)

    def _is_foreign(self, path: str, content: bytes) -> bool:
        """Inside the project, or neither the user's nor the system's. A home that is the project is its user's."""
        try:
            owner = os.stat(path).st_uid
        except OSError:
            return True
        inside = tool_process.is_inside(path, self._project) and not tool_process.is_inside(self.home, self._project)
        if inside or owner not in (0, os.getuid()):
            return True
        if provenance.is_out_of_reach(path):
            return False
        self._consult(trust_folder())
        return not is_trusted(path, content)
