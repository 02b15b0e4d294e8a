"""Around a session in the modes `readable` and `open`: what is noted before it, and what its user must know."""

from __future__ import annotations

import os

from netsandbox.backends.linux.file_view import TEMPORARY, second_names, used_caches
from netsandbox.paths import short, working_folder
from netsandbox.policy.file_rules import OPEN
from netsandbox.runtime.written_folders import EVERYWHERE, remember_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.backends.linux.file_view import FileView
    from netsandbox.policy.file_rules import FileRules


def second_name_notice(view: FileView) -> str | None:
    found = second_names(view)
    if not found:
        return None
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    text = f"{short(found[0])!a}{more}: hidden, but a hard link is a second name by which it may be read"
    return f"{text}; use --files project, which shows no other folder"


def remember_open_folders(rules: FileRules, environment: Mapping[bytes, bytes]) -> None:
    """Note what a session in the modes `readable` and `open` can write. *environment* is the command's."""
    working = working_folder()
    if rules.mode == OPEN:
        remember_written(EVERYWHERE)
    usual = (working, *TEMPORARY, os.fsdecode(environment.get(b"TMPDIR", b"")))
    named = (rule.path for rule in (*rules.allow_write, *used_caches(rules, environment, working)))
    for path in (*usual, *named):
        if path:
            remember_written(os.path.realpath(path))
