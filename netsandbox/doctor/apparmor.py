"""The AppArmor profile that lets the helper, and no other program, make user namespaces.

Ubuntu 23.10 and later take the capabilities in a new user namespace away from every program that no profile names
(`kernel.apparmor_restrict_unprivileged_userns`). AppArmor knows a program by its path, so the profile is worth as much
as that path is protected: each account that can write there has the right too. `writers_objection` draws the line.

One profile names the helpers of all installations of this machine. Text only; `apparmor_files` writes and loads it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat

from netsandbox.text import quoted

NAME = "netsandbox"
HEADER = "# Written by `netsandbox doctor --fix --apply`; `netsandbox doctor --fix --remove` removes it.\n"
HELPER_MARK = "# helper: "
ROOT = 0
# A pattern that is read otherwise than it was meant names other programs, so nothing is escaped: others are refused.
PLAIN = frozenset("/._+-@~=%: ")
ACCESS_LISTS = "system.posix_acl_access"


def profile_text(helpers: list[str]) -> str:
    """The whole file, for the helpers at these real paths."""
    marks = "".join(f"{HELPER_MARK}{path}\n" for path in helpers)
    return (
        f"{HEADER}{marks}abi <abi/4.0>,\ninclude <tunables/global>\n\n"
        f"profile {NAME} {_attachment(helpers)} flags=(unconfined) {{\n"
        f"  userns,\n\n  include if exists <local/{NAME}>\n}}\n"
    )


def _attachment(helpers: list[str]) -> str:
    pattern = helpers[0] if len(helpers) == 1 else f"/{{{','.join(path[1:] for path in helpers)}}}"
    return f'"{pattern}"' if " " in pattern else pattern


def named_helpers(text: str) -> list[str] | None:
    """The helpers that a file of ours names; None for a file that somebody else wrote."""
    if not text.startswith(HEADER):
        return None
    return [line.removeprefix(HELPER_MARK) for line in text.splitlines() if line.startswith(HELPER_MARK)]


def path_objection(helper: str) -> str | None:
    """Why AppArmor could read *helper* as a pattern; None if it cannot."""
    strange = sorted({char for char in helper if not (char.isalnum() or char in PLAIN)})
    if not strange and helper.startswith("/"):
        return None
    return (
        f"the path of the helper has characters that mean something to AppArmor ({quoted(''.join(strange))} in "
        f"{quoted(helper)}); install netsandbox in a folder whose path has letters and digits only"
    )


def owner_of(helper: str) -> int:
    """The account, besides root, that may change the helper; that of root if nobody else may."""
    return max((os.lstat(path).st_uid for path in _path_and_folders(helper)), default=ROOT)


def writers_objection(helper: str) -> str | None:
    """Why others than root and one account could replace the helper; None if they cannot.

    One account may: it is the usual installation (pipx, uv, a venv), and the only other way to sessions with
    namespaces would be to lift the restriction for all programs of all users.
    """
    owners: set[int] = set()
    for path in _path_and_folders(helper):
        facts = os.lstat(path)
        owners |= {facts.st_uid} - {ROOT}
        if len(owners) > 1:
            return _objection(path, "belongs to a second account")
        if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX:
            continue  # only the owner of an entry can replace it, and owners are counted
        if facts.st_mode & stat.S_IWOTH:
            return _objection(path, "can be written by everybody")
        if facts.st_mode & stat.S_IWGRP and not _is_private(path, facts.st_gid, facts.st_uid):
            return _objection(path, "can be written by a group")
    return None


def _path_and_folders(helper: str) -> list[str]:
    parts = [helper]
    while parts[-1] != "/":
        parts.append(os.path.dirname(parts[-1]))
    return parts


def _objection(path: str, why: str) -> str:
    return (
        f"{quoted(path)} {why}, whose programs could put themselves in the helper's place and get user namespaces; "
        "install netsandbox as root, for instance in /opt/netsandbox, or take that right away"
    )


def _is_private(path: str, group: int, owner: int) -> bool:
    """Whether *group* is root's, or the owner's alone: many systems give each account a group of its name."""
    try:
        if ACCESS_LISTS in os.listxattr(path, follow_symlinks=False):
            return False  # the mode shows the sum of the list, and anybody may be on it
        if group == ROOT:
            return True
        name, members = pwd.getpwuid(owner).pw_name, grp.getgrgid(group)
    except (OSError, KeyError):  # nobody knows who is on the list, or who the group is
        return False
    return members.gr_name == name and set(members.gr_mem) <= {name}
