"""`netsandbox run`: turns the options into a running command, and prints notices after it."""

from __future__ import annotations

import os

from netsandbox.api import Sandbox
from netsandbox.backends import BACKENDS
from netsandbox.cli.run_options import (
    CLOSED,
    DYNAMIC,
    LOCALHOST_OPTIONS,
    POLICY_OPTIONS,
    STATIC,
    policy_of,
    read_config,
    settings_of,
    withheld_names,
)
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import PROJECT
from netsandbox.runtime.option_parser import FLAG, LIST, OPTIONAL, PROFILES, VALUE, Option, parse
from netsandbox.system import DEFAULT_BACKEND, IS_MACOS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.api import Result
    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.file_rules import FileRules
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.settings import RunSettings

SESSION_OPTIONS = (
    Option("name", VALUE, "", "NAME", "name of the session: in the log, in `netsandbox ps`, as NAME.localhost"),
    Option(
        "backend",
        VALUE,
        "",
        "NAME",
        "namespaces (the only one on Linux) or seatbelt (the only one on macOS)",
        ("namespaces", "seatbelt"),
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
    Option("audit-log", VALUE, "", "PATH", "write the audit log there (also: SANDBOX_AUDIT_LOG)"),
    Option("debug", FLAG, "d", "", "print each denial on stderr when it happens, not at the end"),
    Option("debug-log", VALUE, "", "FILE", "append each denial to this file when it happens"),
    Option("quiet", FLAG, "q", "", "print no denials at the end"),
    Option("verbose", FLAG, "v", "", "print on stderr what is allowed, how ports are published and where the log is"),
    Option("help", FLAG, "h", "", "this text"),
)
OPTIONS = (*POLICY_OPTIONS, *LOCALHOST_OPTIONS, *SESSION_OPTIONS)
REACH = (
    *("allow-domain", "deny-domain", "allow-address", "allow-unix-socket"),
    *("offline", "localhost", "online", "profile", "no-detect", "config", "no-config"),
)
FILES = (
    *("files", "allow-read", "allow-write", "deny-read", "deny-write", "overlay"),
    *("share-tmp", "fresh-home", "rw", "blacklist"),
)
PROCESSES = ("limit", "no-debug", "allow-execute", "allow-device")
SERVERS = ("publish", "no-publish", "connect-host", "network-strategy")
SESSION = ("ask", "mode", "ask-wait", "name", "audit-log", "debug", "debug-log", "quiet", "verbose", "help")
RARE = (
    *("pass-env", "allow-query-type", "upstream-dns", "upstream-proxy", "no-proxy-env", "rewrite-engine"),
    *("seatbelt-switch", "listening-base-port", "listening-port-count", "listening-loopback", "backend", "dry-run"),
)
GROUPS = {  # of the help; what a newcomer needs first comes first
    "what it may reach": REACH,
    "its files": FILES,
    "its servers, and those of this machine": SERVERS,
    "its processes": PROCESSES,
    "the session": SESSION,
    "rarely needed": RARE,
}
WORDS = PROFILES
USAGE = """\
usage: netsandbox run [OPTIONS] [PROFILE…] [-- CMD [ARG…]]

Run CMD, or your shell. It reaches only what you allow, and every attempt is recorded.
Its servers are published on this machine: `netsandbox ports` lists their addresses.

  netsandbox run --allow-domain example.com -- curl https://example.com/
  netsandbox run --name shop -- npm run dev
  netsandbox run git node -- npm ci                (`netsandbox profile list` lists the profiles)"""


def main(arguments: list[str]) -> int:
    """Exit status as `subprocess` has it: negative for the signal that killed the command."""
    parsed = parse(arguments, OPTIONS, "netsandbox run")
    if "help" in parsed.flags:
        from netsandbox.cli.help import print_grouped_help

        return print_grouped_help(USAGE, OPTIONS, GROUPS)
    backend = _backend(parsed.values.get("backend"), dry="dry-run" in parsed.flags)
    take_profiles(parsed)
    file = read_config(parsed)
    settings = copy_with(settings_of(parsed, file), backend=parsed.values.get("backend"))
    if "overlay" in parsed.values:
        settings = copy_with(
            settings, files=copy_with(settings.files, overlay=_overlay(parsed.values["overlay"], backend))
        )
    if file is not None and "quiet" not in parsed.flags:
        _report_configuration(file, verbose="verbose" in parsed.flags)
    if settings.files.mode == PROJECT and "quiet" not in parsed.flags:
        _report_no_project(settings.files)
    settings = report_rules(settings, parsed.flags)
    if settings.files.devices and "quiet" not in parsed.flags:
        _notice(f"{', '.join(settings.files.devices)}: open to the command, with all that the driver lets this user do")
    if "dry-run" in parsed.flags:
        from netsandbox.cli.dry_run import dry_run

        return dry_run(backend, parsed.command or (), policy_of(parsed, file), settings)
    report_settings(parsed, settings)
    command = parsed.command
    if not command:
        command, settings = _shell(file, settings)
    if not command[0]:
        raise UsageError("the command is empty; write it after --")
    hold_standard_descriptors()

    def policy() -> Policy:
        decided = policy_of(parsed, file)
        report_domains(decided, parsed.flags)
        if "verbose" in parsed.flags:
            _describe_session(decided, settings)
        return decided

    with Sandbox.deferred(policy, settings) as box:
        result = box.run(command)
    _report(result, parsed.flags)
    return result.returncode


def _shell(file: FileSettings | None, settings: RunSettings) -> tuple[list[str], RunSettings]:
    """The user's shell; on a terminal with the mode in its prompt."""
    shell = (file and file.shell) or os.environ.get("SHELL") or "/bin/sh"
    if not (os.isatty(0) and os.isatty(1)) or (file is not None and not file.prompt_indicator):
        return [shell], settings
    from netsandbox.shells.interactive import interactive

    command, variables = interactive(shell, {**os.environ, **dict(settings.set_env)})
    return command, copy_with(settings, set_env=(*settings.set_env, *variables))


def take_profiles(parsed: Parsed) -> None:
    """Words before `--` are profiles, above those of --profile."""
    if parsed.words:
        _check_profile_names(parsed.words, overlay=parsed.values.get("overlay") == "")
        parsed.lists["profile"] = [*parsed.words, *parsed.all("profile")]


def _check_profile_names(words: list[str], *, overlay: bool) -> None:
    """Words are profiles. An unknown word may be a command whose `--` was forgotten, or the folder of an *overlay*."""
    from netsandbox.config.paths import is_profile_name
    from netsandbox.config.profiles.profile_files import find

    for at, word in enumerate(words):
        if not is_profile_name(word) or find(word) is None:
            from netsandbox.config.profiles.profile_files import unknown_argument

            if overlay and os.path.isdir(word):
                from netsandbox.text import shell_quoted

                raise UsageError(f"--overlay takes its folder after a =; write --overlay={shell_quoted(word)}")
            raise unknown_argument(words, at)


def _backend(name: str | None, *, dry: bool) -> str:
    """The backend to use. One of another system can only be printed."""
    own = DEFAULT_BACKEND or "namespaces"
    if name is None:
        return own
    if name not in BACKENDS:
        raise UsageError(f"unknown backend {name!a}; use --backend {own}, or leave it out")
    if BACKENDS[name] != BACKENDS[own] and not dry:
        advice = "leave it out" + (", or add --dry-run to print its profile" if name == "seatbelt" else "")
        raise UsageError(f"the backend {name} is that of {BACKENDS[name]} and confines nothing here; {advice}")
    return name


def _overlay(named: str, backend: str) -> str:
    """The path of the folder; empty for the project."""
    if backend == "seatbelt":
        raise UsageError("--overlay needs overlayfs, which macOS does not have; leave it out, or work in a copy")
    from netsandbox.paths import home, working_folder
    from netsandbox.policy.file_rules import path_rule

    return path_rule(named, "--overlay", working_folder() or "/", home).path if named else ""


def _describe_session(policy: Policy, settings: RunSettings) -> None:
    allowed = ["everything that is not denied"] if policy.mode == "online" else []
    if policy.mode == "filtered":  # in the other modes rules open nothing
        allowed = [rule.text for rule in policy.allow_domains] + [rule.text for rule in policy.allow_addresses]
    allowed += [f"port {port} of the host's localhost" for port in settings.localhost.connect_host]
    _notice(f"mode {policy.mode}, allowed: {', '.join(allowed) or 'nothing'}")
    if settings.ask is not None:
        _notice(f"asks about other names for {settings.ask} s each, `netsandbox pending` lists the questions")
    if settings.ask_files is not None:
        _notice(f"asks about other files for {settings.ask_files} s each")
    if settings.name is None:
        where = "`netsandbox ps` shows the session's name and window"
    else:
        where = f"session {settings.name}, `netsandbox ps` shows its window"
    if settings.localhost.publishes:
        where += f", `netsandbox ports{' ' + settings.name if settings.name else ''}` where its servers are reached"
    _notice(where)
    if IS_MACOS:
        _report_unsigned()
    from netsandbox.cli.file_notices import file_view_lines

    for line in file_view_lines(settings.files):
        _notice(line)
    withheld = withheld_names(settings)
    if withheld:
        _notice(f"not passed on: {', '.join(withheld)}; --pass-env NAME passes one")


def report_rules(settings: RunSettings, flags: set[str]) -> RunSettings:
    """The settings with the rules for files as they hold on this host. What a user must know of them is printed."""
    files = settings.files
    if not (files.allow_read or files.allow_write or files.listed_only or files.needs_resolving):
        return settings
    from netsandbox.cli.file_notices import rule_lines
    from netsandbox.runtime.effective_rules import effective

    found = effective(files)
    if "quiet" not in flags:
        for line in rule_lines(found, verbose="verbose" in flags):
            _notice(line)
    return copy_with(settings, files=found.rules)


def report_settings(parsed: Parsed, settings: RunSettings) -> None:
    """Print which variables, ports and sockets of options do not exist."""
    variables, ports, sockets = parsed.all("pass-env"), settings.localhost.connect_host, parsed.all("allow-unix-socket")
    if (variables or ports or sockets) and "quiet" not in parsed.flags:
        from netsandbox.cli.setting_notices import no_socket_lines, unheard_lines, unset_lines

        for line in (*unset_lines(variables), *unheard_lines(ports), *no_socket_lines(sockets)):
            _notice(line)


def report_domains(policy: Policy, flags: set[str]) -> None:
    """Print the rules that open nothing: the mode is closed, others deny the same, or the name is the session's own."""
    if "quiet" in flags:
        return
    is_closed = policy.mode in CLOSED and (policy.allow_domains or policy.allow_addresses)
    own = [rule for rule in policy.allow_domains if rule.name.endswith("localhost")]
    if is_closed or own or (policy.allow_domains and policy.deny_domains):
        from netsandbox.cli.setting_notices import closed_lines, contradiction_lines, localhost_lines
        from netsandbox.policy.overruled import overruled

        contradictions = contradiction_lines(overruled(policy), verbose="verbose" in flags)
        for line in (*closed_lines(policy), *localhost_lines(own), *contradictions):
            _notice(line)


def _report_no_project(files: FileRules) -> None:
    """A user who named paths knows that others are not there."""
    if any(rule.origin.startswith("--") for rule in (*files.allow_read, *files.allow_write)):
        return
    from netsandbox.paths import home
    from netsandbox.runtime.project import find_project

    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was removed, or is in a folder that we may not read
        return
    if find_project(here, os.path.realpath(home())) is None:
        advice = "enter a project's folder, or name paths with --allow-read and --allow-write"
        _notice(f"{here} is no project, so the command sees none of your files; {advice}")


def _report_unsigned() -> None:
    from netsandbox.backends.seatbelt.signing import signed_parts

    why = signed_parts().unsigned
    if why:
        reason = f"not signed by this Mac, so used as installed: {why}; if it kills them, sign them with codesign"
        _notice(f"helper and library are {reason}")


def _report_configuration(file: FileSettings, *, verbose: bool) -> None:
    """Ignored settings are always reported; otherwise the user would look for a mistake elsewhere."""
    if verbose:
        for name, why in file.profiles:
            _notice(f"profile {name}: {why}")
        for note in file.notes:
            _notice(note)
    if file.ignored:
        from netsandbox.cli.notices import ignored_lines

        for line in ignored_lines(file.ignored):
            _notice(line)


def _notice(text: str) -> None:
    from netsandbox.cli.terminal import notice  # most runs print nothing, and each module costs time before exec

    notice(text)


def _report(result: Result, flags: set[str]) -> None:
    if "verbose" in flags:
        _notice(f"audit log {result.audit_log}")
    if result.denied and flags.isdisjoint(("quiet", "debug")):
        from netsandbox.cli.notices import denial_lines

        for line in denial_lines(result.denied):
            _notice(line)
    if (result.denied_files or result.kept) and "quiet" not in flags:
        from netsandbox.cli.notices import file_denial_lines, kept_lines
        from netsandbox.policy.habits import did_well

        told = file_denial_lines(result.denied_files, succeeded=did_well(result.returncode))
        for line in (*told, *kept_lines(result.kept)):
            _notice(line)
    _sweep_logs(result)


def hold_standard_descriptors() -> None:
    """The next file that we open would get the number of a closed 0, 1 or 2, so open /dev/null there."""
    while True:
        fd = os.open("/dev/null", os.O_RDWR)
        if fd > 2:
            os.close(fd)
            return
        os.set_inheritable(fd, True)  # noqa: FBT003 (the standard library's own signature)


def _sweep_logs(result: Result) -> None:
    """Remove the logs of the oldest sessions now and then, after the command and never before it."""
    if result.session.endswith("0"):
        from netsandbox.audit.sweep import sweep

        sweep()
