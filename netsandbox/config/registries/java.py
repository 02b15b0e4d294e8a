"""Maven."""

from __future__ import annotations

import os

from netsandbox.config.registries.discovery import Discovery, Text, shown
from netsandbox.config.registries.expansion import Unexpanded, expand
from netsandbox.config.registries.setting import Setting
from netsandbox.config.registries.xml import BadXml, Element, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTS = ("mirror", "repository", "pluginRepository")
_MODEL = "org/apache/maven/model/pom-4.0.0.xml"  # where Maven keeps its own default
_MODEL_LIMIT = 1 << 20


def mvn(inquiry: Discovery) -> list[Setting]:
    """A mirror of everything, or of the default, in the user's or the system's settings leaves the default out."""
    said: list[Setting] = []
    mirrored = False
    for path in _settings_files(inquiry):
        found, project = _elements(inquiry, path, project=False)
        said += _urls(inquiry, path, found, project=project)
        mirrored = mirrored or (not project and mirrors_default(found))
    for folder in inquiry.upward():
        path = os.path.join(folder, "pom.xml")
        said += _urls(inquiry, path, _elements(inquiry, path, project=True)[0], project=True)
    return said if mirrored else [*said, *default(inquiry)]


def mirrors_default(found: list[Element]) -> bool:
    """Whether a mirror stands for Maven's own default (pure)."""
    lists = [each.text.replace(" ", "").split(",") for each in found if each.path[-2:] == ("mirror", "mirrorOf")]
    return any("!central" not in names and not {"*", "central", "external:*"}.isdisjoint(names) for names in lists)


def _settings_files(inquiry: Discovery) -> Iterator[str]:
    yield os.path.join(inquiry.home, ".m2", "settings.xml")
    base = _maven_home(inquiry)
    if base:
        yield os.path.join(base, "conf", "settings.xml")


def _maven_home(inquiry: Discovery) -> str | None:
    program = inquiry.program("mvn")
    return os.path.dirname(os.path.dirname(os.path.realpath(program))) if program else None


def _elements(inquiry: Discovery, path: str, *, project: bool) -> tuple[list[Element], bool]:
    data = inquiry.data(path, project=project)
    if data is None:
        return [], project
    try:
        return elements(data[0]), data[1]
    except BadXml as reason:
        inquiry.note(f"{shown(path)} {reason}; it is passed over")
        return [], data[1]


def _places(found: list[Element]) -> list[Element]:
    """The URLs that Maven fetches from."""
    blocked = {each.parent for each in found if each.path[-2:] == ("mirror", "blocked") and each.text == "true"}
    urls = [each for each in found if each.path[-1] == "url" and not set(each.path[-2:-1]).isdisjoint(_LISTS)]
    return [each for each in urls if each.parent not in blocked and "distributionManagement" not in each.path]


def _urls(inquiry: Discovery, path: str, found: list[Element], *, project: bool) -> Iterator[Setting]:
    def value_of(name: str) -> str | None:
        return inquiry.variable(name.removeprefix("env.")) if name.startswith("env.") else None

    text = Text(path, "", project)
    for each in _places(found):
        said = text.said("/".join(each.path), each.text, each.number)
        try:
            yield Setting(said.key, expand(each.text, value_of, project=project), said.origin, project)
        except Unexpanded as reason:
            inquiry.note(f"{said.origin}: {reason}; the line is passed over")


def default(inquiry: Discovery) -> list[Setting]:
    """Maven has no command that says it without plugins; it is in the model that is packed with it."""
    base = _maven_home(inquiry)
    if base is None:
        return []
    folder = os.path.join(base, "lib")
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith("maven-model-builder-"))
    except OSError:
        names = []
    for name in names[:1]:
        path = os.path.join(folder, name)
        if not inquiry.believes_program(path):
            inquiry.unasked.append(path)
            return []
        model = _packed(path)
        if model is not None:
            return [
                Setting("default", each.text, "the model packed with mvn", project=False) for each in _places(model)
            ]
    inquiry.unanswered("mvn keeps its default where it was not found")
    return []


def _packed(path: str) -> list[Element] | None:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as jar, jar.open(_MODEL) as model:
            return elements(model.read(_MODEL_LIMIT))
    except (OSError, KeyError, BadZipFile, BadXml, NotImplementedError):
        return None
