"""`netsandbox run`: everything between the user's words and the command, and the few lines after it."""

from __future__ import annotations

import os
import sys

from netsandbox.api import Sandbox
from netsandbox.cli.options import FLAG, VALUE, Option, parse
from netsandbox.cli.policy_options import POLICY_OPTIONS, policy_of, read_config, settings_of
from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.api import Result
    from netsandbox.policy.policy import Policy

OPTIONS = (
    *POLICY_OPTIONS,
    Option("name", VALUE, "", "NAME", "call the session so in the log"),
    Option("backend", VALUE, "", "NAME", "namespaces (the only one on Linux so far)"),
    Option("no-proxy-env", FLAG, "", "", "set no proxy variables; programs are captured all the same"),
    Option("audit-log", VALUE, "", "PATH", "write the audit log there (also: SANDBOX_AUDIT_LOG)"),
    Option("quiet", FLAG, "q", "", "say nothing about denials at the end"),
    Option("verbose", FLAG, "v", "", "say on stderr what is allowed and where the log is"),
    Option("help", FLAG, "h", "", "this text"),
)
USAGE = "usage: netsandbox run [OPTIONS] [-- CMD [ARG…]]"


def main(arguments: list[str]) -> int:
    """Exit status as `subprocess` has it: negative for the signal that killed the command."""
    parsed = parse(arguments, OPTIONS, "netsandbox run")
    if "help" in parsed.flags:
        from netsandbox.cli.help import print_help

        return print_help(USAGE, OPTIONS)
    _check_words(parsed.words)
    if parsed.values.get("backend", "namespaces") != "namespaces":
        raise UsageError(f"unknown backend {parsed.values['backend']!a}; use --backend namespaces")
    file = read_config(parsed)
    settings = settings_of(parsed, file)
    command = parsed.command or [os.environ.get("SHELL") or "/bin/sh"]
    if not command[0]:
        raise UsageError("the command is empty; write it after --")
    _hold_standard_descriptors()

    def policy() -> Policy:
        decided = policy_of(parsed, file)
        if "verbose" in parsed.flags:
            _introduce(decided)
        return decided

    with Sandbox.deferred(policy, settings) as box:
        result = box.run(command)
    if "verbose" in parsed.flags:
        print(f"netsandbox: audit log {result.audit_log}", file=sys.stderr)
    if result.denied and "quiet" not in parsed.flags:
        from netsandbox.cli.denials import denial_lines

        sys.stderr.write("".join(f"netsandbox: {line}\n" for line in denial_lines(result.denied)))
    _sweep(result)
    return result.returncode


def _check_words(words: list[str]) -> None:
    if words:
        raise UsageError(
            f"unknown profile {words[0]!a}; to run a command write `netsandbox run [OPTIONS] -- {words[0]} …`"
        )


def _introduce(policy: Policy) -> None:
    rules = [rule.text for rule in policy.allow_domains] + [rule.text for rule in policy.allow_addresses]
    allowed = "everything that is not denied" if policy.mode == "online" else ", ".join(rules) or "nothing"
    print(f"netsandbox: mode {policy.mode}, allowed: {allowed}", file=sys.stderr)


def _hold_standard_descriptors() -> None:
    """A closed 0, 1 or 2 would be handed to the next file we open; give it to /dev/null instead."""
    while True:
        fd = os.open("/dev/null", os.O_RDWR)
        if fd > 2:
            os.close(fd)
            return
        os.set_inheritable(fd, True)  # noqa: FBT003 (the standard library's own signature)


def _sweep(result: Result) -> None:
    """Forget the oldest sessions now and then; after the command, never before it."""
    if result.session.endswith("0"):
        from netsandbox.audit.sweep import sweep

        sweep()
