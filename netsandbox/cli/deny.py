"""`netsandbox deny`: refuses a connection or a file that waits for approval, until its session ends."""

from __future__ import annotations

from netsandbox.cli.approve import answered_text, pending_by_words, send_reply
from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import print_text
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, PENDING, SESSIONS, VALUE, Option, parse
from netsandbox.session.approvals.reply import DENY, Reply
from netsandbox.text import printable

OPTIONS = (
    Option("session", VALUE, "", "NAME", "the session, if several wait for the same", SESSIONS),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = PENDING
USAGE = """\
usage: netsandbox deny ID|HOST[:PORT]|FILE|FOLDER… [--session NAME]

  netsandbox deny example.com

Refuse connections and files that wait for your approval; `netsandbox pending` lists them. The session does not ask \
for that host and port, that file or that folder again. To refuse it in all sessions, write it to deny_domains below \
[network] or to deny_read below [filesystem] in your config.toml."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox deny")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if not parsed.words or parsed.command is not None:
        raise UsageError("deny needs an ID, a HOST or a FILE; `netsandbox pending` lists what waits")
    for entry in pending_by_words(parsed.words, parsed.values.get("session")):
        send_reply(entry, Reply(DENY, entry["id"], above=entry["above"]))
        print_text(f"{printable(entry['name'])}: {answered_text(entry)} is refused until the session ends")
    return 0
