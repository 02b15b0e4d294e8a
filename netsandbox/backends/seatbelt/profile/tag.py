"""Identifies a session's refusals by a text that the kernel adds to each message about one.

`(with message …)` on a deny changes no verdict. Others report that the text follows the kernel's message on a separate
line, and that it also appears for processes that the command starts. The tag is random for each session and unknown
inside: a path that ends in it would make a refusal of another sandbox look like one of this session (attack 172).
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

    In such a profile a rule begins a line, which has only its operations, and no literal has a line end.
    """
    return "\n".join(_tagged(line, tag) if line.startswith(RULE) else line for line in profile.split("\n"))


def _tagged(line: str, tag: str) -> str:
    head = line.removesuffix(")")
    return f"{head} (with message {quoted(tag)}){line[len(head) :]}"
