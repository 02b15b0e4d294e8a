"""The registries that a profile's tools use, as a layer of rules: what the user and the tools say, never the project.

The user's file that names a registry is shown to the command, though it may be a place of secrets: the tool could not
use the registry without it. What only a project's file says, or one that a session may have written, counts once the
user has trusted that file (`netsandbox trust .npmrc`), with the content that was read: a file that changed in between
is not believed. Nor is a program asked that a session may have put there, before it is trusted.
"""

from __future__ import annotations

import os

from netsandbox.config.layer import Layer, Setting
from netsandbox.config.registries import cache
from netsandbox.config.registries.lookup import hosts
from netsandbox.config.trust import is_trusted
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.paths import home, short
from netsandbox.policy.file_rules import PathRule
from netsandbox.policy.rules import parse_domain
from netsandbox.runtime.fingerprint import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.config.registries.answer import Answer, Registry
    from netsandbox.policy.rules import DomainRule

PLACE = ("network", "allow_domains")
SHOWN = ("filesystem", "allow_read")
_LARGEST = 1 << 20  # as `registries.files` has it


@frozen
class Asked:
    """`untrusted`: each host that a file of the project (or of a session) asks for, and where; and programs."""

    layer: Layer
    notes: tuple[str, ...]
    untrusted: tuple[tuple[str, str], ...]


def asked(tool: str, environment: Mapping[str, str]) -> Asked:
    """The layer of one tool in the folder that we are in."""
    answer = _answer(tool, environment)
    rules: list[DomainRule] = []
    shown: dict[str, PathRule] = {}
    notes = list(answer.notes)
    untrusted = [(f"what it calls the registry of {tool}", f"{path}:1") for path in answer.unasked]
    for each in answer.registries:
        if each.project and not _is_trusted(each, answer, environment):
            untrusted.append((each.pattern, each.origin))
            continue
        origin, file = f"{tool} ({short(each.origin)})", _file(each, answer)
        try:
            rules.append(parse_domain(each.pattern, origin))
        except UsageError as error:
            notes.append(str(error))
            continue
        if file is not None and not each.project:
            shown.setdefault(file, PathRule(file, origin))
    return Asked(_layer(tool, rules, list(shown.values())), tuple(notes), tuple(untrusted))


def _layer(tool: str, rules: list[DomainRule], shown: list[PathRule]) -> Layer:
    values = {}
    if rules:
        values[PLACE] = Setting(tuple(rules), tuple((rule.text, rule.origin) for rule in rules))
    if shown:
        values[SHOWN] = Setting(tuple(shown), tuple((rule.path, rule.origin) for rule in shown))
    return Layer(tool, values)


def project_registries(tool: str, environment: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """What only the project's files ask for: pattern, file and origin of each."""
    answer = _answer(tool, environment)
    return [
        (each.pattern, file, each.origin)
        for each in answer.registries
        if each.project and (file := _file(each, answer)) is not None
    ]


def unasked_programs(tool: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Those that would be asked if the user trusted them."""
    return _answer(tool, environment).unasked


def looked_at(tool: str, environment: Mapping[str, str]) -> frozenset[str]:
    """The files that the answer of *tool* rests on."""
    return frozenset(name for name, _ in _answer(tool, environment).consulted if name[:1] == "/")


def _answer(tool: str, environment: Mapping[str, str]) -> Answer:
    folder = os.getcwd()
    known = cache.recall(tool, os.path.realpath(folder), home(), environment)
    if known is not None:
        return known
    from netsandbox.config.profiles.progress import Progress

    with Progress(f"asking {tool} which registries it uses"):
        return hosts(tool, folder, environment, home())


def _file(registry: Registry, answer: Answer) -> str | None:
    """The file that names it: its origin is the file and a place in it."""
    named = [path for path, _ in answer.consulted if path[:1] == "/" and registry.origin.startswith(f"{path}:")]
    return max(named, key=len, default=None)


def _is_trusted(registry: Registry, answer: Answer, environment: Mapping[str, str]) -> bool:
    """Whether the user said yes to the very file that the answer was read from; anything unclear is a no (INV-1)."""
    path = _file(registry, answer)
    if path is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return False
    return is_trusted(path, data) and dict(answer.consulted).get(path) == stamp(path, environment)
