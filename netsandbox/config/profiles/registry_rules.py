"""The registries that a profile's tools use, as a layer of rules, from the user's settings and the tools themselves.

The command can read the user's file that names a registry, although it may hold secrets: the tool needs it to use the
registry. If only a project's file, or a file that a session may have written, names a registry, it is used after the
user has trusted that file (`netsandbox trust .npmrc`) with the content that was read. A program that a session may have
written is not run before it is trusted.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType

from netsandbox.config.cache import fingerprint
from netsandbox.config.layer import Layer, Setting
from netsandbox.config.profiles.profile import Library
from netsandbox.config.profiles.profile_files import own
from netsandbox.config.registries.lookup import Registry, ToolRegistries, hosts, recall
from netsandbox.config.trust import is_trusted
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.paths import home, short
from netsandbox.policy.file_rules import PathRule
from netsandbox.policy.policy import DomainRule
from netsandbox.policy.rules import parse_domain

PLACE = ("network", "allow_domains")
SHOWN = ("filesystem", "allow_read")
_MAX_FILE_SIZE = 1 << 20  # as `registries.discovery` has it
PROGRESS_SECONDS = 1.0


@frozen
class RegistryRules:
    """`untrusted`: each host that a file of the project (or of a session) names, with its origin; and programs."""

    layer: Layer
    notes: tuple[str, ...]
    untrusted: tuple[tuple[str, str], ...]


def registry_rules(tool: str, environment: Mapping[str, str]) -> RegistryRules:
    """The rules of one tool in the current folder."""
    found = _registries(tool, environment)
    rules: list[DomainRule] = []
    shown: dict[str, PathRule] = {}
    notes = list(found.notes)
    untrusted = [(f"what it calls the registry of {tool}", f"{path}:1") for path in found.untrusted_programs]
    for each in found.registries:
        if each.project and not _is_trusted(each, found, environment):
            untrusted.append((each.pattern, each.origin))
            continue
        origin, file = f"{tool} ({short(each.origin)})", _file(each, found)
        try:
            rules.append(parse_domain(each.pattern, origin))
        except UsageError as error:
            notes.append(str(error))
            continue
        if file is not None and not each.project:
            shown.setdefault(file, PathRule(file, origin))
    return RegistryRules(_layer(tool, rules, list(shown.values())), tuple(notes), tuple(untrusted))


def _layer(tool: str, rules: list[DomainRule], shown: list[PathRule]) -> Layer:
    values = {}
    if rules:
        values[PLACE] = Setting(tuple(rules), tuple((rule.text, rule.origin) for rule in rules))
    if shown:
        values[SHOWN] = Setting(tuple(shown), tuple((rule.path, rule.origin) for rule in shown))
    return Layer(tool, values)


def project_registries(tool: str, environment: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Registries that only the project's files name: pattern, file and origin of each."""
    found = _registries(tool, environment)
    return [
        (each.pattern, file, each.origin)
        for each in found.registries
        if each.project and (file := _file(each, found)) is not None
    ]


def untrusted_programs(tool: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The programs that would be queried if the user trusted them."""
    return _registries(tool, environment).untrusted_programs


def files_of(tool: str, environment: Mapping[str, str]) -> frozenset[str]:
    """The files that the registries of *tool* depend on."""
    return frozenset(name for name, _ in _registries(tool, environment).inputs if name[:1] == "/")


def _registries(tool: str, environment: Mapping[str, str]) -> ToolRegistries:
    folder = os.getcwd()
    known = recall(tool, os.path.realpath(folder), environment, home())
    if known is not None:
        return known
    with Progress(f"asking {tool} which registries it uses"):
        return hosts(tool, folder, environment, home())


def _file(registry: Registry, found: ToolRegistries) -> str | None:
    """The file that names the registry: its origin is the file and a place in it."""
    named = [path for path, _ in found.inputs if path[:1] == "/" and registry.origin.startswith(f"{path}:")]
    return max(named, key=len, default=None)


def _is_trusted(registry: Registry, found: ToolRegistries, environment: Mapping[str, str]) -> bool:
    """Whether the user trusts the file, with the content, that *found* was read from; every failure means no
    (INV-1)."""
    path = _file(registry, found)
    if path is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            data = file.read(_MAX_FILE_SIZE + 1)
    except OSError:
        return False
    return is_trusted(path, data) and dict(found.inputs).get(path) == fingerprint(path, environment)


def registries_of(path: str) -> list[tuple[str, str, str]]:
    """Tool, host and place of each registry that only *path* names."""
    wanted = os.path.realpath(path)
    return [
        (tool, host, origin)
        for tool in _tools()
        for host, file, origin in project_registries(tool, os.environ)
        if os.path.realpath(file) == wanted
    ]


def tools_run_from(path: str) -> list[str]:
    """The tools that would be queried by running the program at *path*."""
    wanted = os.path.abspath(path)
    return [tool for tool in _tools() if wanted in untrusted_programs(tool, os.environ)]


def is_used_by_tools(path: str) -> bool:
    """Whether tools are searched there or have their settings there, whatever its content."""
    wanted = os.path.abspath(path)
    return any(wanted in files_of(tool, os.environ) for tool in _tools())


def _tools() -> Iterator[str]:
    """The tools of all profiles, the user's and the built-in ones."""
    library, found = Library(), set()
    for each in own().values():
        for tool in library.about(each).get("registries", ()):
            if tool not in found:
                found.add(tool)
                yield tool


class Progress:
    """Writes *what* to the terminal if it takes longer than a second; nothing where there is no terminal."""

    def __init__(self, what: str, seconds: float = PROGRESS_SECONDS) -> None:
        self._timer = threading.Timer(seconds, self._write)
        self._timer.daemon = True
        self._what = what

    def __enter__(self) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()  # no process is started while a thread runs

    def _write(self) -> None:
        try:
            sys.stderr.write(f"netsandbox: {self._what} …\n")
            sys.stderr.flush()
        except OSError:
            pass
