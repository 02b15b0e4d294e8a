"""`netsandbox learn -- CMD`: run CMD online and recorded, then propose the rules that it needs.

Files are as closed as in `run`: the files that the session was refused are proposed, and in the mode `open`, which
refuses none, those that it changed. Deny rules, the guard on addresses and the list of public resolvers hold as in any
session, and everything is logged. The proposal is shown as a diff of the project's file and written if the user agrees;
it takes effect after `trust`. All modules are imported before the command runs, because imports are sealed then
(`runtime.imports`).
"""

from __future__ import annotations

import os
import sys
import tomllib
from difflib import unified_diff
from itertools import groupby

from netsandbox.audit.reader import read_records
from netsandbox.audit.table import GREEN, RED, paint
from netsandbox.backends import own_addresses
from netsandbox.cli import run
from netsandbox.cli.help import print_help
from netsandbox.cli.notices import kept_lines
from netsandbox.cli.run_options import MODES, check_bound, policy_of, read_config, rules_of, settings_of
from netsandbox.cli.terminal import confirm, notice, wants_colour
from netsandbox.config.document import layer_of
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.toml_edit import missing, with_items, written
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.learn.project_text import ProjectText, project_file_path
from netsandbox.learn.proposed import PresentFiles, Proposed, proposed, rule_lists
from netsandbox.learn.usage import usage
from netsandbox.paths import home, packages
from netsandbox.policy import home_paths
from netsandbox.policy.inspection import EVERY_HOST, inspection
from netsandbox.policy.path_folding import EntryLimits
from netsandbox.policy.policy import FILTERED, OFFLINE, ONLINE, Policy
from netsandbox.runtime.inherited import hold_standard_descriptors
from netsandbox.runtime.option_parser import FLAG, PROFILES, Option, Parsed, parse
from netsandbox.runtime.protection import config_paths, hidden_homes
from netsandbox.session.launch import Outcome, inherited, run_session
from netsandbox.settings import Command, RunSettings
from netsandbox.system import IS_LINUX
from netsandbox.text import printable

_NOT_HERE = ("overlay", *MODES, "ask", "mode", "ask-wait", "backend", "detach", "dry-run", "quiet", "help")
OPTIONS = (
    *(option for option in run.OPTIONS if option.name not in _NOT_HERE),
    Option("write", FLAG, "w", "", "write the proposed rules to the project's file without asking"),
    Option("help", FLAG, "h", "", "this text"),
)
COMMAND = "netsandbox learn"
WORDS = PROFILES
USAGE = """\
usage: netsandbox learn [OPTIONS] [PROFILE…] -- CMD [ARG…]

  netsandbox learn -- npm ci
  netsandbox learn --inspect -- npm ci     rules for requests instead of names

Run CMD online: denied names and private addresses stay closed, and every attempt is recorded. Then propose the rules \
that CMD needs beyond your configuration, and on Linux the files that it was refused, as a change of this project's \
.netsandbox.toml. The file is written if you agree. The rules take effect after `netsandbox trust`. A command that \
ends early because a file is not there wants more after that: run it again. The exit status is that of CMD."""
NOTHING = "all that it reached, read and wrote is allowed already, so there is nothing to write"
LEFT = "; what is listed above is left to you"


def main(arguments: list[str]) -> int:
    """The command's exit status, as `run` has it."""
    parsed = parse(with_every_host(arguments), OPTIONS, COMMAND, run.starts_command)
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS, {"options": ("write",), **run.GROUPS})
    if not parsed.command or not parsed.command[0]:
        raise UsageError("learn needs a command to watch; write `netsandbox learn -- npm ci`")
    run.take_profiles(parsed, COMMAND)
    for mode in MODES:
        if mode in parsed.all("profile"):
            raise UsageError(f"learn always runs online, so the profile {mode} has no meaning with it; leave it out")
    file = read_config(parsed)
    project = ProjectText(project_file_path())
    own = own_addresses()
    if file is not None:
        check_bound(file, "mode", ONLINE, "learn runs online")
    parsed.flags.add(ONLINE)  # whatever the files say about the mode
    settings = run.report_rules(settings_of(parsed, file), parsed.flags)
    settings = run.report_settings(parsed, settings)
    settings = run.with_secrets(parsed, file, settings)
    files = _present_files(settings, file, project.path)
    if files is not None:
        settings = copy_with(settings, learn_files=files.limits)
    result = _run_recorded(parsed, file, settings)
    records = (entry for entry in read_records(result.audit_log) if entry["session"] == result.session)
    direct = not (parsed.values.get("upstream-proxy") or (file and file.upstream_proxy))
    found = proposed(usage(records), _present(parsed, file), own, dialled=direct, files=files)
    _print_remarks(found, result, file)
    _offer_change(found, project, write="write" in parsed.flags)
    project.close()
    return result.returncode


def with_every_host(arguments: list[str]) -> list[str]:
    """`--inspect` without a host is about every one."""
    made: list[str] = []
    for at, word in enumerate(arguments):
        if word == "--":
            return [*made, *arguments[at:]]
        following = arguments[at + 1] if at + 1 < len(arguments) else "--"
        made.append(f"{word}={EVERY_HOST}" if word == "--inspect" and following.startswith("-") else word)
    return made


def _run_recorded(parsed: Parsed, file: FileSettings | None, settings: RunSettings) -> Outcome:
    policy = policy_of(parsed, file, settings.secrets)
    run.report_domains(policy, parsed.flags)
    hold_standard_descriptors()
    return run_session(lambda: policy, settings, Command(parsed.command or [], inherited(settings)))


def _present(parsed: Parsed, file: FileSettings | None) -> Policy:
    """The policy of files and profiles. What the command line allows may have to be learned; what it denies is not
    proposed."""
    deny = rules_of(parsed, "deny-domain")
    if file is None:
        return Policy((), deny, mode=FILTERED)
    return Policy(
        file.allow_domains,
        [*file.deny_domains, *deny],
        file.allow_addresses,
        mode=FILTERED,
        default_ports=file.default_ports,
        inspection=inspection(file.allow_http, file.deny_http, default_ports=file.default_ports),
    )


def _present_files(settings: RunSettings, file: FileSettings | None, path: str) -> PresentFiles | None:
    """The settings of files and profiles. None where files cannot be learned: on a Mac, and in the root folder, where
    writing cannot be confined."""
    if not IS_LINUX or os.path.realpath(os.curdir) == "/":
        return None
    listed = () if file is None else file.allow_write
    return PresentFiles(
        entry_limits(),
        os.path.realpath(os.path.dirname(path)),
        tuple(os.path.realpath(rule.path) for rule in listed),
        tuple(os.path.realpath(rule.path) for rule in settings.files.deny_read),
        os.path.lexists,
        _may_write,
    )


def entry_limits() -> EntryLimits:
    """Paths that rules may not name: places of secrets, whether they exist or not, and our own files."""
    own = os.path.realpath(home())
    secrets = (*(f"{own}/{name}" for name in home_paths.OF_LINUX), *home_paths.LINUX_SYSTEM)
    ours = map(os.path.realpath, (*hidden_homes(), *config_paths(), *packages()))
    return EntryLimits(own, tuple(dict.fromkeys((*secrets, *ours))))


def _may_write(path: str) -> bool:
    """Whether the user could write there, judged by the nearest existing path."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    return os.access(path, os.W_OK)


def _print_remarks(found: Proposed, result: Outcome, file: FileSettings | None) -> None:
    if result.returncode:
        notice(f"the command ended with status {result.returncode}; what it would have reached after that is not known")
    own = f"{project_file_path()}:"
    if file is not None and (file.mode == ONLINE or (file.mode == OFFLINE and file.mode_origin.startswith(own))):
        notice(f"{file.mode_origin} sets mode {file.mode}, in which rules have no effect; remove that line")
    for line in kept_lines(result.kept):
        notice(line)
    for line in found.remarks:
        print(f"# {line}", file=sys.stderr)


def _offer_change(found: Proposed, project: ProjectText, *, write: bool) -> None:
    """Show the change, and make it if the user agrees."""
    before = project.text
    after = None if before is None else _changed(before, found)
    if found.empty:
        return notice(f"{NOTHING}{LEFT if found.remarks else ''}")
    if after is not None and after == before:
        return notice(f"{project.path} asks for all that it used; `netsandbox trust` puts it into effect")
    if after is None or before is None:
        notice(f"cannot add to {project.path} without changing more of it; put this into its tables yourself:")
        return _show(_pasted(found))
    notice(f"{_purpose(found)}, change {project.path} so:")
    _show(_difference(before, after, project.path, colours=wants_colour(sys.stderr)))
    if not write and not _agreed():
        return notice("nothing was written; `netsandbox learn --write -- …` writes without asking")
    layer_of(project.path, after.encode("utf-8"))  # an error here would be ours: it must not reach the file
    project.write(after)
    return notice(f"{project.path} is written; `netsandbox trust` shows it once more and puts it into effect")


def _purpose(found: Proposed) -> str:
    purposes = ["to let it through without --online"] if found.online else []
    return " and ".join([*purposes, "to show it these files"] if found.writable or found.readable else purposes)


def _changed(text: str, found: Proposed) -> str | None:
    """*text* with the proposed rules that it lacks; None: it cannot be edited."""
    edited: str | None = text
    for table, key, rules in rule_lists(found):
        try:
            new = missing(edited or "", table, key, rules)
        except tomllib.TOMLDecodeError:
            return None
        edited = with_items(edited or "", table, key, new)
        if edited is None:
            return None
    return edited


def _pasted(found: Proposed) -> str:
    texts: list[str] = []
    for table, group in groupby(rule_lists(found), lambda each: each[0]):
        lists = [written(table, key, rules) for _, key, rules in group]
        texts.append("".join([lists[0], *(text.partition("\n")[2] for text in lists[1:])]))
    return "\n".join(texts)


def _difference(before: str, after: str, path: str, *, colours: bool) -> str:
    name = os.path.basename(path)
    lines = unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="")
    return "".join(f"{_painted(printable(line), colours=colours)}\n" for line in lines)


def _painted(line: str, *, colours: bool) -> str:
    if line.startswith(("+++", "---")):
        return line
    shade = {"+": GREEN, "-": RED}.get(line[:1])
    return paint(line, shade, coloured=colours) if shade else line


def _agreed() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty() and confirm("Write this?")


def _show(text: str) -> None:
    sys.stderr.write(text)
