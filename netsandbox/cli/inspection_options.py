"""The options about requests: `--allow-http`, `--deny-http`, `--inspect`, `--inspect-except`, `--record-query`. `run`
loads this module for one of them, so that other launches do not load the rules for requests."""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.policy.inspection import inspection, parse_host, ruled_ports
from netsandbox.policy.names import canonical
from netsandbox.policy.verdict import TCP, Request
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.inspection import Inspection
    from netsandbox.policy.policy import DomainRule, Policy
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.runtime.session_secrets import SessionSecrets
    from netsandbox.settings import RunSettings

INSPECT = "--inspect"


def inspection_of(
    parsed: Parsed,
    file: FileSettings | None,
    opening: FileSettings | None,
    secrets: SessionSecrets | None,
    ports: tuple[int, ...],
    allowing: Sequence[DomainRule] = (),
) -> Inspection | None:
    """*opening*: the settings that allow something. *allowing*: the rules for names."""

    def given(name: str) -> list[tuple[str, str]]:
        return [(text, f"--{name}") for text in parsed.all(name)]

    found = inspection(
        [*(opening.allow_http if opening else ()), *given("allow-http")],
        [*(file.deny_http if file else ()), *given("deny-http")],
        [
            *_hosts([*(file.inspect if file else ()), *given("inspect")], allowing),
            *(secrets.hosts if secrets else ()),
        ],
        [*(file.inspect_except if file else ()), *given("inspect-except")],
        ports,
        records_query="record-query" in parsed.flags or (file is not None and file.record_query),
    )
    for host in _inspected(found):
        _check_not_excepted(host, found, ports)
    return found


def _hosts(given: Sequence[tuple[str, str]], allowing: Sequence[DomainRule]) -> Iterator[tuple[str, str]]:
    """Each host, at the ports that its rules name if it has none itself."""
    for text, origin in given:
        ports = ruled_ports(parse_host(text, origin), allowing)
        yield from ((f"{text}:{port}", origin) for port in ports) if ports else ((text, origin),)


def _inspected(found: Inspection | None) -> list[DomainRule]:
    """The hosts that the command line names."""
    return [] if found is None else [host for host in found.hosts if host.origin == INSPECT]


def _check_not_excepted(host: DomainRule, found: Inspection | None, ports: tuple[int, ...]) -> None:
    """A pattern is excepted only by itself: some of its names may be inspected."""
    if found is None or (not host.below and not found.excepts(host.name, (host.ports or ports)[0])):
        return
    if not host.below or any(each.text == host.text for each in found.excepted):
        raise UsageError(f"{INSPECT} {quoted(host.text)}: --inspect-except exempts this host; leave one of them out")


def is_recording(settings: RunSettings) -> bool:
    """Whether requests of some host are inspected, as far as it is known before the values of secrets are read."""
    return settings.inspect or any(",optional=yes" not in text for text, _ in settings.secret_rules)


def check_query(settings: RunSettings) -> None:
    if not is_recording(settings):
        raise UsageError(
            "--record-query records queries of inspected requests, and none is; add --inspect HOST or --allow-http"
        )


def unreached_lines(policy: Policy) -> list[str]:
    """The hosts of --inspect that the session does not reach, so that nothing is recorded."""
    return [
        f"no rule allows {host.text}, so {INSPECT} records nothing there; allow it with --allow-domain {host.text}"
        for host in _inspected(policy.inspection)
        if not host.below and not _is_reached(host, policy)
    ]


def _is_reached(host: DomainRule, policy: Policy) -> bool:
    name = canonical(host.name)
    return any(policy.decide(Request(name, port, TCP)).allowed for port in host.ports or policy.default_ports)
