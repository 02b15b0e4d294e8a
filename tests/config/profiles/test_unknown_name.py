"""A name that is none: the nearest one, or where a command belongs."""

from __future__ import annotations

import pytest

from netsandbox.config.profiles.unknown_name import unknown, unknown_word
from tests.config.profiles.conftest import Scene

pytestmark = pytest.mark.usefixtures("scene")


@pytest.mark.parametrize(
    ("name", "origin", "said"),
    [
        ("nod", "", "unknown profile 'nod'; did you mean node?"),
        ("Python", "", "unknown profile 'Python'; did you mean python?"),
        ("dockerbuild", "", "unknown profile 'dockerbuild'; did you mean docker-build?"),
        ("xyzzy", "", "unknown profile 'xyzzy'; see `netsandbox profile list`"),
        ("nod", "f.toml:3", "f.toml:3: unknown profile 'nod'; did you mean node?"),
    ],
)
def test_the_nearest_is_named(name: str, origin: str, said: str) -> None:
    assert str(unknown(name, origin)) == said


def test_a_profile_of_ones_own_is_near_too(scene: Scene) -> None:
    scene.profile("storefront", '[network]\nmode = "offline"\n')
    assert str(unknown("storefrnt")) == "unknown profile 'storefrnt'; did you mean storefront?"


RUN = "to run a command write `netsandbox run [OPTIONS] --"


@pytest.mark.parametrize(
    ("words", "at", "said"),
    [
        (["npm", "install"], 0, f"unknown profile 'npm'; {RUN} npm install`"),
        (["node", "npm", "install"], 1, f"unknown profile 'npm'; {RUN} npm install`"),
        (["sh", "-c", "a", "b", "c"], 0, f"unknown profile 'sh'; {RUN} sh -c a b …`"),
        (["npm"], 0, f"unknown profile 'npm'; {RUN} npm …`"),
        (["nod"], 0, "unknown profile 'nod'; did you mean node?"),
        (["node", "pythn"], 1, "unknown profile 'pythn'; did you mean python?"),
        (["node", "server.js"], 1, f"unknown profile 'server.js'; {RUN} node server.js`"),
        (["xyzzy"], 0, f"unknown profile 'xyzzy'; {RUN} xyzzy …`"),
        (["\x1b[1m"], 0, f"unknown profile '\\x1b[1m'; {RUN} \\x1b[1m …`"),
    ],
)
def test_a_forgotten_pair_of_dashes_is_noticed(scene: Scene, words: list[str], at: int, said: str) -> None:
    scene.tool("node", "true")
    assert str(unknown_word(words, at)) == said
