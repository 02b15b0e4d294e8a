"""Maven's settings and default, and where the wrapper of Gradle fetches Gradle.

Maven's default is packed with Maven. Gradle's scripts are programs and are not read: the user names their repositories.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from netsandbox.config.registries.discovery import Discovery, Setting, SettingsFile
from netsandbox.config.registries.readers import BadFile, Element, pairs, xml

CENTRAL = "central"  # the key of a mirror that replaces Maven's default
_LISTS = ("mirror", "repository", "pluginRepository")
_MODEL = "org/apache/maven/model/pom-4.0.0.xml"  # the place of Maven's built-in default
_MAX_MODEL = 1 << 20


def settings_xml(file: SettingsFile) -> Iterator[Setting]:
    """A mirror of everything, or of the default, in the user's or the system's settings replaces the default."""
    found = xml(file.data)
    yield from _urls(file, found)
    if mirrors_default(found):
        yield file.setting(CENTRAL, "", 1)


def pom_xml(file: SettingsFile) -> Iterator[Setting]:
    return _urls(file, xml(file.data))


def maven_home_settings(discovery: Discovery) -> list[Setting]:
    base = _maven_home(discovery)
    path = os.path.join(base or "", "conf", "settings.xml")
    return (discovery.settings_in(path, settings_xml) or []) if base else []


def _maven_home(discovery: Discovery) -> str | None:
    program = discovery.program("mvn")
    return os.path.dirname(os.path.dirname(os.path.realpath(program))) if program else None


def mirrors_default(found: list[Element]) -> bool:
    """Whether a mirror replaces Maven's own default (pure)."""
    lists = [each.text.replace(" ", "").split(",") for each in found if each.path[-2:] == ("mirror", "mirrorOf")]
    return any("!central" not in names and not {"*", "central", "external:*"}.isdisjoint(names) for names in lists)


def _urls(file: SettingsFile, found: list[Element]) -> Iterator[Setting]:
    for each in _repositories(found):
        yield file.setting("/".join(each.path), each.text, each.number)


def _repositories(found: list[Element]) -> list[Element]:
    """The URLs that Maven fetches from."""
    blocked = {each.parent for each in found if each.path[-2:] == ("mirror", "blocked") and each.text == "true"}
    urls = [each for each in found if each.path[-1] == "url" and not set(each.path[-2:-1]).isdisjoint(_LISTS)]
    return [each for each in urls if each.parent not in blocked and "distributionManagement" not in each.path]


def expand_urls(discovery: Discovery, settings: list[Setting]) -> list[Setting]:
    """The settings with `${env.NAME}` replaced, where that is allowed."""

    def value_of(name: str) -> str | None:
        return discovery.variable(name.removeprefix("env.")) if name.startswith("env.") else None

    return list(discovery.expanded(settings, value_of))


def maven_default(discovery: Discovery) -> list[Setting]:
    """Maven's default. Maven has no command that prints it without plugins, but it is in the model that is packed with
    Maven."""
    base = _maven_home(discovery)
    if base is None:
        return []
    folder = os.path.join(base, "lib")
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith("maven-model-builder-"))
    except OSError:
        names = []
    for name in names[:1]:
        path = os.path.join(folder, name)
        if not discovery.trusts_program(path):
            return []
        model = _packed_model(path)
        if model is not None:
            return [Setting("default", each.text, "the model packed with mvn") for each in _repositories(model)]
    discovery.note_incomplete("mvn keeps its default where it was not found")
    return []


def _packed_model(path: str) -> list[Element] | None:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as jar, jar.open(_MODEL) as model:
            return xml(model.read(_MAX_MODEL))
    except (OSError, KeyError, BadZipFile, BadFile, NotImplementedError):
        return None


def gradle_wrapper(file: SettingsFile) -> Iterator[Setting]:
    """The URL from which `gradlew` fetches Gradle itself."""
    for line in pairs(file.text, "="):
        url = line.value.replace("\\:", ":")
        if line.keys[0] == "distributionUrl" and url.startswith("https://") and "\\" not in url:
            yield file.setting(url, url, line.number)
