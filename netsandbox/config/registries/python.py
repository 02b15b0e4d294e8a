"""pip, uv, poetry, pipenv and pdm: indexes, and the hosts that their file links point to."""

from __future__ import annotations

import os

from netsandbox.config.registries import toml
from netsandbox.config.registries.destination import Skipped, pattern_of
from netsandbox.config.registries.ini import pip_lines
from netsandbox.config.registries.links import index_links
from netsandbox.config.registries.setting import Setting, believed, settle, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.config.registries.discovery import Discovery, Text

INDEX = "index-url"
_LINKS = "find-links"
_MORE = ("extra-index-url", _LINKS)
_SECTIONS = ("global", "install", "download", "wheel")
_SAMPLE = "six/"  # a project that nearly every index has, with a short page
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_MAX_PAGES = 4


def pip(inquiry: Discovery) -> list[Setting]:
    return _with_links(inquiry, _pip_indexes(inquiry))


def pipenv(inquiry: Discovery) -> list[Setting]:
    """pip's settings, its own mirror before them, and the sources of the project's Pipfile."""
    mirror = list(inquiry.said(INDEX, "PIPENV_PYPI_MIRROR"))
    return _with_links(inquiry, [*(mirror or _pip_indexes(inquiry)), *_sources(inquiry, "Pipfile", "source")])


def poetry(inquiry: Discovery) -> list[Setting]:
    """It has no settings of the user for this, and its own default is pip's."""
    own = _sources(inquiry, "pyproject.toml", "tool", "poetry", "source")
    return _with_links(inquiry, [*own, *_default(inquiry)])


def pdm(inquiry: Discovery) -> list[Setting]:
    said = [*inquiry.said(INDEX, "PDM_PYPI_URL"), *_sources(inquiry, "pyproject.toml", "tool", "pdm", "source")]
    said += [
        each
        for folder in inquiry.upward()
        for each in _pdm_file(inquiry, os.path.join(folder, "pdm.toml"), project=True)
    ]
    for path in (inquiry.config_home("pdm"), os.path.join(inquiry.home, "Library/Application Support/pdm")):
        said += _pdm_file(inquiry, os.path.join(path, "config.toml"), project=False)
    said = settle(inquiry.expanded(said))
    if not believed(said, INDEX):
        said += inquiry.asked(INDEX, "pdm", "config", "pypi.url") or _default(inquiry)
    return _with_links(inquiry, said)


def uv(inquiry: Discovery) -> list[Setting]:
    said = [*inquiry.said(INDEX, "UV_DEFAULT_INDEX", "UV_INDEX_URL")]
    for key, name in (("index", "UV_INDEX"), ("extra-index-url", "UV_EXTRA_INDEX_URL"), (_LINKS, "UV_FIND_LINKS")):
        said += inquiry.said(key, name)
    said += _uv_files(inquiry)
    found = [
        Setting(each.key, _unnamed(each.text), each.origin, each.project)
        for each in split(settle(inquiry.expanded(said)), ",")
        if "://" in each.text or not each.key.endswith(_LINKS)
    ]
    return _with_links(inquiry, found if believed(found, INDEX) else [*found, *_default(inquiry, "uv")])


def _pip_indexes(inquiry: Discovery) -> list[Setting]:
    said = [each for key in (INDEX, *_MORE) for each in inquiry.said(key, _variable(key))]
    for path in _pip_files(inquiry):
        said += _pip_conf(inquiry.text(path))
    settled = settle(said)
    alone = [each for each in settled if each.key.endswith("no-index") and not each.project]
    found = split(each for each in settled if not each.key.endswith("no-index"))
    found = [each for each in found if "://" in each.text or not each.key.endswith(_LINKS)]  # else a folder
    if believed(found, INDEX) or inquiry.variable("PIP_NO_INDEX") or alone:
        return found
    return [*found, *_default(inquiry)]


def _variable(key: str) -> str:
    return f"PIP_{key.upper().replace('-', '_')}"


def _pip_files(inquiry: Discovery) -> Iterator[str]:
    """Strongest first; a file that is named by the variable takes the place of the user's, or of all if it is null."""
    named = inquiry.variable("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    if named:
        yield named
    for prefix in (inquiry.variable("VIRTUAL_ENV"), inquiry.variable("CONDA_PREFIX"), _prefix_of_pip(inquiry)):
        if prefix:
            yield os.path.join(prefix, "pip.conf")
    if not named or not os.path.exists(os.path.join(inquiry.folder, named)):
        yield os.path.join(inquiry.home, "Library/Application Support/pip/pip.conf")
        yield inquiry.config_home("pip", "pip.conf")
        yield os.path.join(inquiry.home, ".pip", "pip.conf")
    yield inquiry.system("pip.conf")
    for base in _system_folders(inquiry):
        yield os.path.join(base, "pip", "pip.conf")
    yield "/Library/Application Support/pip/pip.conf"


def _system_folders(inquiry: Discovery) -> list[str]:
    listed = (inquiry.variable("XDG_CONFIG_DIRS") or inquiry.system("xdg")).split(":")[:20]
    return [base for base in listed if base.startswith("/")]


def _prefix_of_pip(inquiry: Discovery) -> str | None:
    program = inquiry.program("pip")
    return os.path.dirname(os.path.dirname(program)) if program else None


def _pip_conf(text: Text | None) -> list[Setting]:
    """Settings for all commands have a plain key; those of one command stand beside them."""
    said = []
    for line in pip_lines(text.text) if text else ():
        key = line.key.removeprefix("--").replace("_", "-")
        silent = key == "no-index" and line.value.lower() in ("1", "true", "yes", "on", "y", "t")
        if text and line.section in _SECTIONS and (silent or (line.value and key in (INDEX, *_MORE))):
            said.append(
                text.said(key if line.section == "global" else f"{line.section}.{key}", line.value, line.number)
            )
    return said


def _uv_files(inquiry: Discovery) -> Iterator[Setting]:
    named = inquiry.variable("UV_CONFIG_FILE")
    if named:
        yield from _uv_tables(inquiry.toml(named))
        return
    if inquiry.variable("UV_NO_CONFIG"):
        return
    for folder in inquiry.upward():
        own = inquiry.toml(os.path.join(folder, "uv.toml"), project=True)
        yield from _uv_tables(own or inquiry.toml(os.path.join(folder, "pyproject.toml"), project=True), "tool", "uv")
    yield from _uv_tables(inquiry.toml(inquiry.config_home("uv", "uv.toml")))
    for base in (*_system_folders(inquiry), inquiry.system()):
        yield from _uv_tables(inquiry.toml(os.path.join(base, "uv", "uv.toml")))


def _uv_tables(found: tuple[Text, dict[str, object]] | None, *where: str) -> Iterator[Setting]:
    """Lists add to one another over all files, so each of their items has a key of its own."""
    if found is None:
        return
    text, document = found
    settings = document if text.path.endswith("uv.toml") else toml.table(document, *where)
    for number, index in enumerate(toml.tables(settings.get("index"))):
        key = INDEX if index.get("default") is True else f"{text.path} {number}"
        if toml.word(index, "url"):
            yield text.said(key, toml.word(index, "url"), "index")
    for table in (settings, toml.table(settings, "pip")):
        if toml.word(table, INDEX):
            yield text.said(INDEX, toml.word(table, INDEX), INDEX)
        for key in _MORE:
            for url in toml.words(table.get(key)):
                yield text.said(f"{text.path} {url} {key}", url, key)


def _unnamed(text: str) -> str:
    """Without the `NAME=` that uv lets stand before the URL of an index."""
    name, equals, url = text.partition("=")
    return url if equals and not any(char in name for char in ":/?#@") else text


def _sources(inquiry: Discovery, name: str, *where: str) -> list[Setting]:
    """The tables with a `url` in the project's own list of sources."""
    said = []
    for folder in inquiry.upward():
        found = inquiry.toml(os.path.join(folder, name), project=True)
        if found:
            text, document = found
            for number, source in enumerate(toml.tables(toml.table(document, *where[:-1]).get(where[-1]))):
                said.append(text.said(f"{text.path} {number}", toml.word(source, "url"), ".".join(where)))
    return list(inquiry.expanded(each for each in said if each.text))


def _pdm_file(inquiry: Discovery, path: str, *, project: bool) -> Iterator[Setting]:
    found = inquiry.toml(path, project=project)
    if found:
        text, document = found
        pypi = toml.table(document, "pypi")
        for name, value in (("", pypi), *pypi.items()):
            if toml.word(value, "url"):
                yield text.said(f"pypi.{name}" if name else INDEX, toml.word(value, "url"), "pypi")


def _default(inquiry: Discovery, first: str = "pip") -> list[Setting]:
    """What the help of pip or uv calls the default; neither has a command that says it."""
    for tool in dict.fromkeys((first, "pip", "pip3", "uv")):
        arguments = ("pip", "install", "--help") if tool == "uv" else ("download", "--isolated", "--help")
        url = default_in(inquiry.ask(tool, *arguments))
        if url:
            return [Setting(INDEX, url, f"{tool} {' '.join(arguments)}", project=False)]
    return []


def default_in(help_text: str) -> str:
    """The URL that stands after the word default in the help of `--index-url` (pure)."""
    from itertools import pairwise

    _, option, about = " ".join(help_text.split()).partition("--index-url")
    words = about.partition(" --")[0].replace("(", " ").replace(")", " ").replace("<", " ").replace(">", " ").split()
    for before, word in pairwise(words):
        if option and before.lower().rstrip(":") == "default" and word.startswith("https://"):
            return word.rstrip(".,")
    return ""


def _with_links(inquiry: Discovery, said: list[Setting]) -> list[Setting]:
    """And where the files are; a project's index is never asked, since asking would be the project's request."""
    links = []
    asked = [each for each in said if not each.project and not each.key.endswith(_LINKS)]
    for each in asked[:_MAX_PAGES]:
        links += _links_of(inquiry, each)
    return [*said, *links]


def _links_of(inquiry: Discovery, index: Setting) -> list[Setting]:
    try:
        host = pattern_of(index.text)
    except Skipped:
        return []
    if not index.text.lower().startswith("https://"):
        inquiry.note(f"{index.origin}: whoever is on the way to {host} could name hosts; its links are not followed")
        return []
    page = inquiry.page(f"{index.text.rstrip('/')}/{_SAMPLE}", _ACCEPT)
    if page is None:
        inquiry.unanswered(f"{host} could not be asked where its files are; if they are elsewhere, use --allow-domain")
        return []
    address, kind, body = page
    return [Setting(index.key, url, f"links of {host}", project=False) for url in index_links(kind, body, address)]
