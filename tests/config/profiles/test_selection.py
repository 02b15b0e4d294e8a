"""Profiles between files: in which order, why, and never more than the user said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netsandbox.config.document import layer_of
from netsandbox.config.layer import Layer
from netsandbox.config.merging import merge
from netsandbox.config.profiles.selection import Selection, Wanted, stacked
from netsandbox.config.trust import trust
from netsandbox.errors import UsageError
from tests.config.profiles.conftest import Scene


def layer(text: str, path: str = "f", *, trusted: bool = True) -> Layer:
    return layer_of(path, text.encode(), trusted=trusted)


def names(stack: Selection) -> list[tuple[str, str]]:
    return [(each.profile.name, each.why) for each in stack.used]


def paths(stack: Selection) -> list[str]:
    return [each.path.rpartition("/")[2] for each in stack.layers]


def allowed(stack: Selection) -> list[str]:
    said: Any = merge(stack.layers).values.get(("network", "allow_domains"))
    return [] if said is None else [rule.text for rule in said.value]


USER = layer('[sandbox]\ndefault_profiles = ["git"]\n[network]\ndeny_domains = ["u.test"]\n', "user")
PROJECT = layer('[sandbox]\nprofiles = ["gpg"]\n', "project")
NAMED = layer('[sandbox]\nprofiles = ["docker-build"]\n', "named")


def test_the_order_of_layers(scene: Scene) -> None:
    scene.file("package.json")
    stack = stacked([USER, PROJECT, NAMED], Wanted(("claude", "offline")))
    assert paths(stack) == [
        *("node.toml", "git.toml", "user"),
        *("gpg.toml", "project", "docker-build.toml", "named", "claude.toml", "offline.toml"),
    ]
    assert names(stack) == [
        ("node", "detected by package.json"),
        ("git", "named by user:2"),
        ("gpg", "named by project:2"),
        ("docker-build", "named by named:2"),
        ("claude", "named on the command line"),
        ("offline", "named on the command line"),
    ]
    assert merge(stack.layers).values["network", "mode"].value == "offline"


def test_named_twice_it_counts_at_the_higher_place_once(scene: Scene) -> None:
    scene.file("package.json")
    stack = stacked([layer('[sandbox]\nprofiles = ["node", "git"]\n')], Wanted(("git", "node", "git")))
    assert names(stack) == [("node", "named on the command line"), ("git", "named on the command line")]
    other = stacked([layer('[sandbox]\nprofiles = ["node", "git"]\n')], Wanted(("git", "node")))
    assert [name for name, _ in names(other)] == ["git", "node"], "in the order of the higher place"


def test_registries_lie_just_above_their_profile_and_are_asked_for_once(scene: Scene) -> None:
    scene.profile("shop", '[profile]\nregistries = ["npm"]\n')
    stack = stacked([USER], Wanted(("node", "shop"), detect=False))
    assert paths(stack) == ["git.toml", "git", "user", "node.toml", "npm", "shop.toml"]
    assert allowed(stack) == ["default.test:443"]


@pytest.mark.parametrize(
    ("wanted", "text", "asks"),
    [
        (Wanted(("node",)), "", True),
        (Wanted(("node",), mode="filtered"), "", True),
        (Wanted(("node",), mode="offline"), "", False),
        (Wanted(("node", "online")), "", False),
        (Wanted(("node",)), '[network]\nmode = "localhost"\n', False),
        (Wanted(("node",)), '[network]\nmode = "filtered"\n', True),
        (Wanted(("node",), ask=False), "", False),
    ],
)
def test_nothing_is_asked_where_it_changes_nothing(scene: Scene, wanted: Wanted, text: str, asks: bool) -> None:
    marker = scene.home / "ran"
    scene.tool("npm", f"touch {marker}; echo https://default.test/")
    stacked([layer(text)] if text else [], wanted)
    assert marker.exists() is asks


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[profiles]\nauto_detect = false\n", []),
        ("[profiles]\nauto_detect = true\n", ["node", "rust"]),
        ('[profiles.detect]\nnode = ["other"]\n', ["rust"]),
        ("[profiles.detect]\nnode = []\n", ["rust"]),
        ('[profiles.detect]\nclaude = ["package.json"]\n', ["claude", "node", "rust"]),
    ],
)
def test_files_say_what_is_detected(scene: Scene, text: str, found: list[str]) -> None:
    scene.file("package.json")
    scene.file("Cargo.toml")
    stack = stacked([layer(text)], Wanted(mode="online"))
    assert [name for name, _ in names(stack)] == found
    assert names(stacked([layer(text)], Wanted(detect=False, mode="online"))) == []


def test_an_untrusted_file_turns_detection_off_and_never_on(scene: Scene) -> None:
    scene.file("package.json")
    off, on = "[profiles]\nauto_detect = false\n", "[profiles]\nauto_detect = true\n"
    offline = Wanted(mode="offline")
    assert names(stacked([layer(off, trusted=False)], offline)) == []
    assert names(stacked([layer(off), layer(on, trusted=False)], offline)) == []
    assert names(stacked([layer(off), layer(on)], offline)) == [("node", "detected by package.json")]
    more = layer('[profiles.detect]\nclaude = ["package.json"]\n', trusted=False)
    assert [name for name, _ in names(stacked([more], offline))] == ["node"]


def test_an_untrusted_file_names_only_what_closes(scene: Scene) -> None:
    for listed, used in (('["claude"]', []), ('["offline", "claude"]', []), ('["offline"]', ["offline"])):
        project = layer(f"[sandbox]\nprofiles = {listed}\n", "p", trusted=False)
        stack = stacked([project], Wanted())
        assert [name for name, _ in names(stack)] == used
        assert bool(merge(stack.layers).ignored) is not bool(used)


def test_what_closes_opens_nothing_even_if_the_user_made_it_so(scene: Scene) -> None:
    """A stranger's file must not call up what the user meant for himself."""
    scene.profile("offline", '[network]\nmode = "online"\nallow_domains = ["a.test"]\n')
    stack = stacked([layer('[sandbox]\nprofiles = ["offline"]\n', "p", trusted=False)], Wanted())
    assert allowed(stack) == []
    assert ("network", "mode") not in merge(stack.layers).values
    assert allowed(stacked([], Wanted(("offline",)))) == ["a.test"], "the twin"


def test_a_users_base_counts_in_every_run(scene: Scene) -> None:
    scene.profile("base", '[network]\ndeny_domains = ["b.test"]\n')
    stack = stacked([USER], Wanted(detect=False))
    assert paths(stack) == ["base.toml", "git.toml", "git", "user"]
    assert names(stack)[0] == ("base", "your base for every run")
    assert stack.kept == (str(scene.own / "base.toml"),)


WRITE = ("filesystem", "allow_write")


@pytest.mark.parametrize(
    ("files", "words", "confined"),
    [
        ([], (), []),
        ([], ("claude",), ["~/.npm/", "~/.claude/"]),
        ([], ("node",), ["~/.npm/"]),
        (["[filesystem]\nallow_write = []\n"], (), ["~/.npm/"]),
        (["[sandbox]\nprofiles = ['claude']\n"], (), ["~/.npm/", "~/.claude/"]),
    ],
)
def test_what_is_detected_never_confines_writing_by_itself(
    scene: Scene, files: list[str], words: tuple[str, ...], confined: list[str]
) -> None:
    scene.file("package.json")
    stack = stacked([layer(text) for text in files], Wanted(words, mode="online"))
    said = merge(stack.layers).values.get(WRITE)
    assert (said is not None) is bool(confined)
    assert set(confined) <= {item for item, _ in (said.items if said else ())}


SHOP = '[profile]\nregistries = ["npm"]\n[network]\nallow_domains = ["s.test"]\ndeny_domains = ["d.test"]\n'


def test_a_projects_profile_that_would_keep_us_waiting_is_not_read_before_it_is_trusted(scene: Scene) -> None:
    path = scene.of_project("long", '[profile]\nabout = "long"\n' + "#" * 65537)
    with pytest.raises(UsageError, match="too long to be read before it is trusted"):
        stacked([], Wanted(("long",)))
    trust(str(path), path.read_bytes())
    assert names(stacked([], Wanted(("long",)))) == [("long", "named on the command line")]


def test_an_untrusted_file_that_confines_writing_opens_nothing_by_what_is_detected(scene: Scene) -> None:
    """On a Mac, where writing is confined in any case, its word would be what opens the user's environments."""
    scene.file("Pipfile")
    said = "[filesystem]\nallow_write = []\n"
    for trusted, open_ in ((False, False), (True, True)):
        stack = stacked([layer(said, trusted=trusted)], Wanted(ask=False))
        found = merge(stack.layers).values[WRITE]
        assert bool(found.value) is open_
        assert names(stack) == [("pipenv", "detected by Pipfile")]


def test_a_projects_profile_opens_nothing_until_it_is_trusted_even_if_named(scene: Scene) -> None:
    path = scene.of_project("shop", SHOP)
    stack = stacked([], Wanted(("shop",)))
    assert allowed(stack) == []
    assert [item for item, _ in merge(stack.layers).values["network", "deny_domains"].items] == ["d.test"]
    assert stack.untrusted == (("profile.registries", f"{path}:1"),)
    assert [place for place, _ in merge(stack.layers).ignored] == [("network", "allow_domains")]
    trust(str(path), path.read_bytes())
    assert allowed(stacked([], Wanted(("shop",)))) == ["s.test", "default.test:443"]
    path.write_text(SHOP.replace("s.test", "evil.test"))
    assert allowed(stacked([], Wanted(("shop",)))) == []


@pytest.mark.parametrize(
    ("files", "wanted", "said"),
    [
        ((), ("nod",), "unknown profile 'nod'; did you mean node?"),
        ((), ("../../etc/x",), "unknown profile '../../etc/x'; see"),
        (("[sandbox]\n\nprofiles = ['git', 'nod']\n",), (), "f:3: unknown profile 'nod'; did you mean node?"),
        (("[profiles.detect]\nnode = []\nnod = ['x']\n",), (), "f:3: unknown profile 'nod'; did you mean node?"),
    ],
)
def test_a_name_that_is_none_is_an_error(
    scene: Scene, files: Sequence[str], wanted: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError) as raised:
        stacked([layer(text) for text in files], Wanted(wanted))
    assert str(raised.value).startswith(said)


def test_a_mistake_in_a_profile_of_ones_own_is_an_error_with_its_line(scene: Scene) -> None:
    path = scene.profile("shop", "[network]\nallow_domain = []\n")
    with pytest.raises(UsageError, match=f"{path}:2: unknown key 'allow_domain'; did you mean allow_domains"):
        stacked([], Wanted())
    stacked([], Wanted(detect=False))


HOSTS = st.lists(st.sampled_from(["a.test", "b.test", "c.test"]), max_size=2, unique=True)
SAID = st.fixed_dictionaries(
    {}, optional={"allow_domains": HOSTS, "deny_domains": HOSTS, "mode": st.sampled_from(["online", "offline"])}
)
BELOW = st.lists(st.sampled_from(["one", "two", "offline", "online"]), max_size=3, unique=True)


def network(said: dict[str, Any]) -> str:
    return "[network]\n" + "".join(f"{key} = {value!r}\n" for key, value in said.items())


def written(said: dict[str, Any], profiles: list[str]) -> str:
    return f"[sandbox]\nprofiles = {profiles!r}\n{network(said)}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(one=SAID, two=SAID, files=st.lists(st.tuples(SAID, BELOW, st.booleans()), max_size=3), words=BELOW)
def test_no_deny_is_lost_and_the_untrusted_never_widen(
    scene: Scene, one: dict[str, Any], two: dict[str, Any], files: list[Any], words: list[str]
) -> None:
    for name, said in (("one", one), ("two", two)):
        scene.profile(name, f"[profile]\nabout = 'x'\n{network(said)}")
    layers = [layer(written(said, below), f"f{at}", trusted=trusted) for at, (said, below, trusted) in enumerate(files)]
    stack = stacked(layers, Wanted(tuple(words)))
    merged = merge(stack.layers).values
    said_no = merged.get(("network", "deny_domains"))
    denied = [item for item, _ in said_no.items] if said_no else []
    for said, _, _ in files:
        assert set(said.get("deny_domains", ())) <= set(denied)
    for word in words:
        assert set({"one": one, "two": two}.get(word, {}).get("deny_domains", ())) <= set(denied)
    ours = stacked([each for each in layers if each.trusted], Wanted(tuple(words)))
    assert set(allowed(stack)) <= set(allowed(ours))
    mode, without = (merge(each.layers).values.get(("network", "mode")) for each in (stack, ours))
    assert mode is None or mode.value == "offline" or (without is not None and without.value == mode.value)
