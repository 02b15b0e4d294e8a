"""Reads the values of secrets on the host, before the session: from a variable, a file, or a command.

An error names the variable and its source, and never shows what was read or printed.
"""

from __future__ import annotations

import os

from netsandbox.errors import UsageError
from netsandbox.paths import home
from netsandbox.policy.placeholders import MAX_LENGTH, fault_of
from netsandbox.runtime.host_file import read_host_file
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from netsandbox.policy.secret_rules import SecretRule
    from netsandbox.runtime.session_secrets import SessionSecrets

    # From the name of a program to its path and its variables; UsageError for one that must not be run.
    FindProgram = Callable[[str], tuple[str, Mapping[str, str]]]

SECONDS = 30
SIGKILL = 9


def read_secrets(rules: Iterable[SecretRule], find: FindProgram) -> SessionSecrets | None:
    """The secrets of these rules with their values; None if no rule has one. From here on other processes cannot read
    this one."""
    from netsandbox_proxy.inspect.sealing import hide_memory

    from netsandbox.runtime.session_secrets import SessionSecrets

    hide_memory()
    values = [(read_value(grouped[0], find), grouped) for grouped in _by_name(rules)]
    found = [(value, grouped) for value, grouped in values if value is not None]
    return SessionSecrets(found) if found else None


def _by_name(rules: Iterable[SecretRule]) -> list[list[SecretRule]]:
    """The rules of each variable, which must agree where its value comes from."""
    found: dict[str, list[SecretRule]] = {}
    for rule in rules:
        first = found.setdefault(rule.name, [rule])
        if first[0] is not rule:
            if first[0].source != rule.source:
                where = f"{first[0].origin} has another source"
                raise UsageError(f"{rule.origin}: {rule.name} has one value, and {where}; leave one of them out")
            first.append(rule)
    return list(found.values())


def read_value(rule: SecretRule, find: FindProgram) -> str | None:
    """The value; None for an optional secret that has none, or one that cannot be used."""
    try:
        return _read(rule, find)
    except UsageError:
        if rule.is_optional:
            return None
        raise


def _read(rule: SecretRule, find: FindProgram) -> str:
    kind, given = rule.source
    value = _output(rule, given, find) if kind == "command" else (_variable if kind == "env" else _file)(rule, given)
    if kind != "env":
        value = value.rstrip(b"\r\n")
    fault = fault_of(value)
    if fault is not None:
        raise _error(rule, f"{_source(rule)} {fault}", "set another value")
    return value.decode("ascii")


def _variable(rule: SecretRule, name: str) -> bytes:
    value = os.environb.get(name.encode("ascii"))
    if value is None:
        raise _error(rule, f"the variable {name} is not set", f"set it, or leave {rule.name} out")
    return value


def _file(rule: SecretRule, path: str) -> bytes:
    try:
        return read_host_file(os.path.expanduser(path), 2 * MAX_LENGTH)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be opened"
        raise _error(rule, f"{quoted(path)}: {reason}", "check the path, or who may read it") from None


def _output(rule: SecretRule, words: str, find: FindProgram) -> bytes:
    """What the command prints. It runs in the home, since files of a project could change what it does."""
    import shlex
    import subprocess

    try:
        name, *more = shlex.split(words)
        program, variables = find(name)
    except UsageError as error:
        cause, _, advice = str(error).partition("; ")
        raise _error(rule, cause, advice) from None
    except ValueError:
        raise _error(rule, f"{_source(rule)} cannot be run: not a command", "check it") from None
    try:
        process = subprocess.Popen(
            [program, *more],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a command"
        raise _error(rule, f"{_source(rule)} cannot be run: {reason}", "check it") from None
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, SIGKILL)
        process.communicate()
        raise _error(rule, f"{_source(rule)} did not end in {SECONDS} seconds", "run it yourself to see why") from None
    if process.returncode != 0:
        failure = f"{_source(rule)} failed with status {process.returncode}"
        raise _error(rule, failure, "run it yourself to see why")
    return output


def _source(rule: SecretRule) -> str:
    kind, given = rule.source
    return f"the {'variable' if kind == 'env' else kind} {quoted(given)[1:-1]}"


def _error(rule: SecretRule, what: str, advice: str) -> UsageError:
    return UsageError(f"{rule.origin}: the secret {rule.name} has no value: {what}; {advice}")
