"""`netsandbox approve`: allows a connection that waits for approval."""

from __future__ import annotations

import os

from netsandbox.audit.reader import span_seconds
from netsandbox.cli.explain import read_target
from netsandbox.cli.help import print_help
from netsandbox.cli.session_table import pending_entries
from netsandbox.cli.terminal import print_text
from netsandbox.config.approved_rules import add_rule, with_rule
from netsandbox.config.paths import USER_FILE, rules_file
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.paths import config_home
from netsandbox.runtime.option_parser import FLAG, PENDING, SESSIONS, VALUE, Option, parse
from netsandbox.session.approvals import reply as replies
from netsandbox.session.approvals.reply import APPROVE, MAX_SECONDS, ONCE, PROJECT, SCOPES, SESSION, USER, Reply
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import find, nothing_runs, put_to, survey
from netsandbox.text import printable, printable_place

OPTIONS = (
    Option("for", VALUE, "", "SCOPE", "scope of the approval: once, session, project or user (session)", SCOPES),
    Option("ttl", VALUE, "", "TIME", "with the scope session: end the approval after 30m, 2h, 1d, …"),
    Option("session", VALUE, "", "NAME", "the session, if several wait for the same host", SESSIONS),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = PENDING
USAGE = """\
usage: netsandbox approve ID|HOST[:PORT]… [--for once|session|project|user] [--ttl TIME] [--session NAME]

Allow connections that wait for your approval; `netsandbox pending` lists them.

  once      the connections that wait now
  session   every connection to that host and port until the session ends
  project   that, and later sessions in the same folder: a rule in your configuration home, not in the project
  user      that, and all your later sessions: a rule in your config.toml

Addresses that are private or denied stay closed."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox approve")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if not parsed.words or parsed.command is not None:
        raise UsageError("approve needs an ID or a HOST; `netsandbox pending` lists what waits")
    scope = parsed.values.get("for", SESSION)
    if scope not in SCOPES:
        raise UsageError(f"--for {scope[:80]!a} is unknown; use one of {', '.join(SCOPES)}")
    term = parsed.values.get("ttl")
    ttl = 0 if term is None else read_duration(term, "--ttl")
    if ttl and scope != SESSION:
        raise UsageError(f"--ttl goes with the scope session, not with --for {scope}; leave one of them out")
    for entry in pending_by_words(parsed.words, parsed.values.get("session")):
        _approve(entry, Reply(APPROVE, entry["id"], scope, ttl), term)
    return 0


def read_duration(text: str, origin: str) -> int:
    """The duration in seconds, at least one."""
    seconds = span_seconds(text)
    if seconds is None or not 1 <= seconds <= MAX_SECONDS:
        raise UsageError(f"{origin} {text[:80]!a} is no time up to a year; write for instance {origin} 30m, 2h or 1d")
    return seconds


def _approve(entry: Status, reply: Reply, term: str | None) -> None:
    """A file that cannot take the rule is an error first. The session records the approval before the file changes."""
    file = _file(entry, reply.scope)
    if file is not None:
        with_rule(file, _rule(entry))
    send_reply(entry, reply)
    if file is not None:
        add_rule(file, _rule(entry))
    print_text(f"{printable(entry['name'])}: {target_text(entry)} is let through {_extent(reply.scope, term, file)}")


def _file(entry: Status, scope: str) -> str | None:
    if scope == USER:
        return os.path.join(config_home(), USER_FILE)
    if scope != PROJECT:
        return None
    folder = entry["folder"]
    if folder is None or not os.path.isdir(folder):
        raise UsageError(f"the folder of {printable(entry['name'])} is not there; approve it with --for session")
    return rules_file(folder)


def _rule(entry: Status) -> str:
    """For this port alone: a rule without one would open others too."""
    return f"{entry['host']}:{entry['port']}"


def _extent(scope: str, term: str | None, file: str | None) -> str:
    if scope == ONCE:
        return "for the connections that wait now"
    if file is not None:
        return f"for this session, and for later ones by {printable(file)}"
    return f"for {term}" if term else "until the session ends"


LISTED = 20
SECONDS = 5.0  # how long a busy session may take


def pending_by_words(words: list[str], session: str | None) -> list[Status]:
    """The question that each of *words* means; an error unless each means exactly one."""
    sessions, _ = survey(SECONDS)
    if not sessions:
        raise UsageError(nothing_runs())
    entries = pending_entries(sessions if session is None else [find(session, sessions)])
    return [_pending_entry(word, entries) for word in words]


def _pending_entry(word: str, entries: list[Status]) -> Status:
    if word.isascii() and word.isdigit():
        found = [entry for entry in entries if entry["id"] == int(word[:10])]
    else:
        host, port = read_target(word)
        found = [entry for entry in entries if entry["host"] == host.text and port in (None, entry["port"])]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{word!a} fits {len(found)} questions; name one, with --session NAME: {listed(found)}")
    if not entries:
        raise UsageError(f"{word!a} does not wait for an answer; nothing does now (`netsandbox pending --watch`)")
    raise UsageError(f"{word!a} does not wait for an answer; what does: {listed(entries)}")


def listed(entries: list[Status]) -> str:
    names = [f"{entry['id']} {target_text(entry)} of {printable(entry['name'])}" for entry in entries[:LISTED]]
    return ", ".join([*names, "..."] if len(entries) > LISTED else names)


def target_text(entry: Status) -> str:
    return printable_place(entry["host"], entry["port"])


def send_reply(entry: Status, reply: Reply) -> None:
    """An error where it had no effect."""
    answer = put_to(entry["session"], replies.written(reply), SECONDS)
    if answer == replies.DONE:
        return
    about = f"{target_text(entry)} of {printable(entry['name'])}"
    if answer == replies.NOT_PENDING:
        raise NetsandboxError(f"{about} waits no longer: it was answered, or its time is over; it may ask again")
    if answer == replies.NOBODY_WAITS:
        raise NetsandboxError(f"no connection to {about} waits any more; approve it without --for once")
    if answer == replies.UNWRITABLE:
        raise HostError(f"{about} stays closed: the session's audit log cannot be written; free space on the disk")
    raise HostError(f"the session {printable(entry['name'])} did not take the answer; look at `netsandbox ps`")
