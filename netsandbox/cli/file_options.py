"""The options about files, joined with what the configuration says, and what is told about them."""

from __future__ import annotations

import os
import sys

from netsandbox.errors import UsageError
from netsandbox.paths import home, short
from netsandbox.policy.file_rules import FileRules, Place, is_lifted, path_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.cli.options import Parsed
    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.file_rules import PathRule


def file_rules(parsed: Parsed, file: FileSettings | None) -> FileRules:
    """Lists add up."""
    read, write, deny = (_said(parsed, name) for name in ("allow-read", "allow-write", "deny-read"))
    for rule in (*read, *(rule for rule in write if not rule.folder)):
        if not os.path.exists(rule.path):
            raise UsageError(f"{rule.origin}: {rule.path!a} does not exist; make it first, or correct it")
    if file is None:
        return FileRules(read, write or None, deny)
    both = (*(file.allow_write or ()), *write)
    return FileRules(
        (*file.allow_read, *read),
        None if file.allow_write is None and not write else both,
        (*file.deny_read, *deny),
        file.allow_execute,
    )


def _said(parsed: Parsed, name: str) -> tuple[PathRule, ...]:
    texts = parsed.all(name)
    return tuple(path_rule(text, f"--{name}", _working(), home) for text in texts)


def _working() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise UsageError("the working folder does not exist any more; change to one that does") from None


def _written(path: str) -> Place:
    plain = os.path.normpath(path)
    return Place(plain, plain)


def told_wide(files: FileRules) -> list[str]:
    """The user's word counts; but one word that shows every secret is worth a line."""
    own = Place(home(), os.path.realpath(home()))
    wide = [rule for rule in files.allow_read if is_lifted(own, (_written(rule.path),))]
    return [
        f"{rule.origin}: {rule.path} shows the command every secret of your home; name what it needs instead"
        for rule in wide
    ]


def told_files(files: FileRules) -> list[str]:
    """For `-v`: what is hidden here, where writing is confined to, and what could be written and is not there."""
    if sys.platform == "darwin":
        return []
    from netsandbox.backends.namespaces.file_view import file_view

    view = file_view(files, os.environb)
    closed = sorted((*view.folders, *view.files))
    lines = [f"hidden: {', '.join(map(shown, closed))}; --allow-read PATH shows a secret"] if closed else []
    if view.writable is not None:
        lines.append(f"writing is confined to {', '.join(map(shown, view.writable))}")
    return lines + _missing([rule for rule in files.allow_write or () if rule in view.missing])


def _missing(rules: list[PathRule]) -> list[str]:
    """A line for each file that names any."""
    by_file: dict[str, list[str]] = {}
    for rule in rules:
        file, _, line = rule.origin.rpartition(":")
        by_file.setdefault(file, []).append(f"{shown(rule.path)} (line {line})")
    advice = "make it first if the command needs it"
    return [f"{shown(file)}: to write, but missing: {', '.join(paths)}; {advice}" for file, paths in by_file.items()]


def shown(path: str) -> str:
    """*path* for a terminal: `~` for the home, nothing that the terminal would obey."""
    from netsandbox.text import single_line

    return single_line(short(path))
