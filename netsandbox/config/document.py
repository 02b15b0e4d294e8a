"""Turns a TOML file, or a JSON file of other sandboxes, into a layer.

Rules kept: an unreadable file, an unknown table or key, a value of the wrong type and a malformed rule are each an
error with file and line, and the command never starts. Nothing is skipped, guessed or defaulted.
"""

from __future__ import annotations

import os
import stat

from netsandbox.config.key import Entry
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Layer, Setting, joined
from netsandbox.config.source_lines import locate
from netsandbox.errors import UsageError
from netsandbox.text import did_you_mean, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from netsandbox.config.key import Key
    from netsandbox.config.layer import KeyPath

    Lines = Mapping[tuple[str | int, ...], int]
    Tables = Mapping[str, Mapping[str, Key]]

JSON = ".json"
HTTP, SECRET = "http", "secret"  # lists of tables: `[[http]]`, `[[secret]]`
MAX_SIZE = 64 * 1024 * 1024
MAX_UNTRUSTED_SIZE = 64 * 1024
MAX_UNTRUSTED_DOTS = 4096  # tomllib needs quadratic time for the parts of one key


def read_layer(path: str) -> Layer:
    """The layer in the file at *path*."""
    return layer_of(path, read(path))


def layer_of(path: str, data: bytes, *, trusted: bool = True) -> Layer:
    """The layer in *data*, the content of the file at *path* (pure)."""
    document, lines = parsed(path, data)
    return checked(path, document, lines, KEYS, trusted=trusted)


def parsed(path: str, data: bytes) -> tuple[dict[str, Any], Lines]:
    """The tables of a file and the line of each value, as plain values for the cache (pure)."""
    text = _decode(path, data)
    if path.endswith(JSON):
        from netsandbox.config.json_document import parsed_json

        return parsed_json(path, text)
    document = _parse(path, text)
    if not document:
        raise UsageError(f"{path}: the file sets nothing; write a [network] table, or remove the file")
    return document, locate(text)


def checked(path: str, document: dict[str, Any], lines: Lines, tables: Tables, *, trusted: bool = True) -> Layer:
    """The layer that *document* makes, if every table and key of it is one of *tables* (pure)."""
    values: dict[KeyPath, Setting] = {}
    requests: dict[KeyPath, Setting] = {}
    for table, content in document.items():
        origin = f"{path}:{lines.get((table,), 1)}"
        keys = tables.get(table)
        if table == HTTP and "network" in tables:
            from netsandbox.config.http_tables import http_settings

            requests.update(http_settings(path, content, lines))
            continue
        if table == SECRET and "network" in tables:
            from netsandbox.config.secret_tables import secret_settings

            requests.update(secret_settings(path, content, lines))
            continue
        if keys is None:
            raise UsageError(f"{origin}: {_unknown('table', table, tables)}")
        if not isinstance(content, dict):
            raise UsageError(f"{origin}: {table} is not a table; write [{table}] on a line of its own")
        for name, value in content.items():
            entry = Entry(path, (table, name), value, lines)
            if name not in keys:
                raise UsageError(f"{entry.origin()}: {_unknown('key', name, keys)}")
            place = keys[name].alias_of or (table, name)
            if place in values:
                raise UsageError(
                    f"{entry.origin()}: {table}.{name} is {'.'.join(place)} set twice; leave one of them out"
                )
            values[place] = Setting(keys[name].read(entry), _items(entry), (entry.origin(),) if value == [] else ())
    for place, setting in requests.items():
        values[place] = joined(values.get(place), setting)
    return Layer(path, values, trusted)


def _items(entry: Entry) -> tuple[tuple[object, str], ...]:
    if isinstance(entry.value, list):
        return tuple((item, entry.origin(index)) for index, item in enumerate(entry.value))
    return ((entry.value, entry.origin()),)


def read(path: str, *, regular: bool = False, of_root: bool = False) -> bytes:
    """The content of the file, of bounded size. *regular*: only a regular file, because reading a pipe could block.
    *of_root*: only a file that root alone can have written."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if regular else 0)), "rb") as file:
            state = os.fstat(file.fileno())
            if regular and not stat.S_ISREG(state.st_mode):
                raise UsageError(f"{path}: not a file; remove it, or leave configuration out with --no-config")
            if of_root and (state.st_uid != 0 or state.st_mode & 0o022):
                raise UsageError(f"{path}: users other than root can write it; as root, run chown root and chmod go-w")
            data = file.read(MAX_SIZE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{path}: cannot read the configuration: {reason}; check the path, or who may read it"
        ) from None
    if len(data) > MAX_SIZE:
        raise UsageError(f"{path}: larger than {MAX_SIZE} bytes; check the path")
    return data


def check_short(path: str, data: bytes) -> None:
    """Refuse an untrusted file that takes too long to parse: a command may have written it to delay every start."""
    if len(data) > MAX_UNTRUSTED_SIZE or data.count(b".") > MAX_UNTRUSTED_DOTS:
        raise UsageError(
            f"{path}: too long to be read before it is trusted; look at it, then run `netsandbox trust`, shorten or"
            " remove it, or leave configuration out with --no-config"
        )


def _decode(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from None


def _parse(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        what, _, place = str(error).partition(" (at line ")
        line = f":{place.partition(',')[0]}" if place else ""
        raise UsageError(f"{path}{line}: invalid TOML: {quoted(what)[1:-1]}; correct the file") from None
    except ValueError:  # Python refuses a number of thousands of digits
        raise UsageError(f"{path}: invalid TOML: a number without end; correct the file") from None


def _unknown(kind: str, name: str, known: Mapping[str, object]) -> str:
    advice = did_you_mean(name, known, f"use one of {', '.join(known)}", 0.5)
    return f"unknown {kind} {quoted(name)}; {advice}"
