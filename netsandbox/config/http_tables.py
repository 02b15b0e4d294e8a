"""The `[[http]]` tables of a file: each is one rule for requests, the same as a text of `network.allow_http` or
`network.deny_http` (pure)."""

from __future__ import annotations

from netsandbox.config.layer import Setting
from netsandbox.errors import UsageError
from netsandbox.policy.http_rules import parse_http
from netsandbox.text import did_you_mean, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from netsandbox.config.layer import KeyPath

    Lines = Mapping[tuple[str | int, ...], int]

TABLE = "http"
KEYS = ("url", "methods", "verdict")
ALLOW, DENY = ("network", "allow_http"), ("network", "deny_http")
VERDICTS = {"allow": ALLOW, "deny": DENY}
WANTED = '[[http]] with url = "https://api.example.com/v1/**", and methods = ["GET"] or verdict = "deny" if needed'
SCHEMA = {
    "description": "rules for requests",
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["url"],
        "properties": {
            "url": {"description": "host pattern and path glob", "type": "string", "minLength": 1},
            "methods": {"description": "every method if left out", "type": "array", "items": {"type": "string"}},
            "verdict": {"enum": list(VERDICTS), "default": "allow"},
        },
    },
}


def http_settings(path: str, content: object, lines: Lines) -> dict[KeyPath, Setting]:
    """The rules of the tables, by the key that they stand for."""
    found: dict[KeyPath, list[tuple[str, str]]] = {}
    for table, origin in rule_tables(TABLE, path, content, lines, KEYS, WANTED):
        place, text = _rule(table, origin)
        parse_http(text, origin, deny=place == DENY)
        found.setdefault(place, []).append((text, origin))
    return {place: Setting(tuple(rules), tuple(rules)) for place, rules in found.items()}


def rule_tables(
    name: str, path: str, content: object, lines: Lines, keys: Sequence[str], wanted: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """Each table of a list with its origin; `UsageError` for anything else, or for a key that is not among *keys*."""
    first = lines.get((name,), 1)
    if not isinstance(content, list) or not content:
        raise UsageError(f"{path}:{first}: {name} is not a list of tables; write {wanted}")
    for index, table in enumerate(content):
        origin = f"{path}:{lines.get((name, index), first)}"
        if not isinstance(table, dict):
            raise UsageError(f"{origin}: this is not a table; write {wanted}")
        for key in table:
            if key not in keys:
                advice = did_you_mean(key, dict.fromkeys(keys), f"use one of {', '.join(keys)}", 0.5)
                raise UsageError(f"{origin}: unknown key {quoted(key)}; {advice}")
        yield table, origin


def _rule(table: dict[str, Any], origin: str) -> tuple[KeyPath, str]:
    url, methods, verdict = table.get("url"), table.get("methods", []), table.get("verdict", "allow")
    if not isinstance(url, str) or not url or verdict not in VERDICTS:
        raise UsageError(f"{origin}: the rule is not complete; write {WANTED}")
    if not isinstance(methods, list) or not all(isinstance(each, str) and each for each in methods):
        raise UsageError(f'{origin}: methods has a value of the wrong type; write ["GET", "HEAD"]')
    return VERDICTS[verdict], f"{','.join(methods)} {url}" if methods else url
