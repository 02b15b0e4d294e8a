"""Modes of files and of the command line: the nearest wins, and what is advised against a denial helps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli import run
from netsandbox.cli.run_options import mode_of, policy_of, settings_of
from netsandbox.config.document import layer_of
from netsandbox.config.layer import Layer
from netsandbox.config.merging import file_settings, merge
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.policy import reasons
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.variables import VariableRules
from netsandbox.policy.verdict import Request
from netsandbox.runtime.option_parser import parse
from netsandbox.system import ORGANISATION_FILE


def network(mode: str | None = None, *, allow: list[str] | None = None, deny: list[str] | None = None) -> str:
    lines = [f"mode = {mode!r}"] if mode else []
    lines += [f"allow_domains = {allow!r}"] if allow is not None else []
    return "\n".join(["[network]", *lines, f"deny_domains = {deny or []!r}", ""])


def layer(text: str, path: str = "f", *, trusted: bool = True) -> Layer:
    made = layer_of(path, text.encode(), trusted=trusted)
    return copy_with(made, bounds=path == ORGANISATION_FILE)


def policy(words: list[str], *layers: Layer) -> Policy:
    parsed = parse(words, run.OPTIONS, "netsandbox run")
    file = file_settings(merge(layers)) if layers else None
    decided = policy_of(parsed, file)
    assert mode_of(parsed, file) == decided.mode
    return decided


def allows(policy: Policy, host: str) -> bool:
    return policy.decide(Request(canonical(host), 443, "tcp")).allowed


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("mode", ["offline", "localhost", "filtered", "online"])
def test_to_allow_a_domain_means_filtered_whatever_a_file_says(mode: str, trusted: bool) -> None:
    decided = policy(["--allow-domain", "x.test"], layer(network(mode, allow=["file.test"]), trusted=trusted))
    assert decided.mode == "filtered"
    assert [allows(decided, host) for host in ("x.test", "file.test", "y.test")] == [True, trusted, False]


@pytest.mark.parametrize(
    ("mode", "wanted"), [("offline", "filtered"), ("localhost", "filtered"), ("online", "online"), (None, "filtered")]
)
def test_to_allow_an_address_opens_a_closed_mode_and_narrows_none(mode: str | None, wanted: str) -> None:
    decided = policy(["--allow-address", "10.0.0.5:443"], layer(network(mode)))
    assert decided.mode == wanted
    assert allows(decided, "10.0.0.5")


def test_filtered_is_what_the_files_allow_whatever_mode_they_set() -> None:
    rules = layer(network("offline", allow=["file.test"]))
    assert not allows(policy([], rules), "file.test")
    for words in (["--filtered"], ["-p", "filtered"]):
        decided = policy(words, rules)
        assert (decided.mode, allows(decided, "file.test"), allows(decided, "x.test")) == ("filtered", True, False)
    alone = policy(["--filtered"])
    assert (alone.mode, allows(alone, "x.test")) == ("filtered", False)
    assert policy(["--filtered"], layer(network("online"))).mode == "filtered"


def test_localhost_with_a_rule_is_both_on_the_command_line_too() -> None:
    decided = policy(["--localhost", "--allow-domain", "x.test"])
    assert (decided.mode, allows(decided, "x.test"), allows(decided, "y.test")) == ("filtered", True, False)
    closed = policy(["--localhost"], layer(network(allow=["file.test"])))
    assert (closed.mode, allows(closed, "file.test")) == ("localhost", False)


def test_a_closed_session_lists_no_rule_that_opens_nothing() -> None:
    assert policy(["--offline"], layer(network(allow=["file.test"]))).allow_domains == ()


ORGANISATION = layer(network("filtered") + "[filesystem]\nmode = 'project'\n", ORGANISATION_FILE)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--online"], f"--online: {ORGANISATION_FILE}:2 allows no mode wider than filtered; leave it out"),
        (["-p", "online"], f"the profile online: {ORGANISATION_FILE}:2 allows no mode wider than filtered"),
        (["--files", "open"], f"--files: {ORGANISATION_FILE}:5 allows no mode wider than project; leave it out"),
    ],
)
def test_an_option_wider_than_the_organisations_mode_is_an_error(words: list[str], line: str) -> None:
    parsed = parse(words, run.OPTIONS, "netsandbox run")
    with pytest.raises(UsageError) as raised:
        settings_of(parsed, file_settings(merge([ORGANISATION])))
    assert str(raised.value).startswith(line)


def test_an_option_within_the_organisations_mode_holds() -> None:
    for words, mode in (([], "filtered"), (["--offline"], "offline"), (["--allow-domain", "x.test"], "filtered")):
        assert policy(words, ORGANISATION).mode == mode
    parsed = parse(["--files", "project"], run.OPTIONS, "netsandbox run")
    assert settings_of(parsed, file_settings(merge([ORGANISATION]))).files.mode == "project"


@pytest.mark.parametrize("words", [["--allow-domain", "x.test"], ["--ask"], ["--filtered"]])
def test_nothing_opens_what_the_organisation_closes(words: list[str]) -> None:
    closed = layer(network("offline"), ORGANISATION_FILE)
    with pytest.raises(UsageError, match="allows no mode wider than offline; leave it out"):
        policy(words, closed)
    assert policy([], closed, layer(network("online", allow=["x.test"]))).mode == "offline"


HOSTS = ("a.test", "b.a.test", "c.test", "10.0.0.5", "192.0.2.7", "dns.google")
NAMES = st.lists(st.sampled_from(["a.test", "**.a.test", "c.test:8443", "b.a.test"]), max_size=2, unique=True)
DENIED = st.sampled_from(["b.a.test", "**.a.test", "**.a.test except b.a.test"])
MODES = st.sampled_from([None, "offline", "localhost", "filtered", "online"])
LAYERS = st.tuples(MODES, NAMES, st.lists(DENIED, max_size=1), st.booleans())
WORDS = st.sampled_from(
    [
        *([], ["--offline"], ["--localhost"], ["--filtered"], ["--online"], ["-p", "offline"], ["-p", "localhost"]),
        *(["--allow-domain", "d.test"], ["--allow-address", "192.0.2.8"], ["--deny-domain", "a.test"]),
        ["--online", "--deny-domain", "**.a.test"],
    ]
)


def advised(words: list[str], change: str) -> list[str]:
    """The command line with the advised *change*."""
    option, _, without = change.partition(" without ")
    gone = ["-p", without.rpartition(" ")[2]] if without.startswith("the profile ") else [without]
    return [*(word for word in words if not without or word not in gone), *option.split(" ")]


@given(
    organisation=st.sampled_from([None, None, "offline", "filtered"]),
    files=st.lists(LAYERS, max_size=3),
    words=WORDS,
    host=st.sampled_from(HOSTS),
    port=st.sampled_from([80, 443, 853, 8443]),
)
def test_what_is_advised_against_a_denial_allows_it(
    organisation: str | None,
    files: list[tuple[str | None, list[str], list[str], bool]],
    words: list[str],
    host: str,
    port: int,
) -> None:
    layers = [layer(network(organisation), ORGANISATION_FILE)] if organisation else []
    layers += [
        layer(network(mode, allow=allow, deny=deny), f"f{at}", trusted=trusted)
        for at, (mode, allow, deny, trusted) in enumerate(files)
    ]
    try:
        decided = policy(words, *layers)
    except UsageError:  # the contradiction that is left: an option wider than the organisation's mode
        assert organisation
        return
    found = decided.explain(Request(canonical(host), port, "tcp"))
    if found.verdict.allowed:
        assert found.change is None
    elif found.change is None:
        closed = found.verdict.reason == reasons.OFFLINE and (found.verdict.origin or "").startswith(ORGANISATION_FILE)
        assert closed or host == "dns.google"
    elif found.verdict.reason == reasons.DENY_RULE:
        assert found.change.startswith("remove ")
        assert found.verdict.rule in found.change
    else:
        wider = policy(advised(words, found.change), *layers)
        assert wider.decide(Request(canonical(host), port, "tcp")).allowed, found.change


def test_online_opens_the_network_and_leaves_files_closed() -> None:
    """Seed 004, sandbash: one option, and no other mode is needed for it."""
    for words in (["--online"], ["-p", "online"]):
        parsed = parse(words, run.OPTIONS, "netsandbox run")
        assert (settings_of(parsed, None).mode, settings_of(parsed, None).files.mode) == ("online", "project")


def test_variables_are_listed_by_the_option_or_by_a_file() -> None:
    def passed(words: list[str], *layers: Layer) -> list[bool]:
        parsed = parse(words, run.OPTIONS, "netsandbox run")
        rules = VariableRules(settings_of(parsed, file_settings(merge(layers))).variables)
        return [rules.passes(name) for name in (b"PATH", b"SHOP", b"OTHER")]

    own = layer("[shell]\npass_env = ['SHOP']\n")
    assert passed([], own) == [True, True, True]
    assert passed(["--clean-env"], own) == [True, True, False]
    assert passed(["--clean-env", "--pass-env", "OTHER"]) == [True, False, True]
    assert passed([], own, layer("[shell]\nclean_env = true\n", trusted=False)) == [True, True, False]
    clean, not_clean = layer("[shell]\nclean_env = true\n"), "[shell]\nclean_env = false\n"
    assert passed([], clean, layer(not_clean, trusted=False)) == [True, False, False]
    assert passed([], clean, layer(not_clean)) == [True, True, True]
