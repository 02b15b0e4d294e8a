"""Notices about the rules for files: what they mean on this host, before the command runs.

The command line, files and profiles count alike, but only the user can correct a path: those of profiles that do not
exist are not worth a line.
"""

from __future__ import annotations

import os

from netsandbox.cli.notices import shown_path
from netsandbox.config.profiles.profile_files import is_profile_file
from netsandbox.paths import home, short, working_folder
from netsandbox.policy import home_paths
from netsandbox.policy.file_rules import OPEN, PROJECT, FileRules, ResolvedPath, is_lifted, is_within
from netsandbox.policy.shown_files import SYSTEM_SECRETS
from netsandbox.runtime.project import find_project
from netsandbox.system import IS_MACOS
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.policy.file_rules import PathRule
    from netsandbox.runtime.effective_rules import EffectiveRules

BROKER = "broker"  # the backend that cannot print its plan
# What a rule means whose path does not exist, or whose wildcards match nothing.
NOT_SHOWN = "not shown, even if {it} appear{s} later; make {it} first"
NOT_WRITABLE = "not writable, even if {it} appear{s} later; end {it} with / to have a folder made, or make {it} first"
NOT_HIDDEN = "not hidden: the command can read what appears there; make {it} first"
NOT_NEEDED = "is {what}, so the rule closes nothing; correct it, or leave it out"
NOT_KEPT = "not read-only: the command can make {it}; make {it} first"
NOT_LISTED = "not listed, even if {it} appear{s} later; write the path of a program or folder, such as /usr/bin/git"
MEANINGS = {
    "allow_read": NOT_SHOWN,
    "allow_write": NOT_WRITABLE,
    "allow_execute": NOT_LISTED,
    "deny_read": NOT_HIDDEN,
    "deny_write": NOT_KEPT,
}


def rule_lines(found: EffectiveRules, *, verbose: bool) -> list[str]:
    """What a user must know about the rules: contradictions, paths that do not exist, and secrets that are opened."""
    return [
        *(
            f"{_origin(each.allow)}: {shown_path(each.allow.path)} is denied by {_origin(each.deny)}"
            f" ({shown_path(each.deny.path)}), which wins; leave one of them out"
            for each in found.overruled
        ),
        *_void_lines(found),
        *wide_lines(found.rules),
        *_secret_lines(found.rules, verbose=verbose),
    ]


def _origin(rule: PathRule) -> str:
    return single_line(short(rule.origin))


# Paths that do not exist


def _void_lines(found: EffectiveRules) -> list[str]:
    rules, writable = found.rules, _writable(found.rules)
    lines = []
    for name, meaning in MEANINGS.items():
        unmatched = [rule for kind, rule in found.unmatched if kind == name]
        # A Mac compares names, so that a rule holds for a path that appears later.
        absent = [] if IS_MACOS else [rule for rule in getattr(rules, name) if _is_void(rule, name)]
        for what, group in (("missing", absent), ("matched by nothing", unmatched)):
            kept = [rule for rule in group if _matters(rule, name, rules, writable)]
            lines += _grouped(kept, what, meaning)
            for rule in group:
                if name.startswith("deny") and rule not in kept and rule.origin.startswith("--"):  # a slip of the pen
                    lines.append(f"{rule.origin}: {shown_path(rule.path)} {NOT_NEEDED.format(what=what)}")
    return lines


def _is_void(rule: PathRule, name: str) -> bool:
    return not (rule.folder and name == "allow_write") and not os.path.exists(rule.path)


def _matters(rule: PathRule, name: str, rules: FileRules, writable: tuple[str, ...]) -> bool:
    """Not a rule of a profile; nor a rule that forbids what is not there anyway."""
    if is_profile_file(rule.origin):
        return False
    if name == "allow_execute":
        return rules.listed_only
    if name.startswith("allow"):
        return rules.mode == PROJECT or (name == "allow_write" and rules.mode != OPEN)
    literal = rule.path[: rule.wild] if rule.wild else rule.path
    return rules.mode != PROJECT or any(is_within(os.path.realpath(literal), folder) for folder in writable)


def _writable(rules: FileRules) -> tuple[str, ...]:
    """The folders of the host that a session in the mode `project` writes."""
    project = project_folder()
    named = [os.path.realpath(rule.path) for rule in rules.allow_write]
    return (*([project] if project else []), *named)


def project_folder() -> str | None:
    here = working_folder()
    found = find_project(os.path.realpath(here), os.path.realpath(home())) if here is not None else None
    return found.folder if found else None


def _grouped(rules: list[PathRule], what: str, meaning: str) -> list[str]:
    """A line for each option and each file."""
    groups: dict[str, list[str]] = {}
    for rule in rules:
        file, _, line = rule.origin.rpartition(":")
        path = shown_path(rule.path)
        groups.setdefault(file or rule.origin, []).append(f"{path} (line {line})" if file else path)
    lines = []
    for where, paths in groups.items():
        single = len(paths) == 1
        text = meaning.format(it="it" if single else "them", s="s" if single else "")
        text = text.replace("if them appear", "if they appear")
        lines.append(f"{shown_path(where)}: {few(paths)} {'is' if single else 'are'} {what}, so {text}")
    return lines


# Secrets


def wide_lines(files: FileRules) -> list[str]:
    """The user's rule is followed, but a rule that opens the whole home gets a notice."""
    own = ResolvedPath(home(), os.path.realpath(home()))
    written = files.allow_write if files.mode != OPEN else ()
    kinds = (
        (files.allow_read, "shows the command every secret of your home"),
        (written, "lets the command change nearly everything in your home"),
    )
    return [
        f"{_origin(rule)}: {shown_path(rule.path)} {what}; name what it needs"
        for rules, what in kinds
        for rule in rules
        if is_lifted(own, (_as_place(rule.path),))
    ]


def _secret_lines(files: FileRules, *, verbose: bool) -> list[str]:
    """What rules of the command line open of the places of secrets; with *verbose*, the other rules too."""
    lines = []
    for rules, act in ((files.allow_read, "read"), (files.allow_write, "read and change")):
        for rule in rules:
            if verbose or rule.origin.startswith("--"):
                opened = secrets_in(rule.path)
                if opened and (act == "read" or opened == [os.path.normpath(rule.path)]):  # others stay hidden
                    what = few(map(shown_path, opened))
                    lines.append(f"{_origin(rule)}: the command can {act} {what}, which may hold secrets")
    return lines


def secrets_in(path: str) -> list[str]:
    """The existing places of secrets in *path*; *path* itself if it lies in one. None for the home and above it."""
    own, plain = home(), os.path.normpath(path)
    if is_within(own, plain):
        return []
    names = (*(home_paths.OF_MAC if IS_MACOS else home_paths.OF_LINUX), *home_paths.AGENTS)
    pairs = home_paths.moves(dict(os.environ), own, os.curdir)
    places = (*(f"{own}/{name}" for name in names), *home_paths.moved(names, pairs), *SYSTEM_SECRETS)
    if any(is_within(plain, place) for place in places):
        return [plain] if os.path.lexists(plain) else []
    return [place for place in dict.fromkeys(places) if is_within(place, plain) and os.path.lexists(place)]


def _as_place(path: str) -> ResolvedPath:
    plain = os.path.normpath(path)
    return ResolvedPath(plain, plain)


# For `run -v`


def file_view_lines(files: FileRules, backend: str | None = None) -> list[str]:
    """What the command sees and writes. *backend* is the user's choice."""
    if IS_MACOS:
        return []
    if files.mode == PROJECT:
        return [_project_line(files) + ("" if backend == BROKER else "; `--dry-run` lists all")]
    from netsandbox.backends.linux.file_view import file_view

    view = file_view(files, os.environb)
    closed = sorted((*view.folders, *view.files))
    lines = [f"hidden: {', '.join(map(shown_path, closed))}; --allow-read PATH shows a secret"] if closed else []
    if view.writable is not None:
        lines.append(f"writing is confined to {', '.join(map(shown_path, view.writable))}")
    return lines


def _project_line(files: FileRules) -> str:
    project = project_folder()
    groups = (
        ("writable", [project] if project else ["no project"]),
        ("and", _existing(files.allow_write)),
        ("shown", _existing(files.allow_read)),
        ("cached", _existing(files.caches)),
        ("copied", _existing(files.copies)),
        ("read-only", _existing(files.deny_write)),
        ("hidden", _existing(files.deny_read)),
    )
    told = [f"{name} {few(map(shown_path, dict.fromkeys(paths)))}" for name, paths in groups if paths]
    return f"files: system and toolchains, a private home; {', '.join(told)}"


def _existing(rules: Iterable[PathRule]) -> list[str]:
    return [rule.path for rule in rules if rule.folder or os.path.exists(rule.path)]
