"""Workspaces of package managers: whether a manifest makes a folder the root of a workspace, for a folder inside. Pure.

A manifest of npm, Yarn or Bun lists its members, and a folder that is not listed is a package of its own. Cargo and uv
look for the root by its table alone; a package that is no member is an error there.
"""

from __future__ import annotations

from netsandbox.policy.path_patterns import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLES = {"Cargo.toml": "[workspace", "pyproject.toml": "[tool.uv.workspace"}
MAX_PATTERNS = 256


def is_root(manifest: str, text: str, member: str) -> bool:
    """Whether the file *manifest* with this *text* makes its folder the root of a workspace that the folder *member*,
    a path below it, lies in."""
    if manifest == "package.json":
        return '"workspaces"' in text and is_member(member, _patterns(text))
    table = _TABLES[manifest]
    lines = (line.strip() for line in text.splitlines())
    return any(line.startswith((f"{table}]", f"{table}.")) for line in lines)


def is_member(member: str, patterns: Sequence[str]) -> bool:
    """Whether the folder *member*, or one above it, fits a pattern, and no pattern with `!` leaves it out."""
    names = member.split("/")
    folders = [names[:count] for count in range(1, len(names) + 1)]
    wanted = [_parts(each) for each in patterns if not each.startswith("!")]
    unwanted = [_parts(each[1:]) for each in patterns if each.startswith("!")]
    return any(
        any(_fits(folder, parts) for parts in wanted) and not any(_fits(folder, parts) for parts in unwanted)
        for folder in folders
    )


def _parts(pattern: str) -> list[str]:
    """The names of a pattern. Alternatives (`{a,b}`) are read as any name."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return ["*" if "{" in part else part for part in parts]


def _fits(names: Sequence[str], parts: Sequence[str]) -> bool:
    """`**` stands for any number of names. The time is bounded by the product of the lengths."""
    reached = {0}  # how many names the parts so far can stand for
    for part in parts:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and matches(names[at], part)}
        if not reached:
            return False
    return len(names) in reached


def _patterns(text: str) -> list[str]:
    """The members that a `package.json` lists, as a list or below `packages`."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    listed = found.get("workspaces") if isinstance(found, dict) else None
    if isinstance(listed, dict):
        listed = listed.get("packages")
    if not isinstance(listed, list):
        return []
    return [each for each in listed[:MAX_PATTERNS] if isinstance(each, str)]
