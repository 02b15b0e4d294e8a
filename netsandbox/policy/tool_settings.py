"""Settings of package managers without their credentials. Pure.

A user who turns install scripts off (`ignore-scripts=true` in `~/.npmrc`) means sessions too, but the same file often
has a token. So a session gets the file without lines that could hold one. The rule is generous: a line that is not
understood is left out with all that belongs to it, and a file that is not understood is an error.
"""

from __future__ import annotations

import json
import re

from netsandbox.policy.redaction import names_credential

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Beside the names that `redaction` knows: who logs in, and certificates with keys.
_OTHERS = ("user", "email", "login", "ident", "cert", "keyfile")
_USER = re.compile(r"//[^\s\"']*@")  # of a URL; a password may have slashes
_QUERY = re.compile(r"(://[^\s\"'?#]*)[?#][^\s\"']*")
_NAMES = re.compile(r"([\w.-]+)[\"']?\s*[:=]")  # in the value: a table on one line
_TOKENS = re.compile(
    r"\b(npm_|gh[a-z]_|github_pat_|glpat-|pypi-|AKIA|eyJ)\w|^[\"']?(bearer|basic|token) ", re.IGNORECASE
)
_YAML = re.compile(
    r"^( *)((?:- +)*)(?:(:?[\"']?[\w.@/+*-]+[\"']?):(?: +(.*))?|([^:#{}\[\]&*!|>]+|[\"']?https?:[^{}]*))$"
)
_INI = re.compile(r"^()()([^=\s][^=]*?)(?:\s*=\s*(.*))?$")
_FLAG = re.compile(r"[a-z-]+")  # npm: a name alone is true
_WORDS = re.compile(r"^()()(\"[^\"]*\"|[^\s\"]+)(?:\s+(.*))?$")
# Bundler keeps the login of a host under the host's name, `BUNDLE_GEMS__EXAMPLE__COM`. These are settings.
_BUNDLER = ("bundle_build__", "bundle_local__", "bundle_mirror__")


def without_credentials(name: str, text: str) -> str:
    """The settings *text* of the file *name*, as its tool reads them. ValueError: they are not understood."""
    if "\0" in text:
        raise ValueError("it has zero bytes")
    if name.endswith(".toml"):
        return _toml(text)
    if name.endswith((".yml", ".yaml", ".gemrc", ".bundle/config")):
        return "".join(f"{line}\n" for line in _without_empty([*_kept(text, _YAML)]))
    return "".join(f"{line}\n" for line in _kept(text, _WORDS if name.endswith(".yarnrc") else _INI))


def is_credential(name: str) -> bool:
    plain = name.lower().strip("\"':")
    of_host = plain.startswith("bundle_") and "__" in plain and not plain.startswith(_BUNDLER)
    return of_host or names_credential(name) or any(part in plain for part in _OTHERS)


def plain_value(value: str) -> str | None:
    """*value* without logins in its URLs; None if it may hold a credential."""
    if _TOKENS.search(value) or any(is_credential(name) for name in _NAMES.findall(value)):
        return None
    return _QUERY.sub(r"\1", _USER.sub("//", value))


def _kept(text: str, form: re.Pattern[str]) -> Iterator[str]:
    """The lines that can be passed on. What is indented below a line that is left out is left out with it."""
    left_out: int | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        indent = len(line) - len(line.lstrip())
        is_item = form is _YAML and stripped.startswith("-") and stripped != "---"
        if left_out is not None and (indent > left_out or (is_item and indent == left_out)):
            continue
        kept = stripped if form is not _WORDS and _is_heading(stripped) else _line(line, form)
        left_out = indent if kept is None else None
        if kept is not None:
            yield kept


def _is_heading(line: str) -> bool:
    return line == "---" or (re.fullmatch(r"\[[\w. -]+\]", line) is not None and not is_credential(line))


def _line(line: str, form: re.Pattern[str]) -> str | None:
    found = form.match(line if form is _YAML else line.strip())
    if found is None:
        return None
    key, value = found[3], found[4] or ""
    if form is _INI and "=" not in line and line[:1] not in " \t" and not _FLAG.fullmatch(key):
        return None  # a token alone, perhaps
    if form is _YAML and key is None:  # an item of a list
        key, value = "", found[5]
    if form is _YAML and (value.startswith(("|", ">", "&", "*", "!")) or _is_open(value)):
        return None
    key, plain = plain_value(key), plain_value(value)  # pip continues a list of URLs in the next lines
    if key is None or plain is None or "\\" in key or is_credential(key):
        return None
    start = line[: len(line) - len(line.lstrip())] if form is not _YAML else f"{found[1]}{found[2]}"
    return f"{start}{key}{_between(form, line, key)}{plain}".rstrip()


def _between(form: re.Pattern[str], line: str, key: str) -> str:
    if form is _YAML:
        return ": " if key else ""
    if form is _WORDS:
        return " "
    return " = " if "=" in line else ""


def _is_open(value: str) -> bool:
    """Whether a value goes on in the next line."""
    return any(value.count(mark) % 2 for mark in "\"'") or any(
        value.count(first) != value.count(last) for first, last in ("[]", "{}")
    )


def _without_empty(lines: list[str]) -> list[str]:
    """Without the keys of tables that have nothing left: no tool expects one without a value."""
    kept: list[str] = []
    for line in reversed(lines):
        indent = len(line) - len(line.lstrip(" -"))
        below = len(kept[-1]) - len(kept[-1].lstrip(" -")) if kept else 0
        has_below = bool(kept) and (below > indent or kept[-1].lstrip().startswith("-"))
        if line.endswith(":") and line != "---" and not has_below:
            continue
        kept.append(line)
    return kept[::-1]


def _toml(text: str) -> str:
    import tomllib

    table = {key: _plain(value) for key, value in tomllib.loads(text).items() if not is_credential(key)}
    return "".join(f"{_string(key)} = {_written(value)}\n" for key, value in table.items() if value is not None)


def _plain(value: object) -> object:
    """*value* without credentials; None where nothing is left."""
    if isinstance(value, dict):
        found = {key: _plain(each) for key, each in value.items() if not is_credential(key)}
        return {key: each for key, each in found.items() if each is not None}
    if isinstance(value, list):
        return [each for each in map(_plain, value) if each is not None]
    return plain_value(value) if isinstance(value, str) else value


def _written(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_string(key)} = {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
