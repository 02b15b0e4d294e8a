"""Profiles between files: in which order, why, and never more than the user setting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netsandbox.config.document import layer_of
from netsandbox.config.layer import Layer
from netsandbox.config.merging import MODE, WIDTHS, merge
from netsandbox.config.profiles.selection import (
    ProfileRequest,
    Selection,
    anything_here,
    check_names,
    detected,
    select_profiles,
)
from netsandbox.config.trust import trust
from netsandbox.errors import UsageError
from tests.config.profiles.conftest import Scene


def layer(text: str, path: str = "f", *, trusted: bool = True) -> Layer:
    return layer_of(path, text.encode(), trusted=trusted)


def names(stack: Selection) -> list[tuple[str, str]]:
    return [(each.profile.name, each.why) for each in stack.active]


def paths(stack: Selection) -> list[str]:
    return [each.path.rpartition("/")[2] for each in stack.layers]


def allowed(stack: Selection) -> list[str]:
    setting: Any = merge(stack.layers).values.get(("network", "allow_domains"))
    return [] if setting is None else [rule.text for rule in setting.value]


USER = layer('[sandbox]\ndefault_profiles = ["git"]\n[network]\ndeny_domains = ["u.test"]\n', "user")
PROJECT = layer('[sandbox]\nprofiles = ["gpg"]\n', "project")
NAMED = layer('[sandbox]\nprofiles = ["docker-build"]\n', "named")


def test_the_order_of_layers(scene: Scene) -> None:
    scene.file("package.json")
    stack = select_profiles([USER, PROJECT, NAMED], ProfileRequest(("claude", "offline")))
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
    stack = select_profiles([layer('[sandbox]\nprofiles = ["node", "git"]\n')], ProfileRequest(("git", "node", "git")))
    assert names(stack) == [("node", "named on the command line"), ("git", "named on the command line")]
    other = select_profiles([layer('[sandbox]\nprofiles = ["node", "git"]\n')], ProfileRequest(("git", "node")))
    assert [name for name, _ in names(other)] == ["git", "node"], "in the order of the higher place"


def test_registries_lie_just_above_their_profile_and_are_queried_once(scene: Scene) -> None:
    scene.profile("shop", '[profile]\nregistries = ["npm"]\n')
    stack = select_profiles([USER], ProfileRequest(("node", "shop"), detect=False))
    assert paths(stack) == ["git.toml", "git", "user", "node.toml", "npm", "shop.toml"]
    assert allowed(stack) == ["default.test:443"]


@pytest.mark.parametrize(
    ("wanted", "text", "asks"),
    [
        (ProfileRequest(("node",)), "", True),
        (ProfileRequest(("node",), mode="filtered"), "", True),
        (ProfileRequest(("node",), mode="offline"), "", False),
        (ProfileRequest(("node", "online")), "", False),
        (ProfileRequest(("node",)), '[network]\nmode = "localhost"\n', True),
        (ProfileRequest(("node",)), '[network]\nmode = "online"\n', False),
        (ProfileRequest(), '[network]\nmode = "offline"\n[sandbox]\nprofiles = ["node"]\n', False),
        (ProfileRequest(), '[sandbox]\nprofiles = ["offline", "node"]\n', False),
        (ProfileRequest(("node",)), '[network]\nmode = "filtered"\n', True),
        (ProfileRequest(("node",), query_tools=False), "", False),
    ],
)
def test_no_tool_is_queried_where_it_changes_nothing(
    scene: Scene, wanted: ProfileRequest, text: str, asks: bool
) -> None:
    scene.tool("npm", f"{scene.trace.command}; echo https://default.test/")
    select_profiles([layer(text)] if text else [], wanted)
    assert bool(scene.trace.lines()) is asks


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
    stack = select_profiles([layer(text)], ProfileRequest(mode="online"))
    assert [name for name, _ in names(stack)] == found
    assert names(select_profiles([layer(text)], ProfileRequest(detect=False, mode="online"))) == []


def test_a_file_above_selects_up_to_the_repository(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.file("package.json")
    scene.file("src/deep/x")
    scene.file("~/Cargo.toml")
    monkeypatch.chdir(scene.project / "src" / "deep")
    assert names(select_profiles([], ProfileRequest(mode="online"))) == [], "without a repository nothing above counts"
    (scene.project / ".git").mkdir()
    found = names(select_profiles([], ProfileRequest(mode="online")))
    assert found == [("node", "detected by package.json")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[network]\n", [("uv", "detected by the command uvx")]),
        ("[profiles]\nauto_detect = false\n", []),
        ("[profiles.detect]\nuv = []\n", []),
        ('[profiles.detect]\nuv = ["other"]\n', [("uv", "detected by the command uvx")]),
    ],
)
def test_the_command_selects_a_profile_in_an_empty_folder(
    scene: Scene, text: str, found: list[tuple[str, str]]
) -> None:
    request = ProfileRequest(mode="online", command="uvx")
    assert names(select_profiles([layer(text)], request)) == found
    assert names(select_profiles([layer(text)], ProfileRequest((), detect=False, mode="online", command="uvx"))) == []


@pytest.mark.parametrize("text", ['[sandbox]\nprofiles = ["nod"]\n', "[profiles.detect]\nnod = []\n"])
def test_an_unknown_name_in_a_file_is_found_without_a_run(scene: Scene, text: str) -> None:
    check_names([layer(text.replace("nod", "node"))])
    with pytest.raises(UsageError, match="f:2: unknown profile 'nod'; did you mean node"):
        check_names([layer(text)])


def test_an_untrusted_file_turns_detection_off_and_never_on(scene: Scene) -> None:
    scene.file("package.json")
    off, on = "[profiles]\nauto_detect = false\n", "[profiles]\nauto_detect = true\n"
    offline = ProfileRequest(mode="offline")
    assert names(select_profiles([layer(off, trusted=False)], offline)) == []
    assert names(select_profiles([layer(off), layer(on, trusted=False)], offline)) == []
    assert names(select_profiles([layer(off), layer(on)], offline)) == [("node", "detected by package.json")]
    more = layer('[profiles.detect]\nclaude = ["package.json"]\n', trusted=False)
    assert [name for name, _ in names(select_profiles([more], offline))] == ["node"]


def test_an_untrusted_file_names_only_what_closes(scene: Scene) -> None:
    for listed, used in (('["claude"]', []), ('["offline", "claude"]', []), ('["offline"]', ["offline"])):
        project = layer(f"[sandbox]\nprofiles = {listed}\n", "p", trusted=False)
        stack = select_profiles([project], ProfileRequest())
        assert [name for name, _ in names(stack)] == used
        assert bool(merge(stack.layers).ignored) is not bool(used)


def test_what_closes_opens_nothing_even_if_the_user_made_it_so(scene: Scene) -> None:
    """A stranger's file must not call up what the user meant for himself."""
    scene.profile("offline", '[network]\nmode = "online"\nallow_domains = ["a.test"]\n')
    stack = select_profiles([layer('[sandbox]\nprofiles = ["offline"]\n', "p", trusted=False)], ProfileRequest())
    assert allowed(stack) == []
    assert ("network", "mode") not in merge(stack.layers).values
    assert allowed(select_profiles([], ProfileRequest(("offline",)))) == ["a.test"], "the twin"


def test_a_users_base_counts_in_every_run(scene: Scene) -> None:
    scene.profile("base", '[network]\ndeny_domains = ["b.test"]\n')
    stack = select_profiles([USER], ProfileRequest(detect=False))
    assert paths(stack) == ["base.toml", "git.toml", "git", "user"]
    assert names(stack)[0] == ("base", "your base for every run")
    assert stack.kept == (str(scene.own / "base.toml"),)


WRITE, CACHE = ("filesystem", "allow_write"), ("filesystem", "cache")


def named(stack: Selection, place: tuple[str, str]) -> set[str]:
    setting = merge(stack.layers).values.get(place)
    return {item for item, _ in setting.items} if setting is not None else set()


@pytest.mark.parametrize(
    ("files", "words", "written"),
    [
        ([], (), set()),
        ([], ("node",), set()),
        ([], ("claude",), {"~/.claude/history.jsonl"}),
        (["[filesystem]\nallow_write = []\n"], (), set()),
        (["[sandbox]\nprofiles = ['claude']\n"], (), {"~/.claude/history.jsonl"}),
    ],
)
def test_what_is_detected_opens_caches_and_nothing_to_write(
    scene: Scene, files: list[str], words: tuple[str, ...], written: set[str]
) -> None:
    """However a profile came to be in use, its caches are."""
    scene.file("package.json")
    stack = select_profiles([layer(text) for text in files], ProfileRequest(words, mode="online"))
    assert "~/.npm/" in named(stack, CACHE)
    assert named(stack, WRITE) >= written
    assert bool(named(stack, WRITE)) is bool(written)
    unused = select_profiles([layer(text) for text in files], ProfileRequest(detect=False, mode="online"))
    assert named(unused, CACHE) == set(), "the twin"


SHOP = '[profile]\nregistries = ["npm"]\n[network]\nallow_domains = ["s.test"]\ndeny_domains = ["d.test"]\n'


def test_a_projects_profile_that_would_keep_us_waiting_is_not_read_before_it_is_trusted(scene: Scene) -> None:
    path = scene.of_project("long", '[profile]\nabout = "long"\n' + "#" * 65537)
    with pytest.raises(UsageError, match="too long to be read before it is trusted"):
        select_profiles([], ProfileRequest(("long",)))
    trust(str(path), path.read_bytes())
    assert names(select_profiles([], ProfileRequest(("long",)))) == [("long", "named on the command line")]


def test_an_untrusted_file_opens_no_cache_and_nothing_to_write(scene: Scene) -> None:
    scene.file("Pipfile")
    text = "[filesystem]\nallow_write = ['/srv']\ncache = ['/srv']\n"
    for trusted in (False, True):
        stack = select_profiles([layer(text, trusted=trusted)], ProfileRequest(query_tools=False))
        assert ("/srv" in named(stack, WRITE)) is trusted
        assert named(stack, CACHE) == {"~/.cache/pipenv/", *(["/srv"] if trusted else [])}
        assert names(stack) == [("pipenv", "detected by Pipfile")]


def test_a_projects_profile_opens_nothing_until_it_is_trusted_even_if_named(scene: Scene) -> None:
    path = scene.of_project("shop", SHOP)
    stack = select_profiles([], ProfileRequest(("shop",)))
    assert allowed(stack) == []
    assert [item for item, _ in merge(stack.layers).values["network", "deny_domains"].items] == ["d.test"]
    assert stack.untrusted == (("profile.registries", f"{path}:1"),)
    assert [place for place, _ in merge(stack.layers).ignored] == [("network", "allow_domains")]
    trust(str(path), path.read_bytes())
    assert allowed(select_profiles([], ProfileRequest(("shop",)))) == ["s.test", "default.test:443"]
    path.write_text(SHOP.replace("s.test", "evil.test"))
    assert allowed(select_profiles([], ProfileRequest(("shop",)))) == []


@pytest.mark.parametrize(
    ("files", "wanted", "setting"),
    [
        ((), ("nod",), "unknown profile 'nod'; did you mean node?"),
        ((), ("../../etc/x",), "unknown profile '../../etc/x'; see"),
        (("[sandbox]\n\nprofiles = ['git', 'nod']\n",), (), "f:3: unknown profile 'nod'; did you mean node?"),
        (("[profiles.detect]\nnode = []\nnod = ['x']\n",), (), "f:3: unknown profile 'nod'; did you mean node?"),
    ],
)
def test_a_name_that_is_none_is_an_error(
    scene: Scene, files: Sequence[str], wanted: tuple[str, ...], setting: str
) -> None:
    with pytest.raises(UsageError) as raised:
        select_profiles([layer(text) for text in files], ProfileRequest(wanted))
    assert str(raised.value).startswith(setting)


def test_a_mistake_in_a_profile_of_ones_own_is_an_error_with_its_line(scene: Scene) -> None:
    path = scene.profile("shop", "[network]\nallow_domain = []\n")
    with pytest.raises(UsageError, match=f"{path}:2: unknown key 'allow_domain'; did you mean allow_domains"):
        select_profiles([], ProfileRequest())
    select_profiles([], ProfileRequest(detect=False))


HOSTS = st.lists(st.sampled_from(["a.test", "b.test", "c.test"]), max_size=2, unique=True)
SAID = st.fixed_dictionaries(
    {}, optional={"allow_domains": HOSTS, "deny_domains": HOSTS, "mode": st.sampled_from(["online", "offline"])}
)
BELOW = st.lists(st.sampled_from(["one", "two", "offline", "online"]), max_size=3, unique=True)


def network(setting: dict[str, Any]) -> str:
    return "[network]\n" + "".join(f"{key} = {value!r}\n" for key, value in setting.items())


def written(setting: dict[str, Any], profiles: list[str]) -> str:
    return f"[sandbox]\nprofiles = {profiles!r}\n{network(setting)}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(one=SAID, two=SAID, files=st.lists(st.tuples(SAID, BELOW, st.booleans()), max_size=3), words=BELOW)
def test_no_deny_is_lost_and_the_untrusted_never_widen(
    scene: Scene, one: dict[str, Any], two: dict[str, Any], files: list[Any], words: list[str]
) -> None:
    for name, setting in (("one", one), ("two", two)):
        scene.profile(name, f"[profile]\nabout = 'x'\n{network(setting)}")
    layers = [
        layer(written(setting, below), f"f{at}", trusted=trusted) for at, (setting, below, trusted) in enumerate(files)
    ]
    stack = select_profiles(layers, ProfileRequest(tuple(words)))
    merged = merge(stack.layers).values
    said_no = merged.get(("network", "deny_domains"))
    denied = [item for item, _ in said_no.items] if said_no else []
    for setting, _, _ in files:
        assert set(setting.get("deny_domains", ())) <= set(denied)
    for word in words:
        assert set({"one": one, "two": two}.get(word, {}).get("deny_domains", ())) <= set(denied)
    ours = select_profiles([each for each in layers if each.trusted], ProfileRequest(tuple(words)))
    assert set(allowed(stack)) <= set(allowed(ours))
    assert width(stack) <= width(ours)


def width(stack: Selection) -> int:
    """How wide the mode is that is in force: without one, rules mean filtered."""
    mode = merge(stack.layers).values.get(MODE)
    return WIDTHS[str(mode.value)] if mode else bool(allowed(stack))


RULES = {"node": ("package.json",), "python": ("setup.py", "pyproject.toml"), "never": ()}


def test_any_of_its_files_in_any_of_the_folders(scene: Scene) -> None:
    below = scene.project / "below"
    below.mkdir()
    folders = [str(below), str(scene.project)]
    assert detected(RULES, folders) == {}
    scene.file("pyproject.toml")
    assert detected(RULES, folders) == {"python": "pyproject.toml"}
    scene.file("below/package.json")
    scene.file("below/setup.py")
    assert detected(RULES, folders) == {"node": "package.json", "python": "setup.py"}


@pytest.mark.parametrize("kind", ["pipe", "folder", "dangling", "unreadable"])
def test_what_kind_of_file_it_is_does_not_matter(scene: Scene, kind: str) -> None:
    path = scene.project / "package.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("nowhere")
    else:
        path.touch(0)
    assert detected(RULES, [str(scene.project)]) == {"node": "package.json"}


def test_whether_this_folder_selects_any_profile(scene: Scene) -> None:
    assert not anything_here()
    scene.file("go.mod")
    assert anything_here()
    (scene.project / "go.mod").unlink()
    assert not anything_here()
    scene.profile("base", '[network]\ndeny_domains = ["a.test"]\n')
    assert anything_here()


def test_a_users_profile_is_detected_too(scene: Scene) -> None:
    scene.profile("shop", '[profile]\ndetect = ["shop.yaml"]\n')
    assert not anything_here()
    scene.file("shop.yaml")
    assert anything_here()


def test_a_projects_own_profile_never_is(scene: Scene) -> None:
    scene.of_project("shop", '[profile]\ndetect = ["shop.yaml"]\n')
    scene.file("shop.yaml")
    assert not anything_here()
