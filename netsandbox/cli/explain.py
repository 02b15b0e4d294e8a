"""`netsandbox explain [HOST[:PORT] | PATH]`: the policy's verdict, its reason and rule, and what would reverse it.

It calls the same `decide` as every door (INV-3) and dials nothing. The exit status is 0 for allowed, 1 for denied
and 2 if the argument is not a host. Without a port the default ports are checked, and
the host is allowed if all of them are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.backends import own_addresses
from netsandbox.cli.explain_path import answer as answer_path
from netsandbox.cli.explain_path import is_file, is_path
from netsandbox.cli.help import print_help, print_lines
from netsandbox.cli.notices import ignored_lines, shell_word
from netsandbox.cli.run_options import LOCALHOST_OPTIONS, POLICY_OPTIONS, policy_of, read_config, settings_of
from netsandbox.cli.terminal import notice, print_text
from netsandbox.errors import UsageError
from netsandbox.paths import short
from netsandbox.policy import reasons
from netsandbox.policy.explain import Explanation, because, budget_notes, excepting
from netsandbox.policy.ip import Address, parse6
from netsandbox.policy.names import BadName, Host, canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import read_port
from netsandbox.policy.verdict import DNS, TCP, Request, verdict
from netsandbox.runtime.option_parser import DOMAINS, FLAG, VALUE, Option, parse
from netsandbox.settings import RunSettings
from netsandbox.text import join_host_port, quoted, single_line

OPTIONS = (
    *POLICY_OPTIONS,
    *(option for option in LOCALHOST_OPTIONS if option.name == "connect-host"),
    Option("last", FLAG, "l", "", "explain the last denial of this folder's newest session, or of SESSION"),
    Option("event", VALUE, "e", "SEQ", "with --last: explain this record of the log"),
    Option("json", FLAG, "", "", "for programs"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = DOMAINS
USAGE = """\
usage: netsandbox explain [HOST[:PORT] | URL | PATH] [OPTIONS]
       netsandbox explain --last [--event SEQ] [SESSION]

  netsandbox explain --last           the last refusal, and what allows it
  netsandbox explain example.com      whether this host is allowed here
  netsandbox explain 'POST URL'       whether rules for requests allow this one
  netsandbox explain ~/.ssh/config    whether a session may read this file

Print whether a host is allowed under these options, which rule decides, and which option would change it. A word that \
begins with / ~ or . is a path. Without a host or path: print the whole policy of this folder, and the file and line \
of each value.
Exit status: 0 allowed, 1 denied, 2 not a host."""
LOCALHOST_ADDRESSES = ("127.0.0.1", "::1")
SCHEMES = {"http": 80, "https": 443}
AFTER_LOOKUP = "the addresses it resolves to are checked again: private ones need --allow-address"
OWN_LOOPBACK = "inside a session this is the session's own loopback, which always works; the verdict is on the host's"


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox explain")
    if "help" in parsed.flags:
        from netsandbox.cli.run import GROUPS

        return print_help(USAGE, OPTIONS, {"options": ("last", "event", "json", "help"), **GROUPS})
    words = [" ".join(parsed.words)] if "://" in "".join(parsed.words[1:2]) else parsed.words  # METHOD URL
    if parsed.command is not None or len(words) > 1:
        raise UsageError("explain takes one host or request; write `netsandbox explain example.com:443`")
    file = read_config(parsed)
    policy, settings = policy_of(parsed, file), settings_of(parsed, file)
    as_json = "json" in parsed.flags
    if file is not None and file.ignored and not as_json and (parsed.words or "last" in parsed.flags):
        for line in ignored_lines(file.ignored):
            notice(line)
    if "last" in parsed.flags or "event" in parsed.values:
        from netsandbox.cli.explain_denial import answer as answer_past

        return answer_past(parsed.words, parsed.values.get("event"), policy, as_json=as_json)
    if parsed.words and (is_path(parsed.words[0]) or _is_only_file(parsed.words[0])):
        return answer_path(parsed.words[0], settings, as_json=as_json)
    if words and "://" in words[0] and (policy.inspection is not None or " " in words[0]):
        from netsandbox.cli.explain_request import answer as answer_request

        return answer_request(words[0], policy, as_json=as_json)
    if parsed.words:
        from netsandbox.cli.explain_config import rules_to_trust

        rules = rules_to_trust(file) if file is not None and file.ignored else []
        return _answer(policy, parsed.words[0], settings, rules, as_json=as_json)
    from netsandbox.cli.explain_config import config_json, config_lines

    if as_json:
        print_text(json.dumps(config_json(parsed, file, policy, settings), indent=2))
    else:
        print_lines(map(single_line, config_lines(parsed, file, policy, settings)))
    return 0


def _answer(
    policy: Policy, word: str, settings: RunSettings, untrusted: Iterable[tuple[str, str]], *, as_json: bool
) -> int:
    host, port = read_target(word)
    explained = explain(policy, host, port, own_addresses(), settings.localhost.connect_host)
    allowed = all(each.verdict.allowed for kind, each in explained if kind == TCP)
    notes = notes_on(explained, allowed=allowed)
    notes += [
        f"it is an exception of the deny rule {rule.text} ({rule.origin})" for rule in excepting(policy, host.text)
    ]
    notes += budget_notes(policy, host.text, policy.default_ports if port is None else (port,))
    if is_file(word):
        notes.append(f"this is about the host; for the file of this name write ./{word}")
    if not allowed:
        notes += _once_trusted(untrusted, host, port)
    if settings.ask is not None and not allowed:
        notes += _asking(host, explained, settings.ask)
    if as_json:
        print_text(json.dumps(target_json(host, port, explained, notes, allowed=allowed), indent=2))
    else:
        shown = [host.bracketed, *verdict_lines(explained), *(f"  note: {note}" for note in notes)]
        print_lines(map(single_line, shown))
    return 0 if allowed else 1


def _is_only_file(word: str) -> bool:
    """Whether *word* is the name of a file here and cannot be a host."""
    if not is_file(word):
        return False
    try:
        read_target(word)
    except UsageError:
        return True
    return False


def _once_trusted(untrusted: Iterable[tuple[str, str]], host: Host, port: int | None) -> list[str]:
    """A note for each file that would allow the host."""
    found: dict[str, str] = {}
    for text, origin in untrusted:
        try:
            explained = explain(Policy([text]), host, port)
        except UsageError:  # the name of a setting
            continue
        if any(each.verdict.allowed for kind, each in explained if kind == TCP):
            found.setdefault(origin.rpartition(":")[0], origin)
    return [
        f"{short(origin)} would allow it, once you run `netsandbox trust {shell_word(file)}`"
        for file, origin in found.items()
    ]


def read_target(text: str) -> tuple[Host, int | None]:
    """HOST, HOST:PORT, [IPv6], [IPv6]:PORT, a bare IPv6 address or an http(s) URL."""
    authority, port = text, None
    if "://" in text:
        scheme, _, rest = text.partition("://")
        port = SCHEMES.get(scheme.lower())
        if port is None or "\\" in text:
            raise UsageError(f"{quoted(text)} is not an http or https URL; write the host, such as example.com:443")
        authority = rest.partition("#")[0].partition("?")[0].partition("/")[0]
    name, colon, number = _split(authority)
    if colon:
        port = read_port(number) if number else None
        if port is None:
            raise UsageError(f"{quoted(text)} has a bad port; write a port from 1 to 65535")
    try:
        return canonical(name), port
    except BadName as error:
        raise UsageError(f"{error}; write a host such as example.com, 192.0.2.7 or [2001:db8::1]:443") from None


def _split(authority: str) -> tuple[str, str, str]:
    if authority.startswith("["):
        inside, bracket, rest = authority.partition("]")
        return (inside + bracket, rest[:1], rest[1:]) if rest[:1] in ("", ":") else (authority, "", "")
    if authority.count(":") < 2:
        return authority.partition(":")
    front, _, back = authority.rpartition(":")
    if read_port(back) is not None and parse6(front) is not None:
        shown = quoted(authority)
        raise UsageError(f"{shown} may or may not end in a port; write [{front}]:{back} or [{authority}]")
    return f"[{authority}]", "", ""


def explain(
    policy: Policy, host: Host, port: int | None, own: Collection[Address] = (), doors: Collection[HostPort] = ()
) -> list[tuple[str, Explanation]]:
    """One explanation for each port, and for a name one for its lookup. *doors* are those of --connect-host."""
    ports = policy.default_ports if port is None else (port,)
    explained = [(TCP, _at_localhost(_reach(policy, host, number, own), doors)) for number in ports]
    if host.address is None:
        explained.append((DNS, policy.explain(Request(host, 0, DNS))))
    return explained


def _reach(policy: Policy, host: Host, port: int, own: Collection[Address]) -> Explanation:
    """The same steps as the gate: what `decide` allows must pass the address check too (INV-4)."""
    explained = policy.explain(Request(host, port, TCP))
    if host.address is None or not explained.verdict.allowed:
        return explained
    checked = policy.check_address(host, host.address, port, own)
    if checked.allowed:
        return explained
    return Explanation(checked, because(checked), f"--allow-address {join_host_port(host.text, port)}")


def _at_localhost(explained: Explanation, doors: Collection[HostPort]) -> Explanation:
    """A port of the host's localhost is reached at the session's localhost with --connect-host, by every program. An
    address rule would open it at the proxy only, which programs do not use for localhost."""
    denied = explained.verdict
    if denied.allowed or denied.address not in LOCALHOST_ADDRESSES:
        return explained
    for door in doors:
        if denied.port == door.inside:
            rule, option = str(door), "--connect-host"
            found = verdict(reasons.RULE, denied.host, denied.port, allowed=True, rule=rule, origin=option)
            return Explanation(found, because(found), None)
    return Explanation(denied, explained.because, f"--connect-host {denied.port}")


def notes_on(explained: Sequence[tuple[str, Explanation]], *, allowed: bool) -> list[str]:
    lookups = [each.verdict.reason for kind, each in explained if kind == DNS]
    if reasons.LOOPBACK in lookups:
        return [OWN_LOOPBACK]
    return [AFTER_LOOKUP] if allowed and lookups else []


def _asking(host: Host, explained: Sequence[tuple[str, Explanation]], ask: int) -> list[str]:
    from netsandbox.session.approvals.askable import is_askable

    refused = [each.verdict for kind, each in explained if kind == TCP and not each.verdict.allowed]
    asked = refused and all(is_askable(host, each) for each in refused)
    return [f"a session asks you first and waits {ask} s: `netsandbox pending` shows what it asks"] if asked else []


def verdict_lines(explained: Sequence[tuple[str, Explanation]]) -> list[str]:
    """One line for each port, folded where only the port differs; a second line for the remedy."""
    folded: dict[tuple[str, bool, str], list[Explanation]] = {}
    for kind, each in explained:
        folded.setdefault((kind, each.verdict.allowed, each.because), []).append(each)
    lines = []
    for (kind, allowed, why), group in folded.items():
        what = kind if kind == DNS else f"{kind} {', '.join(str(each.verdict.port) for each in group)}"
        lines.append(f"  {what:<12} {'allowed' if allowed else 'denied':<8} {why}")
        if not allowed:
            changes = " and ".join(dict.fromkeys(each.change for each in group if each.change))
            lines.append(f"  {'':<12} {'':<8} {f'to allow it: {changes}' if changes else 'no option allows it'}")
    return lines


def target_json(
    host: Host,
    port: int | None,
    explained: Sequence[tuple[str, Explanation]],
    notes: list[str],
    *,
    allowed: bool,
) -> dict[str, object]:
    verdicts = [
        {
            "kind": kind,
            "port": each.verdict.port or None,
            "allowed": each.verdict.allowed,
            "reason": each.verdict.reason,
            "because": each.because,
            "rule": each.verdict.rule,
            "origin": each.verdict.origin,
            "address": each.verdict.address,
            "guard": each.verdict.guard,
            "change": each.change,
        }
        for kind, each in explained
    ]
    return {"v": 1, "host": host.text, "port": port, "allowed": allowed, "verdicts": verdicts, "notes": notes}
