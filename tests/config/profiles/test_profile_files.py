"""Which profiles there are, and whose."""

from __future__ import annotations

import pytest

from netsandbox.config.profiles.profile_files import (
    BUILT_IN,
    PROJECTS,
    YOURS,
    everything,
    find,
    own,
    unknown_argument,
    unknown_profile,
)
from netsandbox.runtime.option_parser import FLAG, Option, parse
from tests.config.profiles.conftest import Scene

ANY = '[network]\nmode = "offline"\n'


def owner(name: str) -> str | None:
    found = find(name)
    return None if found is None else found.owner


def test_the_users_takes_the_place_of_ours_and_the_projects_of_nobodys(scene: Scene) -> None:
    scene.of_project("node", ANY)
    scene.of_project("shop", ANY)
    assert (owner("node"), owner("shop"), owner("nobody")) == (BUILT_IN, PROJECTS, None)
    mine = scene.profile("node", ANY)
    assert owner("node") == YOURS
    assert own()["node"].path == str(mine)
    assert "shop" not in own()
    assert everything()["shop"].owner == PROJECTS
    scene.profile("shop", ANY)
    assert everything()["shop"].owner == owner("shop") == YOURS


def test_both_endings_are_one_profile(scene: Scene) -> None:
    (scene.own / "shop.profile.toml").write_text(ANY)
    assert owner("shop") == YOURS
    assert [name for name in own() if name.startswith("shop")] == ["shop"]


@pytest.mark.parametrize("place", [".sandbox/profiles", ".netsandbox/profiles"])
def test_a_projects_profiles_are_found_from_below_within_the_repository(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    scene.profile("shop", ANY, scene.project / place)
    deep = scene.project / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find("shop") is None
    (scene.project / ".git").mkdir()
    assert owner("shop") == PROJECTS


def test_what_is_no_profile_is_not_listed(scene: Scene) -> None:
    for name in ("notes.txt", ".toml", "-x.toml", "a b.toml", "shop.toml~", ".profile.toml"):
        (scene.own / name).write_text(ANY)
    assert not [each for each in own().values() if each.owner == YOURS]


def test_without_folders_there_are_still_ours(scene: Scene) -> None:
    scene.own.rmdir()
    assert {each.owner for each in everything().values()} == {BUILT_IN}


pytestmark = pytest.mark.usefixtures("scene")


@pytest.mark.parametrize(
    ("name", "origin", "message"),
    [
        ("nod", "", "unknown profile 'nod'; did you mean node?"),
        ("Python", "", "unknown profile 'Python'; did you mean python?"),
        ("dockerbuild", "", "unknown profile 'dockerbuild'; did you mean docker-build?"),
        ("xyzzy", "", "unknown profile 'xyzzy'; see `netsandbox profile list`"),
        (
            "https://a.test/",
            "",
            "unknown profile 'https://a.test/'; put a rule for requests into quotes: --allow-http 'GET"
            " https://api.example.com/v1/**'",
        ),
        ("npm", "", "unknown profile 'npm'; did you mean node?"),
        ("nod", "f.toml:3", "f.toml:3: unknown profile 'nod'; did you mean node?"),
    ],
)
def test_the_nearest_is_named(name: str, origin: str, message: str) -> None:
    assert str(unknown_profile(name, origin)) == message


def test_a_profile_of_ones_own_is_near_too(scene: Scene) -> None:
    scene.profile("storefront", '[network]\nmode = "offline"\n')
    assert str(unknown_profile("storefrnt")) == "unknown profile 'storefrnt'; did you mean storefront?"


@pytest.mark.parametrize(
    ("arguments", "at", "message"),
    [
        (
            "npm run dev -- --port 1",
            0,
            "'npm' is not a profile; to run a command write `x run -- npm run dev -- --port 1`",
        ),
        ("-q node npm install", 1, "'npm' is not a profile; to run a command write `x run -q node -- npm install`"),
        ("node server.js", 1, "'server.js' is not a profile; to run a command write `x run -- node server.js`"),
        ("npm -- npm ci", 0, "unknown profile 'npm'; did you mean node?"),
        ("nod", 0, "unknown profile 'nod'; did you mean node?"),
        ("node pythn", 1, "unknown profile 'pythn'; did you mean python?"),
        ("A=1 -- npm ci", 0, "'A=1' is not a profile; to set a variable write `-- env A=1 CMD`"),
        ("xyzzy", 0, "'xyzzy' is neither a profile nor a program; check its spelling, or see `x run --help`"),
        ("xyzzy -- npm", 0, "unknown profile 'xyzzy'; see `netsandbox profile list`"),
        ("\x1b[1m", 0, "'\\x1b[1m' is neither a profile nor a program; check its spelling, or see `x run --help`"),
    ],
)
def test_a_forgotten_pair_of_dashes_is_noticed(scene: Scene, arguments: str, at: int, message: str) -> None:
    scene.tool("node", "true")
    scene.tool("npm", "true")
    parsed = parse(arguments.split(), (Option("quiet", FLAG, "q", "", ""),), "x run")
    assert str(unknown_argument(parsed, at, "x run")) == message


def test_a_command_in_quotes_is_noticed(scene: Scene) -> None:
    scene.tool("npm", "true")
    message = "'npm run dev' is not a profile; to run a command write `x run -- npm run dev`"
    assert str(unknown_argument(parse(["npm run dev"], (), "x run"), 0, "x run")) == message
