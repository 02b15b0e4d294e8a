"""`netsandbox approve`: allows a connection or a file that waits for approval."""

from __future__ import annotations

import os
import time

from netsandbox.audit.reader import span_seconds
from netsandbox.cli.explain import read_target
from netsandbox.cli.help import print_help
from netsandbox.cli.session_table import pending_entries, target_text
from netsandbox.cli.terminal import print_text
from netsandbox.config.approved_rules import DOMAINS, add_rule, with_rule
from netsandbox.config.document import read_layer
from netsandbox.config.merging import MODE
from netsandbox.config.paths import USER_FILE, rules_file
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.paths import config_home, short
from netsandbox.policy.policy import OFFLINE
from netsandbox.runtime.option_parser import FLAG, PENDING, SESSIONS, VALUE, Option, parse
from netsandbox.session.approvals import reply as replies
from netsandbox.session.approvals.file_places import WRITE, names_above
from netsandbox.session.approvals.reply import APPROVE, MAX_SECONDS, ONCE, PROJECT, SCOPES, SESSION, USER, Reply
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import find, nothing_runs, put_to, survey
from netsandbox.text import printable

OPTIONS = (
    Option("for", VALUE, "", "SCOPE", "scope of the approval: once, session, project or user (session)", SCOPES),
    Option("ttl", VALUE, "", "TIME", "end the approval after 30m, 2h, 1d, …"),
    Option("session", VALUE, "", "NAME", "the session, if several wait for the same", SESSIONS),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = PENDING
USAGE = """\
usage: netsandbox approve ID|HOST[:PORT]|FILE|FOLDER… [--for once|session|project|user] [--ttl TIME] [--session NAME]

  netsandbox approve example.com --for project
  netsandbox approve ~/notes       the files in it, for this session

Allow connections and files that wait for your approval; `netsandbox pending` lists them. A FOLDER opens every file in \
it, except secrets, for what was asked: reading, writing or executing.

  once      what waits now
  session   every connection to that host and port, or that file, until the session ends
  project   that, and later sessions in the same folder: a rule in your configuration home, not in the project
  user      that, and all your later sessions: a rule in your config.toml

Addresses that are private or denied stay closed."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox approve")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if not parsed.words or parsed.command is not None:
        raise UsageError("approve needs an ID, a HOST or a FILE; `netsandbox pending` lists what waits")
    scope = parsed.values.get("for", SESSION)
    if scope not in SCOPES:
        raise UsageError(f"--for {scope[:80]!a} is unknown; use one of {', '.join(SCOPES)}")
    term = parsed.values.get("ttl")
    ttl = 0 if term is None else read_duration(term, "--ttl")
    if ttl and scope == ONCE:
        raise UsageError("--for once ends with what waits now, so --ttl has no meaning; leave one of them out")
    for entry in pending_by_words(parsed.words, parsed.values.get("session")):
        _approve(entry, Reply(APPROVE, entry["id"], scope, ttl, entry["above"]), term)
    return 0


def read_duration(text: str, origin: str) -> int:
    """The duration in seconds, at least one."""
    seconds = span_seconds(text)
    if seconds is None or not 1 <= seconds <= MAX_SECONDS:
        raise UsageError(
            f"{origin} {text[:80]!a} is not a time up to a year; write for instance {origin} 30m, 2h or 1d"
        )
    return seconds


def _approve(entry: Status, reply: Reply, term: str | None) -> None:
    """A file that cannot take the rule is an error first. The session records the approval before the file changes."""
    file = _file(entry, reply.scope)
    place, rule = _rule(entry)
    until = int(time.time()) + reply.ttl if reply.ttl else None
    if file is not None:
        with_rule(file, rule, place, until)
    send_reply(entry, reply)
    if file is not None:
        add_rule(file, rule, place, until)
    done, now = ("allowed", "programs") if "path" in entry else ("let through", "connections")
    extent = f"for the {now} that wait now" if reply.scope == ONCE else _extent(term, file)
    print_text(f"{printable(entry['name'])}: {answered_text(entry)} is {done} {extent}")
    if file is not None and place == DOMAINS:
        mode = read_layer(file).values.get(MODE)
        if mode is not None and mode.value == OFFLINE:
            print_text(f"{printable(mode.origin)} sets mode offline, so later sessions need --filtered for this rule")


def _file(entry: Status, scope: str) -> str | None:
    if scope == USER:
        return os.path.join(config_home(), USER_FILE)
    if scope != PROJECT:
        return None
    folder = entry["folder"]
    if folder is None or not os.path.isdir(folder):
        raise UsageError(f"the folder of {printable(entry['name'])} is not there; approve it with --for session")
    return rules_file(folder)


def _rule(entry: Status) -> tuple[tuple[str, str], str]:
    """The list that it belongs to, and its text. For a host it has a port: a rule without one would open others too."""
    if "path" in entry:
        return ("filesystem", "allow_write" if entry["operation"] == WRITE else "allow_read"), _answered_path(entry)
    return DOMAINS, f"{entry['host']}:{entry['port']}"


def _answered_path(entry: Status) -> str:
    path: str = entry["path"]
    return path.rsplit("/", entry["above"])[0]


def answered_text(entry: Status) -> str:
    """What the answer is about: the question's file or its folder."""
    if entry["above"]:
        return f"{entry['operation']} {printable(short(_answered_path(entry)))}/"
    return target_text(entry)


def _extent(term: str | None, file: str | None) -> str:
    time_text = f" for {term}" if term else ""
    if file is not None:
        return f"for this session, and for later ones by {printable(file)}{time_text}"
    return time_text.strip() or "until the session ends"


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
    """The question, with the number of names that the answer leaves off the path (`above`)."""
    if word.isascii() and word.isdigit():
        found = [{**entry, "above": 0} for entry in entries if entry["id"] == int(word[:10])]
    elif ("/" in word and "://" not in word) or word in (".", "..", "~"):
        found = _by_path(os.path.realpath(os.path.expanduser(word)), entries)
    else:
        host, port = read_target(word)
        asked = [entry for entry in entries if entry.get("host") == host.text]
        found = [{**entry, "above": 0} for entry in asked if port in (None, entry["port"])]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{word!a} fits {len(found)} questions; name one, with --session NAME: {listed(found)}")
    if not entries:
        raise UsageError(f"{word!a} does not wait for an answer; nothing does now (`netsandbox pending --watch`)")
    raise UsageError(f"{word!a} does not wait for an answer; what does: {listed(entries)}")


def _by_path(path: str, entries: list[Status]) -> list[Status]:
    """The questions about this file; for a folder, one about a file in it for each session and operation, since its
    answer counts for the others."""
    files = [entry for entry in entries if "path" in entry]
    exact = [{**entry, "above": 0} for entry in files if entry["path"] == path]
    below = [{**entry, "above": names} for entry in files if (names := names_above(entry["path"], path)) is not None]
    return exact or list({(entry["session"], entry["operation"]): entry for entry in reversed(below)}.values())


def listed(entries: list[Status]) -> str:
    names = [f"{entry['id']} {target_text(entry)} of {printable(entry['name'])}" for entry in entries[:LISTED]]
    return ", ".join([*names, "..."] if len(entries) > LISTED else names)


def send_reply(entry: Status, reply: Reply) -> None:
    """An error where it had no effect."""
    answer = put_to(entry["session"], replies.written(reply), SECONDS)
    if answer == replies.DONE:
        return
    about = f"{answered_text(entry)} of {printable(entry['name'])}"
    if answer == replies.NOT_PENDING:
        raise NetsandboxError(f"{about} waits no longer: it was answered, or its time is over; it may ask again")
    if answer == replies.NOBODY_WAITS:
        raise NetsandboxError(f"nobody waits for {about} any more; approve it without --for once")
    if answer == replies.GONE:
        raise NetsandboxError(f"{about}: the file is gone; nothing was approved")
    if answer == replies.TOO_WIDE:
        raise UsageError(f"{about}: an answer about the whole disk is not taken; name a folder, or the file")
    if answer == replies.UNWRITABLE:
        raise HostError(f"{about} stays closed: the session's audit log cannot be written; free space on the disk")
    raise HostError(f"the session {printable(entry['name'])} did not take the answer; look at `netsandbox ps`")
