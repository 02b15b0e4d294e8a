"""`netsandbox explain --last`: a denial of a past session, from its log: what, when, why, and the smallest change.

The log names the rule that decided, not the file and line of that rule; these come from the policy as it is now, and
the output says so. A command chose what the log holds, so it is read strictly and printed escaped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping

from netsandbox.audit.denials import wanted
from netsandbox.audit.placed_log import newest
from netsandbox.audit.reader import Record, read_records
from netsandbox.audit.record_line import DENY, FILE_EVENTS, MAX_TEXT
from netsandbox.audit.requests import HTTP
from netsandbox.backends import own_addresses
from netsandbox.cli.audit import find_log
from netsandbox.cli.explain_request import decided_request
from netsandbox.cli.help import print_lines
from netsandbox.cli.terminal import print_text
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.frozen import frozen
from netsandbox.learn.project_text import project_file_path
from netsandbox.learn.usage import UNREACHED
from netsandbox.paths import LOG_NAME, home, list_sessions, session_dir, short
from netsandbox.policy import reasons
from netsandbox.policy.explain import TEXTS, Explanation, because, flag_for
from netsandbox.policy.file_denials import Advice, not_advised, removal, shell_path
from netsandbox.policy.habits import is_habit
from netsandbox.policy.http_rules import PORTS, HttpRule
from netsandbox.policy.inspection import HttpRequest, request_rule
from netsandbox.policy.ip import Address
from netsandbox.policy.ip import parse as parse_address
from netsandbox.policy.names import BadName, Host, canonical, host_of
from netsandbox.policy.policy import AddressRule, DomainRule, Policy
from netsandbox.policy.verdict import DNS, TCP, Request, Verdict, verdict
from netsandbox.runtime.protection import own_paths
from netsandbox.session.recorded_names import first_record
from netsandbox.system import ORGANISATION_FILE
from netsandbox.text import printable, shell_quoted

PORT_OPTIONS = {reasons.OWN_LOCALHOST: "--connect-host", reasons.NOT_PUBLISHED: "--publish"}
UNMENTIONED = (reasons.OFFLINE, reasons.NOT_ALLOWED, reasons.ADDRESS_LITERAL)
MAX_SESSIONS = 1000  # that are looked through for one of this folder
KEYS = {
    "--allow-domain": "network.allow_domains",
    "--allow-address": "network.allow_addresses",
    "--allow-http": "network.allow_http",
    "--allow-unix-socket": "network.allow_unix_sockets",
    "--allow-query-type": "network.allow_query_types",
    "--connect-host": "localhost.connect_host",
    "--publish": "localhost.publish",
    "--allow-read": "filesystem.allow_read",
    "--allow-write": "filesystem.allow_write",
    "--allow-execute": "filesystem.allow_execute",
}


@frozen
class ExplainedRecord:
    """One record, explained."""

    record: Mapping[str, object]
    why: str
    rule: str | None
    origin: str | None  # of that rule, in the policy as it is now
    change: tuple[str, str] | None  # the option that would have allowed it, and its value
    advice: str
    now: Explanation | None  # what the policy answers now

    @property
    def denied(self) -> bool:
        return self.record.get("verdict") == DENY

    @property
    def is_unreached(self) -> bool:
        """Whether the policy allowed it, and the network failed."""
        return self.denied and self.record.get("reason") in UNREACHED

    @property
    def option(self) -> str | None:
        return None if self.change is None else f"{self.change[0]} {shell_quoted(self.change[1])}"


def answer(words: list[str], event: str | None, policy: Policy, *, as_json: bool) -> int:
    """Print it; the exit status: 1 for a denial, 0 for anything else."""
    if len(words) > 1:
        raise UsageError("explain --last reads one session; write `netsandbox explain --last SESSION`")
    path, session = (find_log(words[0], "explain --last"), None) if words else newest_here()
    records = (each for each in read_records(path) if session in (None, each["session"]))
    found = _by_number(records, event) if event is not None else last_denial(records)
    if found is None:
        print_text(
            json.dumps({"v": 1, "denied": False})
            if as_json
            else f"nothing was denied in the session of {printable(path)}"
        )
        return 0
    explained = explain_record(found, policy, own_addresses())
    if as_json:
        print_text(json.dumps(denial_json(explained), indent=2))
    else:
        print_lines(denial_lines(explained, project_file_path()))
    return 1 if explained.denied else 0


def newest_here() -> tuple[str, str | None]:
    """The log of the newest session that was started in this folder, and that session where the log may have others."""
    try:
        here = os.getcwd()
    except OSError:
        raise NetsandboxError("the working folder was removed; write `netsandbox explain --last SESSION`") from None
    usual = list_sessions()
    placed = newest()
    if placed is not None and (not usual or usual[0] < placed[0]) and _folder_of_session(*placed) == here:
        return placed[1], placed[0]
    for session in usual[:MAX_SESSIONS]:
        path = os.path.join(session_dir(session), LOG_NAME)
        if os.path.exists(path) and first_record(path).get("folder") == here:
            return path, None
    raise NetsandboxError(
        "no session of this folder has left a log; go to the folder where it ran, or write"
        " `netsandbox explain --last SESSION` with an id or the path of a log"
    )


def _folder_of_session(session: str, path: str) -> object:
    """The folder that *session* was started in, by a log of several; None where that is not known."""
    try:
        starts = (each for each in read_records(path) if each["session"] == session)
        return next((each.get("folder") for each in starts if each["event"] == "session.start"), None)
    except (NetsandboxError, OSError):
        return None


def last_denial(records: Iterable[Record]) -> Record | None:
    """The last denial. What programs try by habit counts only if there is no other; and of that, what a command that
    failed may have needed comes first."""
    found: list[Record | None] = [None, None, None]
    own = os.path.realpath(home())
    for each in records:
        if each.get("verdict") == DENY:
            found[is_habit(each, own) + is_habit(each, own, succeeded=True)] = each
    return next((each for each in found if each is not None), None)


def _by_number(records: Iterable[Record], text: str) -> Record:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(
            f"--event {text!a} is not the number of a record; `netsandbox audit show --json` has them as seq"
        )
    for each in records:
        if each["seq"] == int(text):
            if "verdict" not in each:
                kind = printable(each["event"])
                raise UsageError(f"record {int(text)} is of the kind {kind}: nothing was decided; choose another")
            return each
    raise NetsandboxError(f"the log has no record {int(text)}; `netsandbox audit show --json` has them as seq")


def explain_record(entry: Mapping[str, object], policy: Policy, own: Collection[Address] = ()) -> ExplainedRecord:
    """*policy* is that of now."""
    reason, rule = str(entry.get("reason", "?")), entry.get("rule")
    host, number = _host(entry.get("host")), entry.get("port")
    port = number if type(number) is int and 0 < number < 65536 else 0
    text = rule if isinstance(rule, str) else None
    address = entry.get("address")
    address = address if isinstance(address, str) and parse_address(address) is not None else None
    origin = _origin(text, policy)
    bound = policy.mode_origin if policy.mode_origin.startswith(ORGANISATION_FILE) else None
    logged = verdict(
        reason,
        host.text if host else "",
        port,
        origin=bound if reason == reasons.OFFLINE else None,
        address=host.text if host and host.address else address if reason == reasons.ADDRESS_GUARD else None,
    )
    why, advice = TEXTS.get(reason) or (because(logged), "")
    now = _now(entry, host, port, address, policy, own)
    if reason == reasons.DENY_RULE and text is not None and entry.get("event") in FILE_EVENTS:
        advice = removal(text)
    elif reason in (reasons.DENY_RULE, reasons.REQUEST_DENIED) and text is not None:
        advice = f"remove {text} from the deny rules{f' ({origin})' if origin else ''}"
    elif reason == reasons.BUDGET:
        advice = f"start the session with a larger budget than --budget {shell_quoted(text or '')}".rstrip()
    change = _change_for(entry, logged, policy)
    if change is None and text is None and entry.get("event") in FILE_EVENTS:
        advice = _instead(entry) or advice
    return ExplainedRecord(entry, why, text, origin, change, advice, now)


def _instead(entry: Mapping[str, object]) -> str | None:
    """What to do about a file that no option is advised for."""
    path, real = str(entry.get("path", "")), os.path.realpath(str(entry.get("path", "")))
    if not _is_whole(path):
        return None
    if _advice().is_own(real, str(entry.get("operation"))):
        return "no option allows it, because it belongs to netsandbox"
    return not_advised(real, os.path.realpath(home()))


def _is_whole(path: str) -> bool:
    """Whether the log has the path as the command wrote it."""
    return path.startswith("/") and path.isprintable() and len(path) <= MAX_TEXT


def _advice() -> Advice:
    return Advice(os.path.realpath(home()), os.path.realpath, own_paths)


def _host(text: object) -> Host | None:
    if not isinstance(text, str):
        return None
    address = parse_address(text)
    try:
        return canonical(text) if address is None else host_of(address)
    except BadName:
        return None


def _origin(rule: str | None, policy: Policy) -> str | None:
    """The file and line of the rule now."""
    rules: list[DomainRule | AddressRule | HttpRule]
    rules = [*policy.deny_domains, *policy.allow_domains, *policy.allow_addresses]
    if policy.inspection is not None:
        rules = [*policy.inspection.deny, *policy.inspection.allow, *rules]
    found = [(each.text, each.origin) for each in (*rules, *policy.budgets)]
    return next((origin for text, origin in found if text == rule), None)


def _change_for(entry: Mapping[str, object], logged: Verdict, policy: Policy) -> tuple[str, str] | None:
    """The smallest change. The hint in the log is not used."""
    path, qtype = str(entry.get("path", "")), str(entry.get("qtype", ""))
    if logged.reason == reasons.UNIX_SOCKET and path.startswith("/") and path.isascii() and path.isprintable():
        return "--allow-unix-socket", path
    if logged.reason in PORT_OPTIONS and logged.port:
        return PORT_OPTIONS[logged.reason], str(logged.port)
    if entry.get("event") == HTTP:
        is_missing = logged.reason == reasons.REQUEST_NOT_ALLOWED and logged.host and logged.port
        rule = request_rule(logged.host, logged.port, _request(entry)) if is_missing else None
        return None if rule is None else ("--allow-http", rule)
    if entry.get("event") in FILE_EVENTS:
        if logged.reason == reasons.DENY_RULE:
            return None
        return _advice().option(path, str(entry.get("operation")), logged.reason) if _is_whole(path) else None
    qtype = qtype if qtype.isascii() and qtype.isalnum() else ""
    name, _, value = ((logged.host and flag_for(logged, policy.default_ports, qtype)) or "").partition(" ")
    return (name, value) if value else None


def _now(
    entry: Mapping[str, object],
    host: Host | None,
    port: int,
    address: str | None,
    policy: Policy,
    own: Collection[Address],
) -> Explanation | None:
    """The present policy's verdict on the same attempt, if the policy had decided it."""
    if entry.get("reason") in (reasons.OWN_LOCALHOST, reasons.BUDGET):  # no rule decided
        return None
    if entry.get("event") == HTTP and host is not None and port:
        return _request_now(host, port, _request(entry), policy)
    if host is None or entry.get("event") not in ("egress", "dns") or (entry["event"] == "egress" and not port):
        return None
    kind = DNS if entry["event"] == "dns" else TCP
    explained = policy.explain(Request(host, port, kind))
    found = parse_address(address) if address and entry.get("reason") == reasons.ADDRESS_GUARD else host.address
    if kind == DNS or found is None or not explained.verdict.allowed:
        return explained
    checked = policy.check_address(host, found, port, own)
    return Explanation(checked, because(checked), flag_for(checked, policy.default_ports))


def _request(entry: Mapping[str, object]) -> HttpRequest:
    scheme, method, path = (str(entry.get(name, "")) for name in ("scheme", "method", "path"))
    return HttpRequest(scheme if scheme in PORTS else "https", method, path)


def _request_now(host: Host, port: int, request: HttpRequest, policy: Policy) -> Explanation:
    found, change = decided_request(policy, host, port, request)
    return Explanation(found, TEXTS.get(found.reason, (because(found), ""))[0], change)


def denial_lines(explained: ExplainedRecord, file: str) -> list[str]:
    """For people; *file* is the project's, where the change would be written."""
    entry = explained.record
    lines = [
        f"{_what(explained)}{_by(entry)}",
        printable(f"when      {entry.get('ts')}, record {entry.get('seq')} of session {entry.get('session')}"),
        f"why       {printable(entry.get('reason', '-'))}: {printable(explained.why)}",
    ]
    if entry.get("detail"):
        lines.append(f"detail    {printable(entry['detail'])}")
    if explained.rule is not None and entry.get("event") in FILE_EVENTS:  # it names its file and line
        lines.append(f"rule      {printable(explained.rule)}")
    elif explained.rule is not None:
        where = (
            f"{printable(explained.origin)}, in the policy as it is now"
            if explained.origin
            else "not in the policy as it is now"
        )
        lines.append(f"rule      {printable(explained.rule)} ({where})")
    if explained.denied and is_habit(entry, os.path.realpath(home())):
        lines.append("note      programs try this by habit and do without it: rarely the cause of a failure")
    if explained.denied:
        lines += _change(explained, file)
    return [*lines, *_now_line(explained)]


def _what(explained: ExplainedRecord) -> str:
    entry, path = explained.record, str(explained.record.get("path", ""))
    is_file = entry.get("event") in FILE_EVENTS and _is_whole(path)
    what = wanted(str(entry.get("event")), {**entry, "path": short(path)} if is_file else entry)
    if explained.is_unreached:
        return f"allowed   {what}, but it was not reached"
    return f"{'denied' if explained.denied else 'allowed':<10}{what}"


def _now_line(explained: ExplainedRecord) -> list[str]:
    """None if the policy of now is without rules about it: that run had options, and this is not a second cause."""
    if explained.now is None:
        return []
    now, why = explained.now.verdict, printable(explained.now.because)
    if now.allowed:
        return [f"now       allowed by the policy as it is now: {why}"]
    if explained.is_unreached or not explained.denied:
        return [f"now       denied by the policy as it is now, without the options of that run: {why}"]
    is_unmentioned = now.reason in UNMENTIONED and not now.origin
    if is_unmentioned and now.reason != explained.record.get("reason"):
        return []
    return [f"now       denied by the policy as it is now: {why}"]


def _by(entry: Mapping[str, object]) -> str:
    exe, pid = entry.get("exe"), entry.get("pid")
    return f", by {printable(exe)}{f' (pid {printable(pid)})' if pid else ''}" if exe else ""


def _change(explained: ExplainedRecord, file: str) -> list[str]:
    if explained.change is not None:
        name, value = explained.change
        table, _, key = KEYS[name].partition(".")
        is_path = table == "filesystem"
        option = f"{name} {shell_path(value, os.path.realpath(home()))}" if is_path else explained.option
        line = f"{key} = [{json.dumps(short(value) if is_path else value)}]"
        now = explained.now.verdict if explained.now else None
        closing = (now.origin or "") if now and now.reason == reasons.OFFLINE else ""
        also = f", remove its mode ({printable(short(closing))})" if closing.startswith(f"{file}:") else ""
        return [
            f"to allow  netsandbox run {option}",
            f"or write  {line} below [{table}] in {printable(short(file))}{also}, then `netsandbox trust`",
        ]
    return [f"to do     {printable(explained.advice)}" if explained.advice else "to allow  no option allows it"]


def denial_json(explained: ExplainedRecord) -> dict[str, object]:
    option, value = explained.change or (None, None)
    now = explained.now
    return {
        "v": 1,
        "denied": explained.denied,
        "record": dict(explained.record),
        "because": explained.why,
        "rule": explained.rule,
        "origin_now": explained.origin,
        "option": explained.option,
        "key": None if option is None else KEYS[option],
        "value": value,
        "advice": explained.advice or None,
        "now": now and {"allowed": now.verdict.allowed, "because": now.because, "change": now.change},
    }
