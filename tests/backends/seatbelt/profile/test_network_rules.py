"""The ways out are the doors and nothing else, whichever report about Seatbelt is right; and each rule is needed.

A promise is kept when its probes are denied under every model and their twins allowed under every one. Then each
network rule is dropped, moved and widened, and each time a promise must break.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from netsandbox_portmap import FAIL, REWIRE_DEVICE, REWIRE_PORT

from netsandbox.backends.seatbelt.profile.profile_settings import (
    DOORS,
    NOTHING,
    NetworkSettings,
    OwnPaths,
    ProfileSettings,
)
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.errors import UsageError
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.filters import ANY, LOCAL, End, Filter, Path, Some
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import Profile, Rule, load
from tests.seatbelt_model.request import UDP, Request, bind, connect, connect_unix, listen, lookup

HTTP, DNS, ASKING, HOST = 21001, 21002, 21003, 5432
WINDOW = (20000, 20001, 20002)
OPEN = (HTTP, DNS, ASKING, HOST, *WINDOW)
STATE = "/Users/me/.local/state/netsandbox"
SOCKET = "/Users/me/run/engine.sock"
NETWORK: dict[str, Any] = {
    "mode": DOORS,
    "http_door": HTTP,
    "dns_door": DNS,
    "requests_door": ASKING,
    "strategy": FAIL,
    "base": WINDOW[0],
    "count": len(WINDOW),
    "connect_host": (HOST,),
    "unix_sockets": (SOCKET,),
}
LOOPBACKS = ("127.0.0.1", "::1")
FOREIGN = ("203.0.113.7", "192.168.1.10", "169.254.169.254", "2001:db8::7", "fe80::1", "255.255.255.255")


def settings(**network: Any) -> ProfileSettings:
    own = OwnPaths(hidden=(STATE,), port_map=f"{STATE}/sessions/1/ports")
    return ProfileSettings("/Users/me/src/app", "/Users/me", own=own, network=NetworkSettings(**{**NETWORK, **network}))


def profile(**network: Any) -> Profile:
    return load(session_profile(settings(**network)))


def must_be_denied() -> Iterator[Request]:
    """The most telling first: the mutations below stop at the first promise that breaks."""
    yield from (connect("203.0.113.7", port) for port in OPEN)
    yield from (bind("192.168.1.10", port) for port in WINDOW)
    yield from (listen("192.168.1.10", port) for port in WINDOW)
    yield from (connect("::1", 3000), bind("::1", 3000), listen("::1", 3000), connect("203.0.113.7", DNS, UDP))
    for address in LOOPBACKS:
        yield from (connect(address, port, UDP) for port in (HTTP, ASKING, HOST, *WINDOW, 53, 5353))
    for path in ("/private/var/run/mDNSResponder", "/private/var/run/docker.sock", f"{STATE}/control", f"{SOCKET}2"):
        yield connect_unix(path)
    for address in FOREIGN:
        yield from (connect(address, port) for port in (HTTP, 22, 80, 443))
        yield from (connect(address, port, UDP) for port in (53, 443, 5353))
    for address in LOOPBACKS:
        for port in (1, 22, 53, 631, 5433, WINDOW[0] - 1, WINDOW[-1] + 1, 65535):
            yield from (connect(address, port), bind(address, port), listen(address, port))
        for port in (HTTP, DNS, ASKING, HOST):
            yield from (bind(address, port), listen(address, port))
    yield from (bind("0.0.0.0", WINDOW[0]), bind("::", WINDOW[0]), listen("::", WINDOW[0]))
    yield from (connect("127.0.0.2", 3000), connect("::ffff:127.0.0.1", 3000), connect("192.168.1.9", 80, own=True))
    yield connect_unix("/private/tmp/com.apple.launchd.x/Listeners")
    yield from (Request(operation, path=SOCKET) for operation in ("network-bind", "network-inbound"))
    yield Request("system-socket", attributes={"socket-domain": "AF_SYSTEM"})
    for service in ("com.apple.dnssd.service", "com.apple.mDNSResponder", "com.apple.nsurlsessiond"):
        yield lookup(service)


def must_be_allowed() -> Iterator[Request]:
    for address in LOOPBACKS:
        for port in OPEN:
            yield connect(address, port)
        yield connect(address, DNS, UDP)
        for port in WINDOW:
            yield bind(address, port)
            yield bind(address, port, UDP)
            yield listen(address, port)
    yield connect_unix(SOCKET)
    yield lookup("com.apple.system.opendirectoryd.libinfo")


ORDER = [
    ("deny", ("network*",), "all"),
    ("deny", ("system-socket",), "all"),
    ("deny", ("network-outbound",), "path"),
    ("deny", ("network-outbound",), "path"),
    ("allow", ("network-outbound",), "path"),
    ("allow", ("network-bind",), "end"),
    ("allow", ("network-inbound",), "end"),
    ("allow", ("network-outbound",), "end"),
    ("allow", ("network-outbound",), "end"),
    ("allow", ("network-outbound",), "end"),
]


def kind(filter_: Filter | None) -> str:
    first = filter_.parts[0] if isinstance(filter_, Some) else filter_
    return "all" if first is None else "path" if isinstance(first, Path) else "end"


def of_network(judged: Profile) -> list[Rule]:
    return [rule for rule in judged.rules if any(name.startswith(("network", "system-so")) for name in rule.operations)]


def broken(judged: Profile) -> str:
    """The first promise that *judged* breaks; empty if it keeps them all."""
    return misplaced(judged) or opened(judged) or closed(judged)


def misplaced(judged: Profile) -> str:
    if [(rule.action, rule.operations, kind(rule.filter)) for rule in of_network(judged)] != ORDER:
        return "the order of the rules"
    if list(judged.rules[-len(ORDER) :]) != of_network(judged):
        return "the network's rules come last"
    return ""


def opened(judged: Profile) -> str:
    return next((f"open: {request}" for request in must_be_denied() if not denied_under_all(judged, request)), "")


def closed(judged: Profile) -> str:
    return next((f"closed: {request}" for request in must_be_allowed() if not allowed_under_all(judged, request)), "")


def pieces(rule: Rule) -> tuple[Filter, ...]:
    if rule.filter is None:
        return ()
    return rule.filter.parts if isinstance(rule.filter, Some) else (rule.filter,)


@pytest.mark.attack(135)
@pytest.mark.attack(136)
def test_the_doors_are_the_only_ways_out() -> None:
    """INV-7: nothing here needs the interposer."""
    assert broken(profile()) == ""


@pytest.mark.attack(135)
def test_mode_nothing_has_no_way_out_at_all() -> None:
    shut = profile(mode=NOTHING, http_door=0, dns_door=0, requests_door=0, count=0, connect_host=(), unix_sockets=())
    for request in [*must_be_denied(), *must_be_allowed()]:
        if request.operation != "mach-lookup":
            assert denied_under_all(shut, request), request
    assert not [rule for rule in of_network(shut) if rule.action == "allow"]


def test_the_asking_door_is_no_way_out_and_works_without_the_others() -> None:
    shut = profile(mode=NOTHING, http_door=0, dns_door=0)
    assert allowed_under_all(shut, connect("127.0.0.1", ASKING))
    assert denied_under_all(shut, connect("127.0.0.1", HTTP))
    assert denied_under_all(shut, connect("127.0.0.1", DNS, UDP))


@pytest.mark.parametrize("strategy", [FAIL, REWIRE_DEVICE, REWIRE_PORT])
def test_no_strategy_listens_outside_of_its_window(strategy: str) -> None:
    """INV-7: what the interposer would rewrite is refused when it is not there."""
    assert broken(profile(strategy=strategy)) == ""


def test_without_a_window_nothing_listens() -> None:
    shut = profile(count=0)
    for address in LOOPBACKS:
        for port in (*WINDOW, 3000):
            assert denied_under_all(shut, bind(address, port))
            assert denied_under_all(shut, listen(address, port))
            assert denied_under_all(shut, connect(address, port))
    assert allowed_under_all(shut, connect("::1", HTTP))


@pytest.mark.attack(135)
@pytest.mark.attack(136)
@pytest.mark.attack(137)
def test_the_text_has_none_of_the_forms_that_open_more_than_they_say() -> None:
    judged = profile()
    assert [finding for finding in lint(judged) if finding.severity == "error"] == []
    for rule in of_network(judged):
        assert rule.action == "deny" or rule.filter is not None
        for leaf in pieces(rule):
            if isinstance(leaf, End):
                assert leaf.host == "localhost"
                assert leaf.port in OPEN
                assert (leaf.side == LOCAL) == ("network-outbound" not in rule.operations)


def mutants() -> Iterator[tuple[str, Profile]]:
    rules = [profile().rules[0], *of_network(profile())]
    for at, rule in enumerate(rules[1:], 1):
        before, after = rules[:at], rules[at + 1 :]
        rest = [*before, *after]
        yield f"drop {at}", Profile(tuple(rest))
        for to in {0, 1, at - 1, at + 1, len(rest)} - {at}:
            yield f"move {at} to {to}", Profile((*rest[:to], rule, *rest[to:]))
        for name, changed in altered(rule):
            yield f"{name} of {at}", Profile((*before, changed, *after))


def altered(rule: Rule) -> Iterator[tuple[str, Rule]]:
    yield "action", replace(rule, action="allow" if rule.action == "deny" else "deny")
    if rule.action == "deny":
        return
    yield "filter", replace(rule, filter=None)
    yield "operation", replace(rule, operations=("network*",))
    parts = pieces(rule)
    for at, leaf in enumerate(parts):
        if len(parts) > 1:
            yield f"less {at}", replace(rule, filter=Some((*parts[:at], *parts[at + 1 :])))
        for name, wider in widened(leaf, rule):
            yield f"{name} {at}", replace(rule, filter=Some((*parts[:at], wider, *parts[at + 1 :])))


def widened(leaf: Filter, rule: Rule) -> Iterator[tuple[str, Filter]]:
    if isinstance(leaf, Path):
        yield "path", replace(leaf, how="subpath", value="/")
        yield "prefix", replace(leaf, how="prefix")
    if isinstance(leaf, End):
        yield "host", replace(leaf, host=ANY)
        yield "port", replace(leaf, port=None)
        if "network-outbound" in rule.operations:
            yield "side", replace(leaf, side=LOCAL)
            if leaf.port != DNS:  # which is open for both protocols
                yield "protocol", replace(leaf, protocol="ip")


WIDER = ("filter", "operation", "path", "prefix", "host", "port", "side", "protocol")


def test_dropping_moving_or_narrowing_any_network_rule_breaks_a_promise() -> None:
    others = [(name, mutant) for name, mutant in mutants() if not name.startswith(WIDER)]
    assert [name for name, mutant in others if not (misplaced(mutant) or closed(mutant))] == []
    assert len(others) > 50


def test_widening_any_network_rule_opens_something_that_a_probe_finds() -> None:
    wider = [(name, mutant) for name, mutant in mutants() if name.startswith(WIDER)]
    assert [name for name, mutant in wider if not opened(mutant)] == []
    assert len(wider) > 50


def test_both_resolver_sockets_and_our_own_are_denied_by_name() -> None:
    named = [[leaf.value for leaf in pieces(rule) if isinstance(leaf, Path)] for rule in of_network(profile())]
    resolver = ["/private/var/run/mDNSResponder", "/var/run/mDNSResponder"]
    assert [paths for paths in named if paths] == [resolver, [STATE], [SOCKET]]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"strategy": "isolate"}, "does not exist on macOS; use one of fail"),
        ({"mode": "online"}, "unknown network mode"),
        ({"mode": NOTHING}, "has no doors"),
        ({"http_door": 0}, "needs the port of its HTTP door"),
        ({"http_door": 65536}, "is not a door"),
        ({"http_door": "*"}, "is not a door"),
        ({"http_door": True}, "is not a door"),
        ({"dns_door": HTTP}, "same port"),
        ({"requests_door": WINDOW[1]}, "within the window"),
        ({"connect_host": (0,)}, "is not a port of the host"),
        ({"connect_host": (53,)}, "a resolver's"),
        ({"connect_host": (5353,)}, "a resolver's"),
        ({"count": -1}, "cannot be"),
        ({"count": 4097, "base": 30000}, "cannot be"),
        ({"base": 80}, "does not fit"),
        ({"base": 65534}, "does not fit"),
        ({"unix_sockets": ("/private/var/run/mDNSResponder",)}, "the system's resolver"),
        ({"unix_sockets": ("/var/run/mDNSResponder",)}, "is not resolved"),
        ({"unix_sockets": (f"{STATE}/control",)}, "netsandbox's own"),
        ({"unix_sockets": ("run/engine.sock",)}, "is not absolute"),
        ({"unix_sockets": ('/a"\n',)}, "cannot stand"),
    ],
)
def test_what_cannot_be_kept_is_an_error_and_no_profile(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        session_profile(settings(**wrong))


def test_the_largest_window_is_made() -> None:
    judged = profile(base=20000, count=1000)
    assert allowed_under_all(judged, bind("::1", 20999))
    assert denied_under_all(judged, bind("::1", 21000))
