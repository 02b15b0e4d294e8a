"""Stores an approval for later sessions: adds a rule to a file of the user and changes nothing else in it.

The files are in the configuration home, which no session can write, so no command can approve itself (INV-8).
"""

from __future__ import annotations

import os
import time

from netsandbox.config.document import layer_of, read
from netsandbox.config.toml_edit import missing, with_items
from netsandbox.errors import HostError, UsageError
from netsandbox.runtime.private_file import replace
from netsandbox.text import quoted

TABLE, KEY = "network", "allow_domains"


def with_rule(path: str, rule: str) -> str:
    """The text of the file at *path*, if any, with *rule* added; the same text if it has the rule."""
    try:
        text = read(path, regular=True).decode("utf-8") if os.path.lexists(path) else ""
        items = missing(text, TABLE, KEY, [(rule, f"approved on {time.strftime('%Y-%m-%d')}")])
    except ValueError:  # it is not TOML
        raise _unfit(path, rule) from None
    edited = with_items(text, TABLE, KEY, items)
    if edited is None:
        raise _unfit(path, rule)
    layer_of(path, edited.encode("utf-8"))  # an invalid file gets no more rules
    return edited


def add_rule(path: str, rule: str) -> None:
    """Write the file in one step; a link is followed."""
    text = with_rule(path, rule)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        replace(os.path.realpath(path), text.encode("utf-8"))
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}; write {KEY} = [{rule!a}] there yourself") from None


def _unfit(path: str, rule: str) -> UsageError:
    return UsageError(
        f"{quoted(path)[1:-1]} cannot be added to without changing more of it; write {rule} into its {KEY} yourself,"
        " or leave --for out"
    )
