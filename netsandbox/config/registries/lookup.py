"""The registries of a tool: from the cache if nothing changed, else from its settings and from the tool itself.

No value here holds a path or a user name of a URL: both may be secrets.
"""

from __future__ import annotations

import os

from netsandbox.config import cache
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from netsandbox.config.registries.discovery import Discovery, Setting

_KIND = "registries 2"
_SECONDS = {True: 7 * 86400, False: 600}  # by `complete`: a tool's default can change without a trace


@frozen
class Registry:
    """One host that the tool connects to, as a pattern for `--allow-domain`."""

    pattern: str  # NAME:PORT
    origin: str  # file:line, a variable, or the command that printed it
    project: bool  # from a file that the project, or a session, may have written: used after the user trusts it


@frozen
class ToolRegistries:
    """The registries of one tool in one folder."""

    registries: tuple[Registry, ...]
    notes: tuple[str, ...]  # what was skipped and what to do about it, a line each
    inputs: tuple[tuple[str, str], ...]  # each examined file and variable, and its fingerprint
    untrusted_places: tuple[str, ...] = ()  # folders of programs that are not run before the user trusts them
    complete: bool = True  # False if a query failed, so that it is tried again soon

    def patterns(self, *, project: bool = False) -> tuple[str, ...]:
        """The rules for these registries; with *project*, also for those that only the project's files name."""
        return tuple(dict.fromkeys(each.pattern for each in self.registries if project or not each.project))


def hosts(tool: str, folder: str, environment: Mapping[str, str], home: str) -> ToolRegistries:
    """The registries that *tool* uses in *folder* for a user with these variables and this home."""
    folder = os.path.realpath(folder)
    found = recall(tool, folder, environment, home)
    if found is None:
        found = discover(tool, folder, environment, home)
        registries = tuple((each.pattern, each.origin, each.project) for each in found.registries)
        value = (registries, found.notes, found.inputs, found.untrusted_places, found.complete)
        inputs = tuple((cache.FINGERPRINT, name, then) for name, then in found.inputs)
        cache.store(_KIND, (tool, folder, home), value, inputs, _SECONDS[found.complete])
    return found


def recall(tool: str, folder: str, environment: Mapping[str, str], home: str) -> ToolRegistries | None:
    """The cached result; *folder* is a real path."""
    value = cache.recall(_KIND, (tool, folder, home), environment)
    if value is None:
        return None
    registries, notes, inputs, programs, complete = value
    return ToolRegistries(tuple(Registry(*each) for each in registries), notes, inputs, programs, complete)


def discover(tool: str, folder: str, environment: Mapping[str, str], home: str) -> ToolRegistries:
    """The same, without the cache."""
    from netsandbox.config.registries.discovery import Discovery
    from netsandbox.config.registries.tools import TOOLS

    if tool not in TOOLS:
        raise UsageError(f"no registry is known for {tool!a}; use one of {', '.join(TOOLS)}")
    discovery = Discovery(folder, environment, home)
    registries = _registries(discovery, TOOLS[tool].settings(discovery))
    if not any(not each.project for each in registries):
        discovery.note(f"no registry of {tool} is known; allow it with --allow-domain")
    return ToolRegistries(
        tuple(registries),
        tuple(discovery.notes),
        tuple(discovery.inputs.items()),
        tuple(discovery.untrusted_places),
        discovery.complete,
    )


def _registries(discovery: Discovery, settings: Iterable[Setting]) -> list[Registry]:
    """One registry for each pattern and side. A project's registry that the user's settings also name is left out."""
    from netsandbox.config.registries.urls import NoRule, pattern_of

    found: dict[tuple[str, bool], Registry] = {}
    for each in settings:
        try:
            pattern = pattern_of(each.value)
        except NoRule as reason:
            if str(reason):
                discovery.note(f"{each.origin}: {reason}")
            continue
        found.setdefault((pattern, each.project), Registry(pattern, each.origin, each.project))
    return [each for (pattern, project), each in found.items() if not project or (pattern, False) not in found]
