"""Whose refusal it was: a text that the kernel adds to each message about one.

`(with message …)` on a deny changes no verdict; others report that the text follows the kernel's own words on a line of
its own, and that what the command starts has it too. It is drawn anew for each session and told to nobody inside: a
path that ends in it would make a refusal of another sandbox look like one of this session (attack 172).
"""

from __future__ import annotations

import os

from netsandbox.backends.seatbelt.profile.sbpl_string import quoted

BYTES = 16  # 128 bits
RULE = "(deny "


def new_tag() -> str:
    return f"netsandbox-{os.urandom(BYTES).hex()}"


def tagged(profile: str, tag: str) -> str:
    """A session's *profile* with *tag* on every deny.

    In those a rule begins a line, which holds its operations and nothing else, and no literal holds a line end.
    """
    return "\n".join(_tagged(line, tag) if line.startswith(RULE) else line for line in profile.split("\n"))


def _tagged(line: str, tag: str) -> str:
    head = line.removesuffix(")")
    return f"{head} (with message {quoted(tag)}){line[len(head) :]}"
