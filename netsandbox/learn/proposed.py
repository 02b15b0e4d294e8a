"""The smallest addition to a policy that allows what a run used of the network and of files. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from netsandbox.frozen import copy_with, frozen
from netsandbox.learn.name_folding import Proposal, fold_names
from netsandbox.learn.request_folding import LearntRequest, RequestProposal, fold_requests
from netsandbox.learn.usage import Usage
from netsandbox.policy import reasons
from netsandbox.policy.file_denials import is_quiet, is_secret, not_advised
from netsandbox.policy.file_rules import CHANGE, MAKE, is_within
from netsandbox.policy.inspection import HttpRequest
from netsandbox.policy.ip import Address, parse
from netsandbox.policy.names import Host, canonical, host_of
from netsandbox.policy.path_folding import EntryLimits, PathProposal, fold_paths
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP, Request
from netsandbox.text import join_host_port, printable

MAX_RULES = 200
_LISTED = 20


@frozen
class Proposed:
    """Rules to add, and lines about what is left to the user."""

    domains: tuple[Proposal, ...] = ()
    addresses: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    writable: tuple[tuple[str, str], ...] = ()  # with comments
    readable: tuple[tuple[str, str], ...] = ()
    requests: tuple[RequestProposal, ...] = ()

    @property
    def online(self) -> bool:
        """Whether the proposal has rules for the network."""
        return bool(self.domains or self.requests or self.addresses)

    @property
    def empty(self) -> bool:
        return not (self.online or self.writable or self.readable)


def proposed(
    used: Usage,
    policy: Policy,
    own: Collection[Address] = (),
    *,
    dialled: bool = True,
    files: PresentFiles | None = None,
) -> Proposed:
    """*policy* is in force already, in filtered mode. *dialled*: addresses belong to names, not to a proxy. *files* is
    None if file access was not watched."""
    inspected = {(each.host, each.port) for each in used.requests}  # a rule for requests opens its host
    names = [pair for pair in used.names if pair not in inspected]
    names = [(name, port) for name, port in names if not _is_allowed(policy, canonical(name), port)]
    names = [pair for pair in names if policy.denies_name(canonical(pair[0]), pair[1]) is None]
    denied = [*used.denied_names, *(f"x.{rule.name}" if rule.below else rule.name for rule in policy.deny_domains)]
    wanted = [*used.literals, *(used.addresses if dialled else ())]
    addresses = [join_host_port(text, port) for text, port in wanted if _needs_rule(policy, used, text, port, own)]
    domains = fold_names(names, policy.default_ports, denied)
    requests = fold_requests(each for each in used.requests if not _is_ruled(policy, each))
    paths = ProposedPaths() if files is None else proposed_paths(used, files)
    return Proposed(
        tuple(domains[:MAX_RULES]),
        tuple(dict.fromkeys(addresses))[:MAX_RULES],
        (
            *_remarks(used, cut=used.more or max(len(domains), len(requests), len(addresses)) > MAX_RULES),
            *(line for title, items in paths.remarks for line in _listed(title, items)),
        ),
        paths.writable,
        paths.readable,
        tuple(requests[:MAX_RULES]),
    )


def _is_allowed(policy: Policy, host: Host, port: int) -> bool:
    return policy.decide(Request(host, port, TCP)).allowed


def _is_ruled(policy: Policy, used: LearntRequest) -> bool:
    """Whether a rule for requests allows it already; a name that is allowed has no such rule."""
    if policy.inspection is None:
        return False
    request = HttpRequest(used.scheme, used.method, used.path)
    return policy.inspection.decide(used.host, used.port, request).reason == reasons.RULE


def _needs_rule(policy: Policy, used: Usage, text: str, port: int, own: Collection[Address]) -> bool:
    """An address that was dialled directly needs a rule; one behind a name needs a rule only if the address guard
    refuses it."""
    address = parse(text)
    if address is None:
        return False
    if (text, port) in used.literals:
        return not _is_allowed(policy, host_of(address), port)
    return not policy.check_address(host_of(address), address, port, own).allowed


def _remarks(used: Usage, *, cut: bool) -> list[str]:
    lines: list[str] = []
    if cut:
        lines.append("it used more hosts or requests than are listed here: choose wildcards yourself, or use --online")
    lines += _listed("requests that no rule can name, so not proposed", used.unlearnt)
    lines += _listed("only looked up, never connected to, so not proposed", used.looked_up)
    lines += _listed("let through, but not reached, so not proposed", used.unreached)
    lines += _listed("refused by your own deny rules", used.denied_names)
    ports = [f"connect_host = [{port}]" for port in used.host_ports]
    lines += _listed("refused: ports of this machine's localhost; if it needs one, add to [localhost]", ports)
    lines += _listed("refused: sockets of this machine; if it needs one, add to allow_unix_sockets", used.unix_sockets)
    return lines + _listed("refused while learning, as it always is without a rule", used.refused)


def _listed(title: str, items: Sequence[object]) -> list[str]:
    if not items:
        return []
    more = [f"  and {len(items) - _LISTED} more"] if len(items) > _LISTED else []
    return [f"{title}:", *(f"  {printable(item)}" for item in items[:_LISTED]), *more]


def rule_lists(found: Proposed) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """The tables and keys to add to, each with its rules and their comments."""
    lists: list[tuple[str, str, list[tuple[str, str]]]] = []
    if found.domains:
        lists.append(("network", "allow_domains", [(each.rule, each.comment) for each in found.domains]))
    if found.requests:
        lists.append(("network", "allow_http", [(each.rule, each.comment) for each in found.requests]))
    if found.addresses:
        lists.append(("network", "allow_addresses", [(rule, "") for rule in found.addresses]))
    if found.readable:
        lists.append(("filesystem", "allow_read", list(found.readable)))
    if found.writable:
        lists.append(("filesystem", "allow_write", list(found.writable)))
    return lists


MAX_PATHS = 200
SECRETS = (
    "it tried to open these, and saw nothing: they hold secrets. If it cannot do without one, add it to [filesystem]"
    " yourself; whatever runs in the session can then read it"
)
DENIED = "it tried to open these, which your deny_read hides"
STARTS = "written, and something outside of the sandbox runs or obeys it, so not proposed"
LEFT = "written, but too much would be opened by a rule for it; if it needs one, choose a path for allow_write yourself"
UNREAD = "read, but too much would be shown by a rule for it; if it needs one, choose a path for allow_read yourself"
MORE = "it may have written at more paths than are recorded: then it needs folders of your choice in allow_write"


@frozen
class PresentFiles:
    """The present limits, as real paths. `base` is the folder of the project's file. `allowed` has the writable paths
    of files and profiles, `denied` the paths that the user hides. `exists` is called after the command has ended and
    returns whether a path still exists; `may_write` whether the user may write there outside of a session."""

    limits: EntryLimits
    base: str
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    exists: Callable[[str], bool] = lambda path: True
    may_write: Callable[[str], bool] = lambda path: True


@frozen
class ProposedPaths:
    """Entries of `allow_write` and `allow_read`, each with a comment. `remarks` has the paths that are left to the
    user, in groups with a title."""

    writable: tuple[tuple[str, str], ...] = ()
    readable: tuple[tuple[str, str], ...] = ()
    remarks: tuple[tuple[str, tuple[str, ...]], ...] = ()


def proposed_paths(used: Usage, present: PresentFiles) -> ProposedPaths:
    home, base = present.limits.home, present.base
    missing = [pair for pair in _missing(used.written, present.allowed) if present.may_write(pair[0])]
    folded = fold_paths([pair for pair in missing if not_advised(pair[0], home) is None], present.limits)
    texts = [(each, each.text(home, base)) for each in folded.entries]
    kept = [(each, text) for each, text in texts if _is_writable(text) and not _is_gone(each, present)]
    rules = [(text, printable(each.comment())) for each, text in kept]
    named = {each.path for each, _ in kept}
    left = (*folded.left, *(each.path for each, _ in texts if each.path not in named))
    read, secrets, unread = _reads(used, present, tuple(named))
    seen = dict.fromkeys((*(place for place in used.secrets), *secrets))
    hidden = [place for place in seen if not any(is_within(place, path) for path in present.denied)]
    keys = {path: advice for path in (*hidden, *(path for path, _ in missing)) if (advice := not_advised(path, home))}
    secret = [PathProposal(place, folder=False).text(home, base) for place in hidden if place not in keys]
    groups = [
        (SECRETS, tuple(f'allow_read = ["{text}"]' for text in secret)),
        *(
            (f"refused: {stay}", tuple(path for path in keys if keys[path] == stay))
            for stay in dict.fromkeys(keys.values())
        ),
        (DENIED, tuple(place for place in seen if place not in hidden)),
        (STARTS, tuple(path for path in left if present.limits.runs(path))),
        (LEFT, tuple(path for path in left if not present.limits.runs(path))),
        (UNREAD, unread),
        (MORE, ("see `netsandbox audit show --event file`",) if used.more_paths or len(rules) > MAX_PATHS else ()),
    ]
    return ProposedPaths(
        tuple(rules[:MAX_PATHS]), tuple(read[:MAX_PATHS]), tuple(group for group in groups if group[1])
    )


def _reads(
    used: Usage, present: PresentFiles, writable: tuple[str, ...]
) -> tuple[list[tuple[str, str]], list[str], tuple[str, ...]]:
    """Entries of `allow_read`, secrets that it wanted, and what no entry may show. What is *writable* is shown too.
    Start-up files and the like, which programs do without, are left out."""
    home, base = present.limits.home, present.base
    wanted = [
        path
        for path in used.read
        if not is_quiet(path, home) and present.exists(path) and not any(is_within(path, each) for each in writable)
    ]
    keys = [path for path in wanted if not_advised(path, home)]
    secrets = [path for path in wanted if is_secret(path, home) or path in keys]
    denied = [path for path in wanted if any(is_within(path, each) for each in present.denied)]
    others = [(path, CHANGE) for path in wanted if path not in secrets and path not in denied]
    folded = fold_paths(others, copy_with(present.limits, started=()))
    beside_keys = [each.path for each in folded.entries if any(is_within(key, each.path) for key in keys)]
    shown = [each for each in folded.entries if each.path not in beside_keys]
    texts = [(each.text(home, base).rstrip("/"), printable(each.comment())) for each in shown]
    entries = [(text, comment) for text, comment in texts if text and _is_writable(text)]
    return entries, [*secrets, *denied], (*folded.left, *beside_keys)


def _missing(written: Iterable[tuple[str, str]], allowed: tuple[str, ...]) -> list[tuple[str, str]]:
    """The paths that *allowed* does not cover. An allowed path itself cannot be created or removed by its rule."""
    return [
        (path, done)
        for path, done in written
        if not any(is_within(path, folder) and not (path == folder and done == MAKE) for folder in allowed)
    ]


def _is_gone(entry: PathProposal, present: PresentFiles) -> bool:
    """A file that was created and removed, such as a lock: a rule for the file alone would not let it be created
    again."""
    return entry.made and not entry.folder and not present.exists(entry.path)


def _is_writable(text: str) -> bool:
    """Whether a configuration file can contain the path: names need not be UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
