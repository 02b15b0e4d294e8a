"""`netsandbox run`: turns the options into a running command, and prints notices after it."""

from __future__ import annotations

import os

from netsandbox.backends import AUTO, BACKENDS
from netsandbox.cli.run_options import (
    DYNAMIC,
    LOCALHOST_OPTIONS,
    POLICY_OPTIONS,
    STATIC,
    policy_of,
    read_config,
    settings_of,
)
from netsandbox.config.commands import without_own_sandbox
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import PROJECT
from netsandbox.runtime.inherited import hold_standard_descriptors
from netsandbox.runtime.option_parser import FLAG, LIST, OPTIONAL, PROFILES, VALUE, Option, parse
from netsandbox.session.launch import inherited, run_session, sweep_logs
from netsandbox.settings import Command
from netsandbox.system import DEFAULT_BACKEND, IS_MACOS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.file_rules import FileRules
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.session.launch import Outcome
    from netsandbox.settings import RunSettings

SESSION_OPTIONS = (
    Option("name", VALUE, "", "NAME", "name of the session: in the log, in `netsandbox ps`, as NAME.localhost"),
    Option(
        "backend",
        VALUE,
        "",
        "NAME",
        "auto (default): namespaces, or broker where Linux has none; seatbelt is that of macOS",
        (AUTO, *BACKENDS),
    ),
    Option("overlay", OPTIONAL, "", "DIR", "change a copy of the project, or of DIR in it; see `netsandbox changes`"),
    Option("ask", FLAG, "", "", "let names and files that no rule allows wait for your `netsandbox approve`"),
    Option(
        "mode", VALUE, "", "MODE", "dynamic: the same as --ask; static: ask about nothing (default)", (DYNAMIC, STATIC)
    ),
    Option("ask-wait", VALUE, "", "SECONDS", "seconds to wait for an answer (60); without one the attempt is refused"),
    Option("limit", LIST, "", "NAME=N,…", "limit memory=2G, processes=500, cpu=200%, files=1024, file-size=1G, core=0"),
    Option("no-debug", FLAG, "", "", "let no program inside read or trace another one"),
    Option("allow-execute", LIST, "", "PATH", "let nothing be executed but the command and this program or folder"),
    Option("allow-device", LIST, "", "PATH", "let the command use this device: /dev/kvm"),
    Option("dry-run", FLAG, "n", "", "print what would be set up, namespaces or Seatbelt profile, and run nothing"),
    Option("no-proxy-env", FLAG, "", "", "set no proxy variables; connections are still captured"),
    Option("detach", FLAG, "", "", "run in the background; `netsandbox logs NAME` prints the output"),
    Option("audit-log", VALUE, "", "PATH", "write the audit log there (also: SANDBOX_AUDIT_LOG)"),
    Option("har", VALUE, "", "FILE", "write the inspected requests there, without credentials, as browsers read them"),
    Option("har-bodies", VALUE, "", "SIZE", "and the first bytes of each body: 64kB"),
    Option("record-query", FLAG, "", "", "record the queries of inspected requests too, without credentials"),
    Option("debug", FLAG, "d", "", "print each denial on stderr when it happens, not at the end"),
    Option("debug-log", VALUE, "", "FILE", "append each denial to this file when it happens"),
    Option("quiet", FLAG, "q", "", "print no denials at the end"),
    Option("verbose", FLAG, "v", "", "print on stderr what is allowed, how ports are published and where the log is"),
    Option("help", FLAG, "h", "", "this text"),
)
OPTIONS = (*POLICY_OPTIONS, *LOCALHOST_OPTIONS, *SESSION_OPTIONS)
REACH = (
    *("allow-domain", "deny-domain", "allow-http", "deny-http", "inspect", "inspect-except"),
    *("secret", "budget", "allow-address", "allow-unix-socket"),
    *("offline", "localhost", "filtered", "online", "profile", "no-detect", "config", "no-config"),
)
FILES = (
    *("files", "allow-read", "allow-write", "deny-read", "deny-write", "overlay"),
    *("share-tmp", "fresh-home", "pass-env", "clean-env"),
)
PROCESSES = ("limit", "no-debug", "allow-execute", "allow-device")
SERVERS = ("publish", "no-publish", "connect-host", "gateway-port", "keep-host", "network-strategy")
SESSION = (
    *("ask", "ask-wait", "name", "detach", "audit-log", "har", "har-bodies", "record-query"),
    *("debug", "debug-log", "quiet", "verbose", "help"),
)
RARE = (
    *("allow-query-type", "upstream-dns", "upstream-proxy", "no-proxy-env", "rewrite-engine", "mode"),
    *("seatbelt-switch", "listening-base-port", "listening-port-count", "listening-loopback", "backend", "dry-run"),
)
NOT_SHOWN = ""  # the title of options that the help leaves out
GROUPS = {  # of the help, also of `explain` and `learn`; what a newcomer needs first comes first
    "what it may reach": REACH,
    "its files and variables": FILES,
    "its servers, and those of this machine": SERVERS,
    "its processes": PROCESSES,
    "the session": SESSION,
    "rarely needed": RARE,
    NOT_SHOWN: ("rw", "blacklist"),  # words of other tools (docs/migration.md)
}
COMMAND = "netsandbox run"
NOT_EXECUTED = (126, 127)  # as shells have it: not executed, not found
MAX_STATUS = 128  # git's when it ends early; above are commands that a signal ended
WORDS = PROFILES
USAGE = """\
usage: netsandbox run [OPTIONS] [PROFILE…] [-- CMD [ARG…]]

  netsandbox run --allow-domain example.com -- curl https://example.com/
  netsandbox run --name shop -- npm run dev
  netsandbox run git node -- npm ci    with profiles: `netsandbox profile list`
  netsandbox run                       your shell

Run CMD, or your shell. It reaches only what you allow, and every attempt is recorded. Its servers are published on \
this machine: `netsandbox ports` lists their addresses. Without -- the first word is CMD, unless all words are \
profiles: `netsandbox run git status` runs git."""


def main(arguments: list[str]) -> int:
    """Exit status as `subprocess` has it: negative for the signal that killed the command."""
    parsed = parse(arguments, OPTIONS, COMMAND, starts_command)
    if parsed.words and parsed.command is None:
        _check_no_command(parsed)
    if "help" in parsed.flags:
        from netsandbox.cli.help import print_help

        return print_help(USAGE, OPTIONS, GROUPS)
    if os.environ.get("NETSANDBOX_DEBUG", "0") not in ("", "0") and "quiet" not in parsed.flags:
        parsed.flags |= {"debug", "verbose"}
    if "detach" in parsed.flags and "quiet" not in parsed.flags:
        parsed.flags.add("debug")  # its end may be days away, and `logs` is read before
    backend = _backend(parsed.values.get("backend"), dry="dry-run" in parsed.flags)
    _check_working_folder()
    take_profiles(parsed, COMMAND)
    file = read_config(parsed)
    settings = _settings(parsed, file, backend)
    if "dry-run" in parsed.flags:
        from netsandbox.cli.dry_run import dry_run

        return dry_run(backend, parsed.command or (), policy_of(parsed, file), settings)
    settings = report_settings(parsed, settings)
    settings = with_secrets(parsed, file, settings)
    command, settings, title = _command(parsed, file, settings)
    hold_standard_descriptors()

    def policy() -> Policy:
        decided = policy_of(parsed, file, settings.secrets)
        report_domains(decided, parsed.flags)
        if parsed.all("inspect") and settings.ask is None and "quiet" not in parsed.flags:
            from netsandbox.cli.inspection_options import unreached_lines

            _print(unreached_lines(decided))
        if "verbose" in parsed.flags:
            from netsandbox.cli.setting_notices import session_lines

            _print(session_lines(decided, settings))
        return decided

    started = Command(command, inherited(settings))
    if "detach" in parsed.flags:
        from netsandbox.cli.detach import detached

        started = detached(started)  # in a second process; this one waits there for its start, and ends
    _write_title(title[0])
    try:
        outcome = run_session(policy, settings, started)
    finally:
        _write_title(title[1])
    _report(outcome, parsed, command, settings)
    sweep_logs(outcome.session)
    return outcome.returncode


def with_secrets(parsed: Parsed, file: FileSettings | None, settings: RunSettings) -> RunSettings:
    """The settings with the secrets that stay outside. What a user must know of them is printed."""
    if not settings.secret_rules:
        return settings
    from netsandbox.cli.secret_options import session_secrets

    secrets, lines = session_secrets(parsed, file, settings)
    if "quiet" not in parsed.flags:
        _print(lines)
    if secrets is None:
        return settings
    if parsed.command:
        parsed.command = secrets.masked_words(parsed.command)
    return copy_with(settings, inspect=True, secrets=secrets)


def _settings(parsed: Parsed, file: FileSettings | None, backend: str) -> RunSettings:
    """The settings as they hold on this host. What a user must know of them is printed."""
    settings = settings_of(parsed, file)
    if "overlay" in parsed.values:
        overlay = _overlay(parsed.values["overlay"], backend)
        settings = copy_with(settings, files=copy_with(settings.files, overlay=overlay))
    if "quiet" in parsed.flags:
        return report_rules(settings, parsed.flags)
    verbose = "verbose" in parsed.flags
    if file is not None and (verbose or file.narrowed or file.ignored):
        from netsandbox.cli.notices import configuration_lines

        _print(configuration_lines(file, verbose=verbose))
    if settings.files.mode == PROJECT:
        _report_no_project(settings.files)
    settings = report_rules(settings, parsed.flags)
    if devices := settings.files.devices:
        _print([f"{', '.join(devices)}: open to the command, with all that the driver lets this user do"])
    return settings


def _command(
    parsed: Parsed, file: FileSettings | None, settings: RunSettings
) -> tuple[list[str], RunSettings, tuple[str, str]]:
    """What to run, and for a shell the title of its terminal."""
    command, title = parsed.command, ("", "")
    if command is None:
        if "detach" in parsed.flags:
            raise UsageError("--detach needs a command, since a shell needs a terminal; write it after --")
        command, settings, title = _shell(file, settings)
    elif file is not None:
        command = without_own_sandbox(command, [name for name, _ in file.profiles])
    if not command or not command[0]:
        raise UsageError("the command is empty; write it after --, or leave -- out to start your shell")
    return command, settings, title


def _shell(file: FileSettings | None, settings: RunSettings) -> tuple[list[str], RunSettings, tuple[str, str]]:
    """The user's shell; on a terminal with the mode in its prompt and in the title, which is set and restored."""
    shell = (file and file.shell) or os.environ.get("SHELL") or "/bin/sh"
    if not _is_input_for_shell():
        raise UsageError("no command, and no terminal for a shell; write `netsandbox run -- CMD`")
    if not (os.isatty(0) and os.isatty(1)) or (file is not None and not file.prompt_indicator):
        return [shell], settings, ("", "")
    from netsandbox.shells.interactive import interactive, title

    command, variables = interactive(shell, {**os.environ, **dict(settings.set_env)})
    titles = title(settings.mode, os.environ.get("TERM", "")) if os.isatty(2) else ("", "")
    return command, copy_with(settings, set_env=(*settings.set_env, *variables)), titles


def _write_title(text: str) -> None:
    if text:
        try:
            os.write(2, text.encode("ascii"))
        except OSError:  # the terminal is gone
            pass


def _is_input_for_shell() -> bool:
    """Whether standard input is a terminal or can have a script: a shell that reads /dev/null would seem to succeed."""
    try:
        return os.isatty(0) or os.fstat(0).st_mode & 0o170000 != 0o020000  # `stat.S_IFMT`, `S_IFCHR`
    except OSError:  # closed
        return False


def starts_command(arguments: Sequence[str]) -> bool:
    """Whether *arguments* are a command whose `--` was left out. Many profiles have the name of a program, so `run git
    status` is a command, and only where all words are profiles (`run git node`) there is none."""
    from netsandbox.paths import is_program

    if not is_program(arguments[0]):
        return False
    if not is_profile(arguments[0]):
        return True
    try:
        others = parse(arguments[1:], OPTIONS, COMMAND).words
    except UsageError:  # its options are not ours
        return True
    return not all(is_profile(word) for word in others)


def _check_no_command(parsed: Parsed) -> None:
    """`run node -v` may mean node's option as well as ours, so it is an error where a profile is also a program."""
    place = parsed.places[-1]
    ours = {name for option in OPTIONS if option.letter for name in (f"-{option.letter}", f"--{option.name}")}
    if not parsed.arguments[place + 1 :] or not ours.issuperset(parsed.arguments[place + 1 :]):
        return
    from netsandbox.paths import is_program

    word, options = parsed.words[-1], parsed.arguments[place + 1 :]
    if is_profile(word) and is_program(word):
        from netsandbox.runtime.option_advice import with_dashes, written

        first = written(COMMAND, [*parsed.arguments[:place], *options, word])
        advice = f"{with_dashes(COMMAND, parsed.arguments, place)}, else write the options first: `{first}`"
        raise UsageError(f"{word} is a profile and a program; {advice}")


def is_profile(word: str) -> bool:
    from netsandbox.config.paths import is_profile_name
    from netsandbox.config.profiles.profile_files import find

    return is_profile_name(word) and find(word) is not None


def take_profiles(parsed: Parsed, command: str) -> None:
    """Words before `--` are profiles, above those of --profile."""
    for at, word in enumerate(parsed.words):
        if not is_profile(word):
            if parsed.values.get("overlay") == "" and os.path.isdir(word):
                from netsandbox.text import shell_quoted

                raise UsageError(f"--overlay takes its folder after a =; write --overlay={shell_quoted(word)}")
            from netsandbox.config.profiles.profile_files import unknown_argument

            raise unknown_argument(parsed, at, command)
    if parsed.words:
        parsed.lists["profile"] = [*parsed.words, *parsed.all("profile")]


def _backend(name: str | None, *, dry: bool) -> str:
    """The backend to use. One of another system can only be printed."""
    own = DEFAULT_BACKEND or "namespaces"
    if name is None or name == AUTO:
        return own
    if name not in BACKENDS:
        *others, last = [AUTO, *(each for each, system in BACKENDS.items() if system == BACKENDS[own])]
        raise UsageError(f"unknown backend {name!a}; use --backend {', '.join(others)} or {last}, or leave it out")
    if BACKENDS[name] != BACKENDS[own] and not dry:
        advice = "leave it out" + (", or add --dry-run to print its profile" if name == "seatbelt" else "")
        raise UsageError(f"the backend {name} is that of {BACKENDS[name]} and confines nothing here; {advice}")
    return name


def _check_working_folder() -> None:
    """The command would begin in `/` instead of a folder that was removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UsageError("the working folder is gone; enter another") from None
    except OSError:  # it is in a folder that we may not read
        pass


def _overlay(named: str, backend: str) -> str:
    """The path of the folder; empty for the project."""
    if backend == "seatbelt":
        raise UsageError("--overlay needs overlayfs, which macOS does not have; leave it out, or work in a copy")
    from netsandbox.paths import home, working_folder
    from netsandbox.policy.file_rules import path_rule

    return path_rule(named, "--overlay", working_folder() or "/", home).path if named else ""


def report_rules(settings: RunSettings, flags: set[str]) -> RunSettings:
    """The settings with the rules for files as they hold on this host. What a user must know of them is printed."""
    files = settings.files
    if not (files.allow_read or files.allow_write or files.listed_only or files.needs_resolving):
        return settings
    from netsandbox.cli.file_notices import rule_lines
    from netsandbox.runtime.effective_rules import effective

    found = effective(files)
    if "quiet" not in flags:
        _print(rule_lines(found, verbose="verbose" in flags))
    return copy_with(settings, files=found.rules)


def report_settings(parsed: Parsed, settings: RunSettings) -> RunSettings:
    """Print which variables, ports and sockets of options do not exist, and that nobody is asked about names online.
    Returns the settings with what was reported."""
    if "quiet" in parsed.flags:
        return settings
    is_asking = "ask" in parsed.flags or parsed.values.get("mode") == DYNAMIC
    if is_asking and settings.ask is None:
        _print(["the session is online, so you are asked about files only; with --filtered instead about names too"])
    variables, ports, sockets = parsed.all("pass-env"), settings.localhost.connect_host, parsed.all("allow-unix-socket")
    if not (variables or ports or sockets):
        return settings
    from netsandbox.cli.setting_notices import checked_doors, no_socket_lines, unheard_lines, unset_lines

    ports = checked_doors(ports)
    _print([*unset_lines(variables), *unheard_lines(ports), *no_socket_lines(sockets)])
    return copy_with(settings, localhost=copy_with(settings.localhost, connect_host=ports))


def report_domains(policy: Policy, flags: set[str]) -> None:
    """Print the rules that open nothing: others deny the same, the name is the session's own, or none of a host."""
    if "quiet" in flags:
        return
    own = [rule for rule in policy.allow_domains if rule.name.endswith("localhost")]
    bare = [rule for rule in policy.allow_domains if "." not in rule.name and rule.origin == "--allow-domain"]
    if own or bare or (policy.allow_domains and policy.deny_domains):
        from netsandbox.cli.setting_notices import bare_name_lines, contradiction_lines, localhost_lines
        from netsandbox.policy.overruled import overruled

        _print(
            [
                *localhost_lines(own),
                *bare_name_lines(bare),
                *contradiction_lines(overruled(policy), verbose="verbose" in flags),
            ]
        )


def _report_no_project(files: FileRules) -> None:
    """A user who named paths knows that others are not there."""
    if any(rule.origin.startswith("--") for rule in (*files.allow_read, *files.allow_write)):
        return
    from netsandbox.paths import home
    from netsandbox.runtime.project import find_project

    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it is in a folder that we may not read
        return
    if find_project(here, os.path.realpath(home())) is None:
        advice = "enter a project's folder, or name paths with --allow-read and --allow-write"
        _print([f"{here} is not a project, so the command sees none of your files; {advice}"])


def _report(outcome: Outcome, parsed: Parsed, command: list[str], settings: RunSettings) -> None:
    failed = 0 < outcome.returncode <= MAX_STATUS and outcome.returncode not in NOT_EXECUTED
    if "verbose" in parsed.flags:
        _print([f"audit log {outcome.audit_log}", *([f"HAR {settings.har}"] if settings.har else ())])
    if "quiet" in parsed.flags or not (failed or outcome.denied or outcome.denied_files or outcome.kept):
        return
    from netsandbox.cli.notices import missed_lines, outcome_lines, withheld_names

    _print(outcome_lines(outcome, command, debug="debug" in parsed.flags))
    if parsed.command and failed:
        _print(missed_lines(parsed.command, withheld_names(settings), settings.variables))
        if any(word[:1] == "/" or "../" in word or "=/" in word for word in parsed.command[1:]) and not IS_MACOS:
            from netsandbox.cli.unseen_paths import unseen_lines

            told = [denial.path for denial in outcome.denied_files]
            _print(unseen_lines(parsed.command[1:], settings.files, inherited(settings), told))


def _print(lines: Sequence[str]) -> None:
    if lines:
        from netsandbox.cli.terminal import notice  # most runs print nothing, and each module costs time before exec

        for line in lines:
            notice(line)
