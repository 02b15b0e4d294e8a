"""What `approve` and `deny` share: which question is meant, and bringing the answer to its session."""

from __future__ import annotations

from netsandbox.audit.denial_text import place
from netsandbox.cli.explain import read_target
from netsandbox.cli.session_table import pending_entries
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.session.approvals import reply as replies
from netsandbox.session.sessions_client import find, nothing_runs, put_to, survey
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.session.approvals.reply import Reply
    from netsandbox.session.session_status import Status

LISTED = 20
PATIENCE = 5.0  # with a busy session: somebody waits for this answer


def chosen(words: list[str], session: str | None) -> list[Status]:
    """The question that each of *words* means; an error unless each means exactly one."""
    sessions, _ = survey(PATIENCE)
    if not sessions:
        raise UsageError(nothing_runs())
    entries = pending_entries(sessions if session is None else [find(session, sessions)])
    return [_meant(word, entries) for word in words]


def _meant(word: str, entries: list[Status]) -> Status:
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
    names = [f"{entry['id']} {where(entry)} of {printable(entry['name'])}" for entry in entries[:LISTED]]
    return ", ".join([*names, "..."] if len(entries) > LISTED else names)


def where(entry: Status) -> str:
    return place(entry["host"], entry["port"])


def bring(entry: Status, reply: Reply) -> None:
    """An error where it had no effect."""
    said = put_to(entry["session"], replies.written(reply), PATIENCE)
    if said == replies.DONE:
        return
    about = f"{where(entry)} of {printable(entry['name'])}"
    if said == replies.NOT_PENDING:
        raise NetsandboxError(f"{about} waits no longer: it was answered, or its time is over; it may ask again")
    if said == replies.NOBODY_WAITS:
        raise NetsandboxError(f"no connection to {about} waits any more; approve it without --for once")
    if said == replies.UNWRITABLE:
        raise HostError(f"{about} stays closed: the session's audit log cannot be written; free space on the disk")
    raise HostError(f"the session {printable(entry['name'])} did not take the answer; look at `netsandbox ps`")
