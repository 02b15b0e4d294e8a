"""The settings file of an agent that a session changes in a private copy: what the copy starts with, and what of it the
host takes over. Pure.

`~/.claude.json` holds counters and a login beside commands that the host runs (`mcpServers`) and rights that the user
gave (`allowedTools`, trust in a folder). Only names that are listed here go back to the host; all others stay in the
copy, which is kept for the project.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Settings = dict[str, Any]

HARMLESS = frozenset(
    (
        *("numStartups", "firstStartTime", "userID", "machineID", "theme", "editorMode", "verbose"),
        *("hasCompletedOnboarding", "lastOnboardingVersion", "lastReleaseNotesSeen", "migrationVersion"),
        *("seenNotifications", "tipsHistory", "promptQueueUseCount", "memoryUsageCount", "oauthAccount"),
        *("hasAvailableSubscription", "subscriptionNoticeCount", "claudeCodeFirstTokenDate"),
    )
)
OF_PROJECT = frozenset(
    (
        *("history", "exampleFiles", "exampleFilesGeneratedAt", "projectOnboardingSeenCount"),
        *("hasCompletedProjectOnboarding", "lastCost", "lastAPIDuration", "lastDuration", "lastLinesAdded"),
        *("lastLinesRemoved", "lastTotalInputTokens", "lastTotalOutputTokens", "lastSessionId"),
    )
)
# What is worth a line if a session changed it; a part of the name, in lower case.
TOLD = ("mcp", "hook", "command", "helper", "permission", "trust", "allowed", "env", "bypass", "approved")


def start_with(host: Settings, kept: Settings) -> Settings:
    """The host's settings, with what earlier sessions of the project added; the host's value of a name wins."""
    result = dict(host)
    for name, value in kept.items():
        if name not in host:
            result[name] = value
        elif isinstance(value, dict) and isinstance(host[name], dict):
            result[name] = start_with(host[name], value)
    return result


def merge(before: Settings, after: Settings, host: Settings, project: str) -> tuple[Settings, list[str]]:
    """The host's settings with the harmless changes between *before* and *after*, and names of those that are not
    taken over and that the user wants to know."""
    result = dict(host)
    told: list[str] = []
    for name in (*after, *(each for each in before if each not in after)):
        if before.get(name) == after.get(name):
            continue
        if name == "projects":
            told += _merge_projects(_table(before, name), _table(after, name), result, project)
        elif name in HARMLESS and name in after:
            result[name] = after[name]
        elif _is_told(name):
            told += _changed(name, before.get(name), after.get(name))
    return result, told


def _merge_projects(before: Settings, after: Settings, result: Settings, project: str) -> Iterator[str]:
    for path, table in after.items():
        if before.get(path) == table or not isinstance(table, dict):
            continue
        old = _table(before, path)
        taken = {name: value for name, value in table.items() if name in OF_PROJECT and old.get(name) != value}
        if taken and (path == project or path.startswith(f"{project}/")):
            known = _table(result, "projects")
            result["projects"] = {**known, path: {**_table(known, path), **taken}}
        for name, value in table.items():
            if old.get(name) != value and value and _is_told(name):
                yield from _changed(name, old.get(name), value)


def _changed(name: str, old: Any, new: Any) -> Iterator[str]:
    if not isinstance(new, dict):
        yield name
        return
    known = old if isinstance(old, dict) else {}
    for each in (*new, *(one for one in known if one not in new)):
        if known.get(each) != new.get(each):
            yield f"{name}.{each}"


def _is_told(name: str) -> bool:
    lower = name.lower()
    return any(part in lower for part in TOLD)


def _table(settings: Settings, name: str) -> Settings:
    value = settings.get(name)
    return value if isinstance(value, dict) else {}
