"""The `[[secret]]` tables of a file: each is one rule for a secret, the same as a text of `network.secrets` (pure).

Like those, they need the user's trust in a project's file: one of them reads a value, or runs a command, on the host.
"""

from __future__ import annotations

import os

from netsandbox.config.http_tables import rule_tables
from netsandbox.config.layer import Setting
from netsandbox.config.paths import folder_of
from netsandbox.errors import UsageError
from netsandbox.policy.secret_rules import parse_secret
from netsandbox.text import shell_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from netsandbox.config.http_tables import Lines
    from netsandbox.config.layer import KeyPath

TABLE = "secret"
PLACE = ("network", "secrets")
WANTED = '[[secret]] with name = "GITHUB_TOKEN" and hosts = ["api.example.com"]'
_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1}
SCHEMA = {
    "description": "variables whose value stays outside",
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"description": "the variable inside, which has a placeholder", **_TEXT},
            "hosts": {"description": "the hosts that get the value", **_TEXTS},
            "registries": {"description": "tools whose registries get the value", **_TEXTS},
            "header": {"description": "the header that gets the value", "default": "authorization", **_TEXT},
            "query": {"description": "the parameter of the query that gets the value", **_TEXT},
            "env": {"description": "the variable of the host with the value; `name` if left out", **_TEXT},
            "file": {"description": "the file with the value", **_TEXT},
            "command": {"description": "the command that prints the value", **_TEXTS},
            "git": {"description": "git uses the value as the password of this user", **_TEXT},
            "optional": {"description": "leave it out without a value or mitmproxy", "type": "boolean"},
            "unless": {"description": "leave an optional one out if any of these variables is set", **_TEXTS},
            "pass_in_body": {"description": "bodies to these hosts may have the placeholder", "type": "boolean"},
        },
    },
}
KEYS = tuple(SCHEMA["items"]["properties"])  # type: ignore[index]
FLAGS = {"optional": "optional=yes", "pass_in_body": "body=pass"}


def secret_settings(path: str, content: object, lines: Lines) -> dict[KeyPath, Setting]:
    """The rules of the tables."""
    found: list[tuple[str, str]] = []
    for table, origin in rule_tables(TABLE, path, content, lines, KEYS, WANTED):
        text = _rule(table, folder_of(path), origin)
        parse_secret(text, origin)
        found.append((text, origin))
    return {PLACE: Setting(tuple(found), tuple(found))}


def _rule(table: dict[str, Any], folder: str, origin: str) -> str:
    for key, value in table.items():
        _check(key, value, origin)
    if "name" not in table:
        raise UsageError(f"{origin}: the secret has no name; write {WANTED}")
    parts = [*table.get("hosts", ()), *(f"registry={each}" for each in table.get("registries", ()))]
    parts += [f"{key}={table[key]}" for key in ("header", "query", "git", "env") if key in table]
    parts += [f"unless={each}" for each in table.get("unless", ())]
    parts += [text for key, text in FLAGS.items() if table.get(key)]
    if "file" in table:  # the last part, since it may have commas
        parts.append(f"file={os.path.normpath(os.path.join(folder, os.path.expanduser(table['file'])))}")
    if "command" in table:
        parts.append(f"command={' '.join(map(shell_quoted, table['command']))}")
    if len({"env", "file", "command"} & table.keys()) > 1:
        raise UsageError(f"{origin}: env, file and command exclude each other; leave all but one out")
    return f"{table['name']}@{','.join(parts)}"


def _check(key: str, value: object, origin: str) -> None:
    """`UsageError` for a value of the wrong type, or one that a rule's text would split."""
    if key in FLAGS:
        if not isinstance(value, bool):
            raise UsageError(f"{origin}: {key} has a value of the wrong type; write true or false")
        return
    is_list = key in ("hosts", "registries", "unless", "command")
    texts = value if is_list else [value]
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each for each in texts):
        kind = "a list of strings" if is_list else "a string"
        raise UsageError(f"{origin}: {key} has a value of the wrong type; write {kind}")
    if any("\0" in each or (key not in ("file", "command") and not {",", "=", "@"}.isdisjoint(each)) for each in texts):
        raise UsageError(f"{origin}: {key} has a character that does not belong there; write {WANTED}")
