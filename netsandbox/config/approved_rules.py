"""Stores an approval for later sessions: adds a rule to a file of the user and changes nothing else in it.

The files are in the configuration home, which no session can write, so no command can approve itself (INV-8).
"""

from __future__ import annotations

import os
import time

from netsandbox.config.document import layer_of, read
from netsandbox.config.ending_rules import UNTIL, ends_of, written_end
from netsandbox.config.toml_edit import missing, with_items
from netsandbox.errors import HostError, UsageError
from netsandbox.runtime.private_file import replace
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.config.layer import KeyPath


DOMAINS: KeyPath = ("network", "allow_domains")


def with_rule(path: str, rule: str, place: KeyPath = DOMAINS, until: int | None = None) -> str:
    """The text of the file at *path*, if any, with *rule* added to the list at *place*; the same text if it has the
    rule. *until*: the rule counts until then; one that is there already without an end keeps none."""
    try:
        text = read(path, regular=True).decode("utf-8") if os.path.lexists(path) else ""
        items = missing(text, *place, [(rule, f"approved on {time.strftime('%Y-%m-%d')}")])
        has_end = bool(text) and rule in ends_of(layer_of(path, text.encode("utf-8")))
        ends = [(written_end(rule, until), "")] if until is not None and (items or has_end) else []
    except ValueError:  # it is not TOML
        raise _unfit(path, place[1], rule) from None
    edited = with_items(text, *place, items)
    if edited is not None and ends:
        edited = with_items(edited, *UNTIL, missing(edited, *UNTIL, ends))
    if edited is None:
        raise _unfit(path, place[1], rule)
    layer_of(path, edited.encode("utf-8"))  # an invalid file gets no more rules
    return edited


def add_rule(path: str, rule: str, place: KeyPath = DOMAINS, until: int | None = None) -> None:
    """Write the file in one step; a link is followed."""
    text = with_rule(path, rule, place, until)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        replace(os.path.realpath(path), text.encode("utf-8"))
    except OSError as error:
        raise HostError(
            f"cannot write {path}: {error.strerror}; write {place[1]} = [{rule!a}] there yourself"
        ) from None


def _unfit(path: str, key: str, rule: str) -> UsageError:
    return UsageError(
        f"{quoted(path)[1:-1]} cannot be added to without changing more of it; write {rule} into its {key} yourself,"
        " or leave --for out"
    )
