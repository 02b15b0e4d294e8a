"""The registries of a tool: from memory if nothing changed, else by reading its settings and asking it."""

from __future__ import annotations

import os

from netsandbox.config.registries import cache
from netsandbox.config.registries.answer import Answer, Registry
from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from netsandbox.config.registries.discovery import Discovery
    from netsandbox.config.registries.setting import Setting

TOOLS = {  # which module knows the tool
    "npm": "node",
    "yarn": "node",
    "pnpm": "node",
    "bun": "node",
    "pip": "python",
    "uv": "python",
    "poetry": "python",
    "pipenv": "python",
    "pdm": "python",
    "cargo": "cargo",
    "go": "go",
    "gem": "ruby",
    "bundle": "ruby",
    "mvn": "java",
    "gradle": "gradle",
    "git": "git",
}


def hosts(tool: str, folder: str, environment: Mapping[str, str], home: str) -> Answer:
    """The registries that *tool* uses in *folder* for a user with these variables and this home."""
    if tool not in TOOLS:
        raise UsageError(f"no registry is known for {tool!a}; use one of {', '.join(TOOLS)}")
    folder = os.path.realpath(folder)
    answer = cache.recall(tool, folder, home, environment)
    if answer is None:
        answer = ask(tool, folder, environment, home)
        cache.keep(tool, folder, home, answer)
    return answer


def ask(tool: str, folder: str, environment: Mapping[str, str], home: str) -> Answer:
    """The same without memory."""
    from importlib import import_module

    from netsandbox.config.registries.discovery import Discovery

    inquiry = Discovery(folder, environment, home)
    search: Callable[[Discovery], Iterable[Setting]]
    search = getattr(import_module(f"netsandbox.config.registries.{TOOLS[tool]}"), tool)
    registries = _registries(inquiry, search(inquiry))
    if not any(not each.project for each in registries):
        inquiry.note(f"no registry of {tool} is known; allow it with --allow-domain")
    consulted, unasked = tuple(inquiry.consulted.items()), tuple(inquiry.unasked)
    return Answer(tuple(registries), tuple(inquiry.notes), consulted, unasked, inquiry.complete)


def _registries(inquiry: Discovery, said: Iterable[Setting]) -> list[Registry]:
    """One for each pattern and side; what the user says needs not be asked for by the project as well."""
    from netsandbox.config.registries.destination import Skipped, pattern_of

    found: dict[tuple[str, bool], Registry] = {}
    for each in said:
        try:
            pattern = pattern_of(each.text)
        except Skipped as reason:
            if str(reason):
                inquiry.note(f"{each.origin}: {reason}")
            continue
        found.setdefault((pattern, each.project), Registry(pattern, each.origin, each.project))
    return [each for (pattern, project), each in found.items() if not project or (pattern, False) not in found]
