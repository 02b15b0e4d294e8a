from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from netsandbox.config.registries.java import mirrors_default
from netsandbox.config.registries.readers import xml
from tests.config.registries.conftest import Scene
from tests.config.registries.test_node import Expected, Files, check

USER = "~/.m2/settings.xml"


def mirror(name: str, of: str, more: str = "") -> str:
    return f"<mirror><id>x</id><mirrorOf>{of}</mirrorOf><url>https://{name}.example/m2</url>{more}</mirror>"


def settings(*mirrors: str, profile: str = "") -> str:
    return f'<settings xmlns="urn:x"><mirrors>{"".join(mirrors)}</mirrors><profiles>{profile}</profiles></settings>'


def profile(url: str) -> str:
    return f"<profile><repositories><repository><url>{url}</url></repository></repositories></profile>"


POM = """<project><url>https://no.example</url><repositories><repository><url>https://project.example</url></repository>
</repositories><distributionManagement><repository><url>https://no.example</url></repository></distributionManagement>
</project>"""
MAVEN: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"default": False}),
    ({USER: settings(mirror("user", "*"))}, {}, {"user": False}),
    ({USER: settings(mirror("user", "central"))}, {}, {"user": False}),
    ({USER: settings(mirror("user", "*,!central"))}, {}, {"user": False, "default": False}),
    ({USER: settings(mirror("user", "other"))}, {}, {"user": False, "default": False}),
    ({USER: settings(mirror("no", "external:http:*", "<blocked>true</blocked>"))}, {}, {"default": False}),
    ({USER: settings(profile=profile("https://user.example"))}, {}, {"user": False, "default": False}),
    (
        {USER: settings(profile=profile("https://${env.HOST}.example"))},
        {"HOST": "var"},
        {"var": False, "default": False},
    ),
    ({USER: settings(profile=profile("https://${host}.example"))}, {"host": "var"}, {"default": False}),
    ({"pom.xml": POM}, {}, {"project": True, "default": False}),
    ({"pom.xml": POM.replace("project.ex", "${env.HOST}.ex")}, {"HOST": "var"}, {"default": False}),
    ({"pom.xml": POM, USER: settings(mirror("user", "*"))}, {}, {"project": True, "user": False}),
    ({USER: "<settings>"}, {}, {"default": False}),
    ({"~/maven/conf/settings.xml": settings(mirror("system", "*"))}, {}, {"system": False}),
]


def maven(scene: Scene) -> Path:
    """Enough of Maven for what is read of it."""
    program = scene.tool("mvn", "exit 1", scene.home / "maven" / "bin")
    (scene.bin / "mvn").symlink_to(program)
    jar = scene.home / "maven" / "lib" / "maven-model-builder-3.x.jar"
    jar.parent.mkdir()
    with zipfile.ZipFile(jar, "w") as packed:
        packed.writestr("org/apache/maven/model/pom-4.0.0.xml", POM.replace("project.ex", "default.ex"))
    return jar


@pytest.mark.parametrize(("files", "variables", "wanted"), MAVEN)
def test_maven(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    maven(scene)
    check(scene, "mvn", files, variables, wanted)


def test_settings_that_lead_into_the_project_do_not_replace_the_default(scene: Scene) -> None:
    maven(scene)
    (scene.home / ".m2").mkdir()
    (scene.home / USER[2:]).symlink_to(scene.write("settings.xml", settings(mirror("linked", "*"))))
    check(scene, "mvn", {}, {}, {"linked": True, "default": False})


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken"])
def test_a_maven_that_is_built_otherwise_leaves_a_gap(scene: Scene, content: bytes) -> None:
    maven(scene).write_bytes(content)
    answer = scene.discover("mvn")
    assert answer.registries == ()
    assert not answer.complete


def test_the_real_maven_has_its_default_with_it(scene: Scene) -> None:
    scene.real("mvn")
    answer = scene.discover("mvn")
    assert len(answer.patterns()) == 1
    assert answer.registries[0].origin == "the model packed with mvn"


def test_which_mirrors_stand_for_the_default() -> None:
    assert mirrors_default(xml(settings(mirror("a", "b, central")).encode()))
    assert not mirrors_default(xml(settings(mirror("a", "external:http:*")).encode()))
    assert not mirrors_default([])


WRAPPER = "distributionBase=GRADLE_USER_HOME\ndistributionUrl=https\\://wrapper.example/distributions/gradle.zip\n"
GRADLE: list[tuple[Files, Expected]] = [
    ({}, {"default": False}),
    ({"gradle/wrapper/gradle-wrapper.properties": WRAPPER}, {"wrapper": True, "default": False}),
    ({"gradle/wrapper/gradle-wrapper.properties": WRAPPER.replace("https", "http")}, {"default": False}),
]


@pytest.mark.parametrize(("files", "wanted"), GRADLE)
def test_gradle(scene: Scene, files: Files, wanted: Expected) -> None:
    maven(scene)
    check(scene, "gradle", files, {}, wanted)


def test_a_script_of_gradle_is_not_read(scene: Scene) -> None:
    scene.write("build.gradle", 'repositories { maven { url "https://script.example/m2" } }')
    answer = scene.discover("gradle")
    assert answer.registries == ()
    assert "no registry of gradle is known; allow it with --allow-domain" in answer.notes
