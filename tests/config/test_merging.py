"""Layers laid over one another: lists add up, the highest of other values is taken, the untrusted only narrow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.config.document import layer_of
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Layer
from netsandbox.config.merging import WIDTHS, file_settings, merge
from netsandbox.frozen import copy_with
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.variables import Layer as VariableLayer
from netsandbox.policy.variables import VariableRules
from netsandbox.policy.verdict import Request
from netsandbox.settings import Bounds


def layer(text: str, path: str = "f", *, trusted: bool = True) -> Layer:
    return layer_of(path, text.encode(), trusted=trusted)


def joined(*layers: Layer) -> FileSettings:
    return file_settings(merge(layers))


def test_lists_add_up_from_the_lowest_to_the_highest() -> None:
    found = joined(
        layer("[network]\nallow_domains = ['a.test']\n[localhost]\nconnect_host = [2, 1]\n", "low"),
        layer("[network]\nallow_domains = ['b.test']\n[localhost]\nconnect_host = [1, 3]\n", "high"),
    )
    assert [(rule.text, rule.origin) for rule in found.allow_domains] == [("a.test", "low:2"), ("b.test", "high:2")]
    assert found.localhost.connect_host == (HostPort(1), HostPort(2), HostPort(3))


def test_of_other_values_the_highest_is_taken() -> None:
    found = joined(
        layer("[network]\nmode = 'online'\nproxy_env = false\n[session]\nname = 'low'\n"),
        layer("[network]\nmode = 'offline'\n[localhost]\nport_pool = [30000, 31000]\n"),
        layer("[session]\nname = 'high'\n"),
    )
    assert (found.mode, found.proxy_env, found.name, found.localhost.pool) == ("offline", False, "high", (30000, 31000))


def test_no_layer_is_the_default() -> None:
    assert joined() == FileSettings()


OPENING = """\
[network]
mode = "online"
allow_domains = ["a.test"]
deny_domains = ["b.test"]
allow_addresses = ["192.0.2.1"]
upstream_dns = ["192.0.2.53"]
upstream_proxy = "http://192.0.2.9:3128"
allow_unix_sockets = ["/run/docker.sock"]
[localhost]
connect_host = [5432]
publish = ["3000:22000"]
[audit]
log = "here.jsonl"
[session]
name = "shop"
"""


def test_an_untrusted_layer_narrows_and_opens_nothing() -> None:
    found = joined(layer(OPENING, "p", trusted=False))
    assert found == FileSettings(deny_domains=found.deny_domains, ignored=found.ignored)
    assert [rule.text for rule in found.deny_domains] == ["b.test"]
    assert found.ignored == (
        ("network.mode", "p:2"),
        ("network.allow_domains", "p:3"),
        ("network.allow_addresses", "p:5"),
        ("network.upstream_dns", "p:6"),
        ("network.upstream_proxy", "p:7"),
        ("network.allow_unix_sockets", "p:8"),
        ("localhost.connect_host", "p:10"),
        ("localhost.publish", "p:11"),
        ("audit.log", "p:13"),
        ("session.name", "p:15"),
    )
    assert joined(layer(OPENING, "p")).ignored == ()


EMPTY = """\
[network]
allow_domains = []
allow_addresses = []
allow_unix_sockets = []
allow_query_types = []
[filesystem]
allow_read = []
allow_execute = []
[localhost]
publish = []
connect_host = []
[shell]
pass_env = []
set_env = {}
[profiles]
detect = {}
[sandbox]
profiles = []
[seatbelt]
switches = []
"""


def test_an_empty_list_opens_nothing_so_it_needs_no_trust() -> None:
    found = joined(layer("[localhost]\npublish = ['3000']\n"), layer(EMPTY, "p", trusted=False))
    assert found.ignored == ()
    assert found == FileSettings(localhost=found.localhost, variables=(VariableLayer((), ()),))
    assert found.localhost.publish == ()


@pytest.mark.parametrize("mode", ["offline", "localhost"])
def test_an_untrusted_layer_may_close_everything(mode: str) -> None:
    found = joined(layer("[network]\nmode = 'online'\n"), layer(f"[network]\nmode = '{mode}'\n", trusted=False))
    assert (found.mode, found.ignored) == (mode, ())


NAMES = st.lists(st.sampled_from(["a.test", "b.test", "c.test", "*.d.test"]), max_size=3)
SAID = st.fixed_dictionaries({}, optional={"allow_domains": NAMES, "deny_domains": NAMES})


@given(st.lists(st.tuples(SAID, st.booleans()), max_size=4))
def test_an_untrusted_layer_never_lets_more_through(said: list[tuple[dict[str, list[str]], bool]]) -> None:
    """Take the untrusted ones away: everything that was let through with them is still let through."""

    def policy(layers: list[Layer]) -> Policy:
        found = joined(*layers)
        return Policy(found.allow_domains, found.deny_domains, mode=found.mode)

    layers = [
        layer("[network]\n" + "".join(f"{key} = {names!r}\n" for key, names in keys.items()), trusted=trusted)
        for keys, trusted in said
    ]
    everything, ours = policy(layers), policy([each for each in layers if each.trusted])
    for host in ("a.test", "b.test", "c.test", "x.d.test"):
        request = Request(canonical(host), 443, "tcp")
        assert not everything.decide(request).allowed or ours.decide(request).allowed


@given(st.lists(SAID, min_size=3, max_size=3))
def test_it_does_not_matter_how_layers_are_grouped(said: list[dict[str, list[str]]]) -> None:
    one, two, three = (
        layer("[network]\n" + "".join(f"{key} = {names!r}\n" for key, names in keys.items())) for keys in said
    )
    lower = Layer("x", merge([one, two]).values)
    assert merge([lower, three]) == merge([one, two, three])


def test_every_key_says_what_it_is_for() -> None:
    for keys in KEYS.values():
        for key in keys.values():
            assert key.about
            assert key.schema
            assert key.widens(()) in (True, False)


def test_the_variables_of_each_file_are_kept_by_themselves() -> None:
    found = joined(
        layer("[shell]\ndeny_env = ['A*', 'B_KEY']\n"),
        layer("[network]\n"),
        layer("[shell]\npass_env = ['B_KEY']\nset_env = { X = '1', Y = '2' }\n"),
        layer("[shell]\nset_env = { X = '3' }\n"),
    )
    assert found.variables == (VariableLayer((), ("A*", "B_KEY")), VariableLayer(("B_KEY",), ()))
    assert dict(found.set_env) == {"X": "3", "Y": "2"}
    assert VariableRules(found.variables).passes(b"B_KEY")
    assert not VariableRules(found.variables).passes(b"AB")


def test_an_untrusted_file_may_withhold_variables_but_pass_and_set_none() -> None:
    text = "[shell]\ndeny_env = ['A']\npass_env = ['B_KEY']\nset_env = { X = '1' }\n"
    found = joined(layer(text, "p", trusted=False))
    assert (found.variables, found.set_env) == ((VariableLayer((), ("A",)),), ())
    assert [name for name, _ in found.ignored] == ["shell.pass_env", "shell.set_env"]


def test_limits_are_the_highest_files() -> None:
    found = joined(
        layer("[limits]\nconnections = 10\nidle_seconds = 5\n"),
        layer("[limits]\nconnections = 20\n"),
        layer("[limits]\nlog_megabytes = 1\n", trusted=False),
    )
    assert found.bounds == Bounds(connections=20, idle_seconds=5)
    assert [name for name, _ in found.ignored] == ["limits.log_megabytes"]


MODES = ("offline", "localhost", "filtered", "online")
RULE = "allow_domains = ['a.test']\n"


def network(*lines: str) -> str:
    return "[network]\n" + "".join(lines)


def mode(name: str) -> str:
    return f"mode = '{name}'\n"


@pytest.mark.parametrize(
    ("layers", "wanted", "origin"),
    [
        ([network(mode("offline")), network(RULE)], "filtered", "f1:2"),
        ([network(mode("localhost")), network("allow_addresses = ['192.0.2.1']\n")], "filtered", "f1:2"),
        ([network(RULE), network(mode("offline"))], "offline", "f1:2"),
        ([network(mode("offline"), RULE)], "offline", "f0:2"),
        ([network(mode("localhost"), RULE)], "filtered", "f0:3"),
        ([network(RULE), network(mode("localhost"))], "localhost", "f1:2"),
        ([network(mode("online")), network(RULE)], "online", "f0:2"),
        ([network(mode("offline")), network("allow_domains = []\n")], "offline", "f0:2"),
        ([network(mode("offline")), network(RULE), network(mode("online"))], "online", "f2:2"),
        ([network(RULE)], None, ""),
    ],
)
def test_the_nearest_layer_that_sets_a_mode_or_allows_something_decides(
    layers: list[str], wanted: str | None, origin: str
) -> None:
    found = joined(*(layer(text, f"f{at}") for at, text in enumerate(layers)))
    assert (found.mode, found.mode_origin) == (wanted, origin)


def test_rules_of_an_untrusted_layer_lift_nothing() -> None:
    for text in (network(RULE), network(mode("localhost"), RULE)):
        found = joined(layer(network(mode("offline"))), layer(text, trusted=False))
        assert found.mode in ("offline", "localhost")
        assert found.allow_domains == ()


def organisation(text: str) -> Layer:
    return copy_with(layer(text, "org"), bounds=True)


@pytest.mark.parametrize("bound", MODES)
@pytest.mark.parametrize("own", MODES)
def test_no_layer_is_wider_than_the_organisations(bound: str, own: str) -> None:
    found = joined(organisation(network(mode(bound))), layer(network(mode(own)), "mine"))
    is_wider = WIDTHS[own] > WIDTHS[bound]
    assert found.mode == (bound if is_wider else own)
    assert found.bounded == (("mode", bound, "org:2"),)
    assert found.narrowed == (
        (f"mine:2: network.mode {own} is wider than org:2 allows, so {bound} holds; leave it out",) if is_wider else ()
    )


def test_the_organisations_modes_bound_rules_and_files_too() -> None:
    closed = organisation(network(mode("offline")) + "[filesystem]\nmode = 'project'\n")
    found = joined(closed, layer(network(RULE) + "[filesystem]\nmode = 'open'\n", "mine"))
    assert (found.mode, found.mode_origin, found.files_mode) == ("offline", "org:2", "project")
    assert len(found.narrowed) == 2
    assert joined(organisation(network(RULE)), layer(network(mode("online")))).mode == "online", "no mode bounds none"
    assert joined(organisation(network(mode("filtered"))), layer(network(RULE))).narrowed == ()


def nearest_word(layers: list[tuple[str | None, bool, bool]]) -> str | None:
    """The rule of docs/policy.md, from the nearest layer down: mode, whether there are rules, whether it is trusted."""
    is_lifted = False
    for own, has_rules, trusted in reversed(layers):
        allows = has_rules and trusted
        counts = own is not None and (trusted or own in ("offline", "localhost"))
        is_closed = own == "offline" or (own == "localhost" and not allows)
        if counts:
            return "filtered" if (is_closed and is_lifted) or (own == "localhost" and allows) else own
        is_lifted = is_lifted or allows
    return None


@given(st.lists(st.tuples(st.sampled_from([None, *MODES]), st.booleans(), st.booleans()), max_size=5))
def test_the_mode_is_that_of_the_nearest_word(layers: list[tuple[str | None, bool, bool]]) -> None:
    made = [
        layer(network(mode(own) if own else "", RULE if has_rules else "proxy_env = true\n"), trusted=trusted)
        for own, has_rules, trusted in layers
    ]
    found = joined(*made)
    assert found.mode == nearest_word(layers)
