"""The registries that a profile's tools use, as a layer of rules, from the user's settings and the tools themselves.

The command can read the user's file that names a registry, although it may hold secrets: the tool needs it to use the
registry. If only a project's file, or a file that a session may have written, names a registry, it is used after the
user has trusted that file to name this host (`netsandbox trust .npmrc`). A program that a session may have
written is not run before its folder is trusted.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType

from netsandbox.config.layer import Layer, Setting
from netsandbox.config.profiles.profile import Library
from netsandbox.config.profiles.profile_files import own
from netsandbox.config.registries.lookup import Registry, ToolRegistries, hosts, recall
from netsandbox.config.trust import is_trusted, named_host
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.paths import home, short
from netsandbox.policy.file_rules import PathRule
from netsandbox.policy.policy import DomainRule
from netsandbox.policy.rules import parse_domain

PLACE = ("network", "allow_domains")
SHOWN = ("filesystem", "allow_read")
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
    untrusted = [(f"the registry that {tool} in it names", f"{path}:1") for path in found.untrusted_places]
    for each in found.registries:
        if each.project and not _is_trusted(each, found):
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


def _is_trusted(registry: Registry, found: ToolRegistries) -> bool:
    """Whether the user trusts the file to name this host. Its other content opens nothing, so it may change."""
    path = _file(registry, found)
    return path is not None and is_trusted(path, named_host(registry.pattern))


def registries_of(path: str) -> list[tuple[str, str, str]]:
    """Tool, host and place of each registry that only *path* names, as far as the user does not trust it yet."""
    wanted, listed = os.path.realpath(path), []
    for tool in _tools():
        found = _registries(tool, os.environ)
        for each in found.registries:
            if each.project and not _is_trusted(each, found) and os.path.realpath(_file(each, found) or "") == wanted:
                listed.append((tool, each.pattern, each.origin))
    return listed


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
