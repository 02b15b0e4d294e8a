"""The smallest addition to a policy that lets through what a run used, and confines its writing to that. Pure."""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.learn.folding import Proposal, fold
from netsandbox.learn.proposed_paths import ProposedPaths, proposed_paths
from netsandbox.policy.ip import parse
from netsandbox.policy.names import canonical, host_of
from netsandbox.policy.verdict import TCP, Request
from netsandbox.text import join_host_port, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from netsandbox.learn.proposed_paths import PresentFiles
    from netsandbox.learn.usage import Usage
    from netsandbox.policy.ip import Address
    from netsandbox.policy.names import Host
    from netsandbox.policy.policy import Policy

MAX_RULES = 200
_LISTED = 20


@frozen
class Proposed:
    """Rules to add, and lines about what is left to the user."""

    domains: tuple[Proposal, ...] = ()
    addresses: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    writable: tuple[tuple[str, str], ...] | None = None  # with comments; an empty list confines, None says nothing

    @property
    def online(self) -> bool:
        """Whether it needs anything of the network."""
        return bool(self.domains or self.addresses)

    @property
    def opens(self) -> bool:
        """Whether anything of it needs trust."""
        return self.online or bool(self.writable)

    @property
    def empty(self) -> bool:
        return not self.online and self.writable is None


def proposed(
    used: Usage,
    policy: Policy,
    own: Collection[Address] = (),
    *,
    dialled: bool = True,
    files: PresentFiles | None = None,
) -> Proposed:
    """*policy* holds already and is filtered. *dialled*: addresses are those of names, not of a proxy on the way.
    *files* is None where none were watched."""
    names = [(name, port) for name, port in used.names if not _is_allowed(policy, canonical(name), port)]
    names = [pair for pair in names if policy.denies_name(canonical(pair[0]), pair[1]) is None]
    denied = [*used.denied_names, *(f"x.{rule.name}" if rule.below else rule.name for rule in policy.deny_domains)]
    wanted = [*used.literals, *(used.addresses if dialled else ())]
    addresses = [join_host_port(text, port) for text, port in wanted if _needs_rule(policy, used, text, port, own)]
    domains = fold(names, policy.default_ports, denied)
    paths = ProposedPaths() if files is None else proposed_paths(used, files)
    return Proposed(
        tuple(domains[:MAX_RULES]),
        tuple(dict.fromkeys(addresses))[:MAX_RULES],
        (
            *_remarks(used, cut=used.more or max(len(domains), len(addresses)) > MAX_RULES),
            *(line for title, items in paths.remarks for line in _listed(title, items)),
        ),
        paths.writable,
    )


def _is_allowed(policy: Policy, host: Host, port: int) -> bool:
    return policy.decide(Request(host, port, TCP)).allowed


def _needs_rule(policy: Policy, used: Usage, text: str, port: int, own: Collection[Address]) -> bool:
    """An address that was reached by itself needs a rule of its own; one behind a name only where it is guarded."""
    address = parse(text)
    if address is None:
        return False
    if (text, port) in used.literals:
        return not _is_allowed(policy, host_of(address), port)
    return not policy.check_address(host_of(address), address, port, own).allowed


def _remarks(used: Usage, *, cut: bool) -> list[str]:
    lines: list[str] = []
    if cut:
        lines.append("it went to more hosts than are listed here: it needs wildcards of your choice, or --online")
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
    """The tables and keys to add to, each with its rules and a comment on each."""
    lists: list[tuple[str, str, list[tuple[str, str]]]] = []
    if found.domains:
        lists.append(("network", "allow_domains", [(each.rule, each.comment) for each in found.domains]))
    if found.addresses:
        lists.append(("network", "allow_addresses", [(rule, "") for rule in found.addresses]))
    if found.writable is not None:
        lists.append(("filesystem", "allow_write", list(found.writable)))
    return lists
