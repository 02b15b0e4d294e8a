"""Sources give the settings of variables and files in the order in which the table names them."""

from __future__ import annotations

from collections.abc import Iterator

from netsandbox.config.registries.discovery import Setting, SettingsFile
from netsandbox.config.registries.sources import after, expanded, files, first_of, printed_url, variable
from tests.config.registries.conftest import Scene


def content(file: SettingsFile) -> Iterator[Setting]:
    yield file.setting("key", file.text, 1)


def values(scene: Scene, *templates: str, nearest: bool = False) -> list[tuple[str, bool]]:
    found = files(content, ", ".join(templates), nearest=nearest)(scene.discovery())
    return [(each.value, each.project) for each in found]


def test_the_first_variable_that_is_not_empty_counts(scene: Scene) -> None:
    scene.environment.update(A="", B="b", C="c")
    assert list(variable("key", "A", "B", "C")(scene.discovery())) == [Setting("key", "b", "B")]
    assert list(variable("key", "A")(scene.discovery())) == []


def test_variables_with_a_prefix_are_keys_in_any_case(scene: Scene) -> None:
    scene.environment.update(tool_registry="low", TOOL_REGISTRY="high", TOOL_OTHER="x")
    found = list(after("tool_", lambda key: key if key == "registry" else "")(scene.discovery()))
    assert [(each.key, each.value) for each in found] == [("registry", "low"), ("registry", "high")]


def test_files_of_the_project_come_folder_by_folder_and_before_the_users(scene: Scene) -> None:
    for path in ("a", "b", "../a", "~/c", "/etc/d"):
        scene.write(path, path)
    found = values(scene, "/etc/d", "./a", "./b", "~/c")
    assert found == [("a", True), ("b", True), ("../a", True), ("/etc/d", False), ("~/c", False)]
    assert values(scene, "./a", nearest=True) == [("a", True)]


def test_an_alternative_is_read_where_the_first_is_missing(scene: Scene) -> None:
    scene.write("b", "b")
    assert values(scene, "./a|b") == [("b", True)]
    scene.write("a", "a")
    assert values(scene, "./a|b") == [("a", True)]


def test_templates_name_folders_of_variables(scene: Scene) -> None:
    for path in ("~/x/f", "~/.config/f", "~/y/f", "~/z/f"):
        scene.write(path, path)
    assert values(scene, "$X/f", "${X:-~/x}/f", "$XDG_CONFIG_HOME/f") == [("~/x/f", False), ("~/.config/f", False)]
    scene.environment.update(
        X=str(scene.home / "y"), XDG_CONFIG_HOME=str(scene.home / "z"), XDG_CONFIG_DIRS=f"relative:{scene.home}/x"
    )
    found = values(scene, "$X/f", "${X:-~/x}/f", "$XDG_CONFIG_HOME/f", "$XDG_CONFIG_DIRS/f")
    assert [value for value, _ in found] == ["~/y/f", "~/y/f", "~/z/f", "~/x/f"]


def test_sources_are_expanded_and_replaced(scene: Scene) -> None:
    scene.environment.update(A="${B}/x", B="b", C="c")
    a, c, none = variable("key", "A"), variable("key", "C"), variable("key", "NONE")
    assert [each.value for each in expanded(a, c)(scene.discovery())] == ["b/x", "c"]
    assert [each.value for each in first_of(c, a, a)(scene.discovery())] == ["c"]
    assert len(list(first_of(none, a, a)(scene.discovery()))) == 2


def test_the_last_line_that_a_tool_prints_counts_if_it_is_a_url(scene: Scene) -> None:
    scene.tool("npm", "echo notice; echo https://a.example/")
    source = printed_url("key", "npm", "config", "--quiet")
    assert list(source(scene.discovery())) == [Setting("key", "https://a.example/", "npm config")]
    scene.tool("yarn", "echo undefined")
    assert list(printed_url("key", "yarn", "config")(scene.discovery())) == []
