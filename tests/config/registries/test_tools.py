"""The table's one way from settings to registries."""

from __future__ import annotations

from collections.abc import Callable

from netsandbox.config.registries.discovery import Discovery, Setting
from netsandbox.config.registries.tools import Tool
from tests.config.registries.conftest import Scene

USER, PROJECT = Setting("url", "user", "u"), Setting("url", "project", "p", project=True)


def source(*settings: Setting) -> Callable[[Discovery], list[Setting]]:
    return lambda _: list(settings)


DEFAULT = ((("url",), source(Setting("url", "default", "d"))),)


def values(scene: Scene, tool: Tool) -> list[str]:
    return [each.value for each in tool.settings(scene.discovery())]


def test_a_default_is_queried_unless_the_user_sets_the_key(scene: Scene) -> None:
    assert values(scene, Tool((source(USER),), (DEFAULT,))) == ["user"]
    assert values(scene, Tool((source(PROJECT),), (DEFAULT,))) == ["project", "default"]
    assert values(scene, Tool((), (DEFAULT,))) == ["default"]


def test_each_group_gives_its_first_default(scene: Scene) -> None:
    nothing = (("url",), source())
    other = ((("other",), source(Setting("other", "second", "d"))),)
    assert values(scene, Tool((), ((nothing, *DEFAULT, *DEFAULT), other))) == ["default", "second"]
    assert values(scene, Tool((source(USER),), ((nothing, *DEFAULT), other))) == ["user", "second"]


def test_an_empty_value_hides_the_default_and_is_no_registry(scene: Scene) -> None:
    assert values(scene, Tool((source(Setting("url", "", "u")),), (DEFAULT,))) == []


def test_sources_are_selected_before_and_followed_after_the_defaults(scene: Scene) -> None:
    tool = Tool((source(USER), source(USER)), (DEFAULT,), list, lambda _, found: [*found, Setting("x", "link", "l")])
    assert values(scene, tool) == ["user", "user", "link"]
