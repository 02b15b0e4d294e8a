"""`netsandbox audit tail|show|summary|verify [SESSION|PATH]`: reads what the log holds, for people or as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from netsandbox.audit import table
from netsandbox.audit.filters import Filter, parse_since
from netsandbox.audit.follow import follow
from netsandbox.audit.log import ROTATE
from netsandbox.audit.places import LOG_NAME, list_sessions, session_dir
from netsandbox.audit.reader import Record, read_lines
from netsandbox.audit.summary import summarise
from netsandbox.audit.sweep import sweep
from netsandbox.audit.verify import verify
from netsandbox.errors import NetsandboxError, UsageError

ACTIONS = ("tail", "show", "summary", "verify")
FLAGS = {
    "--denied": "denied",
    "--json": "json",
    "-f": "follow",
    "--follow": "follow",
    "--fail-on-denied": "fail_on_denied",
}
VALUES = {"--host": "host", "--since": "since", "--event": "event", "-n": "lines", "--lines": "lines"}
# What an action has no use for is an error, so that nobody trusts a filter that was ignored.
ONLY = {"follow": ("tail",), "lines": ("tail",), "fail_on_denied": ("summary",)}
FRAME = ("session.start", "session.end", ROTATE)
HELP = """\
Usage: netsandbox audit tail|show|summary|verify [SESSION|PATH] [OPTIONS]

  tail      the last records; -n N how many (20), -f goes on until the session ends
  show      all records
  summary   per host: what was allowed, what was denied and the flag that would allow it
  verify    whether the log is as it was written; exit status 1 when it is not

SESSION is an id or a unique part of one; without it the newest session is read.
  --denied          only denials            --host PATTERN   only this host, *.host or **.host
  --since TIME      45s, 10m, 2h, 3d, ISO   --event EVENT    only this event (egress, dns, udp, ...)
  --json            for programs            --fail-on-denied summary: exit status 1 if anything was denied
"""


@dataclass(slots=True)
class Options:
    action: str
    target: str | None = None
    denied: bool = False
    json: bool = False
    follow: bool = False
    fail_on_denied: bool = False
    host: str | None = None
    since: str | None = None
    event: str | None = None
    lines: str | None = None

    @property
    def filter(self) -> Filter:
        since = None if self.since is None else parse_since(self.since, datetime.now(UTC))
        return Filter(self.denied, self.host, since, self.event)


def main(argv: list[str]) -> int:
    """Run the subcommand; *argv* is what follows `netsandbox audit`. The exit status."""
    try:
        return _run(argv)
    except NetsandboxError as error:
        print(f"netsandbox: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        # The reader of our output left; a second complaint at interpreter exit would be noise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str]) -> int:
    if any(word in ("-h", "--help") for word in argv):
        print(HELP, end="")
        return 0
    options = parse(argv)
    keep = options.filter
    path = find_log(options.target)
    status = {"tail": _tail, "show": _show, "summary": _summary, "verify": _verify}[options.action](options, path, keep)
    sys.stdout.flush()
    sweep()
    return status


def parse(argv: list[str]) -> Options:
    if not argv:
        raise UsageError(f"audit needs one of {', '.join(ACTIONS)}; try `netsandbox audit summary`")
    if argv[0] not in ACTIONS:
        raise UsageError(f"audit knows no {argv[0]!a}; use one of {', '.join(ACTIONS)}")
    options = Options(argv[0])
    words = iter(argv[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if word in FLAGS:
            _set(options, FLAGS[word], word, value=True)
        elif name in VALUES and (not equals or name.startswith("--")):
            given = value if equals else next(words, None)
            if not given:
                raise UsageError(f"{name} needs a value; see `netsandbox audit --help`")
            _set(options, VALUES[name], name, value=given)
        elif word.startswith("-"):
            raise UsageError(f"audit {options.action} knows no option {word!a}; see `netsandbox audit --help`")
        elif options.target is not None:
            raise UsageError(f"audit {options.action} reads one log, not also {word!a}; run it once for each")
        else:
            options.target = word
    return options


def _set(options: Options, field: str, word: str, *, value: str | bool) -> None:
    fitting = ONLY.get(field, ACTIONS if field == "json" else ACTIONS[:3])
    if options.action not in fitting:
        raise UsageError(f"audit {options.action} takes no {word}; it is for audit {' and '.join(fitting)}")
    setattr(options, field, value)


def find_log(target: str | None) -> str:
    """The log that *target* means: a path, a session id or a unique part of one; None is the newest session."""
    if target is not None and ("/" in target or os.path.isfile(target)):
        return target
    logs = {name: os.path.join(session_dir(name), LOG_NAME) for name in list_sessions()}
    found = [name for name, path in logs.items() if (target is None or target in name) and os.path.exists(path)]
    if not found and target is None:
        raise NetsandboxError("no session has left a log yet; run one with `netsandbox run`")
    if not found:
        raise NetsandboxError(f"no log is known as {target!a}; `netsandbox audit tail PATH` reads a file anywhere")
    if target is not None and len(found) > 1:
        raise UsageError(f"{target!a} fits {len(found)} sessions; write more of the id, such as {found[0]}")
    return logs[found[0]]


def _records(path: str) -> Iterator[Record]:
    """The records at *path*; lines that are none are counted and told, since they may be what someone wants hidden."""
    good = bad = 0
    for line in read_lines(path):
        if line.record is None:
            bad += 1
        else:
            good += 1
            yield line.record
    if bad and not good:
        raise NetsandboxError(f"{path!a} holds no audit record; give a session id or an audit log")
    if bad:
        print(f"netsandbox: {bad} damaged lines were left out; run `netsandbox audit verify {path!a}`", file=sys.stderr)


def _coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _print(records: Iterable[Record], options: Options) -> None:
    coloured = _coloured()
    for record in records:
        print(json.dumps(record, separators=(",", ":")) if options.json else table.row(record, coloured=coloured))


def _show(options: Options, path: str, keep: Filter) -> int:
    _print(filter(keep, _records(path)), options)
    return 0


def _tail(options: Options, path: str, keep: Filter) -> int:
    count = _line_count(options.lines)
    if not options.follow:
        _print(deque(filter(keep, _records(path)), maxlen=count), options)
        return 0
    last: deque[Record] | None = deque(maxlen=count)
    for record in follow(path):
        if record is None:
            _print(last or (), options)
            last = None
            sys.stdout.flush()
        elif keep(record) and last is not None:
            last.append(record)
        elif keep(record):
            _print([record], options)
    _print(last or (), options)
    return 0


def _line_count(text: str | None) -> int:
    if text is None:
        return 20
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise UsageError(f"-n {text!a} is not a number of records; write for instance -n 50")
    return int(text)


def _summary(options: Options, path: str, keep: Filter) -> int:
    # The frame of the session is no attempt: a filter on hosts must not make it look unfinished.
    summary = summarise(record for record in _records(path) if keep(record) or record["event"] in FRAME)
    if options.json:
        print(json.dumps(summary.as_json(), indent=2))
    else:
        print(table.summary_text(summary, coloured=_coloured()))
    return 1 if options.fail_on_denied and summary.attempts_denied else 0


def _verify(options: Options, path: str, _keep: Filter) -> int:
    report = verify(path)
    if options.json:
        print(json.dumps({"ok": report.ok, **asdict(report)}, indent=2))
    else:
        print(table.report_text(report))
    return 0 if report.ok else 1
