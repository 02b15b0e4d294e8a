from __future__ import annotations

import pytest

from tests.config.registries.conftest import Scene
from tests.config.registries.test_java import maven
from tests.config.registries.test_node import Files, Wanted, check

CENTRAL = "repositories { mavenCentral() }"


def script(name: str) -> str:
    return f'repositories {{ maven {{ url "https://{name}.example/m2" }} }}\n'


WRAPPER = "distributionBase=GRADLE_USER_HOME\ndistributionUrl=https\\://wrapper.example/distributions/gradle.zip\n"
GRADLE: list[tuple[Files, dict[str, str], Wanted]] = [
    ({}, {}, {}),
    ({"build.gradle": script("project")}, {}, {"project": True}),
    ({"settings.gradle.kts": script("project")}, {}, {"project": True}),
    ({"../build.gradle.kts": script("above")}, {}, {"above": True}),
    ({"~/.gradle/init.gradle": script("user")}, {}, {"user": False}),
    ({"~/.gradle/init.d/own.gradle.kts": script("user")}, {}, {"user": False}),
    ({"~/.gradle/init.d/readme.txt": script("no")}, {}, {}),
    (
        {"~/own/init.gradle": script("user"), "~/.gradle/init.gradle": script("no")},
        {"GRADLE_USER_HOME": "~/own"},
        {"user": False},
    ),
    ({"~/.gradle/init.gradle": script("same"), "build.gradle": script("same")}, {}, {"same": False}),
    ({"gradle/wrapper/gradle-wrapper.properties": WRAPPER}, {}, {"wrapper": True}),
    ({"gradle/wrapper/gradle-wrapper.properties": WRAPPER.replace("https", "http")}, {}, {}),
    ({"build.gradle": CENTRAL}, {}, {"default": False}),
]


@pytest.mark.parametrize(("files", "variables", "wanted"), GRADLE)
def test_gradle(scene: Scene, files: Files, variables: dict[str, str], wanted: Wanted) -> None:
    maven(scene)
    check(
        scene, "gradle", files, {key: value.replace("~", str(scene.home)) for key, value in variables.items()}, wanted
    )


@pytest.mark.parametrize("name", ["mavenCentral", "google", "gradlePluginPortal"])
def test_what_only_gradle_knows_is_named_for_the_user(scene: Scene, name: str) -> None:
    file = scene.write("build.gradle", f"\nrepositories {{ {name}() }}")
    answer = scene.ask("gradle")
    assert answer.registries == ()
    assert f"{file}:2: {name}() is built into Gradle; allow its host with --allow-domain" in answer.notes


def test_a_new_init_script_makes_a_new_answer(scene: Scene) -> None:
    scene.write("~/.gradle/init.d/a.gradle", script("a"))
    assert scene.hosts("gradle").patterns() == ("a.example:443",)
    scene.write("~/.gradle/init.d/b.gradle", script("b"))
    assert scene.hosts("gradle").patterns() == ("a.example:443", "b.example:443")
