"""Settings files of pip, uv, pipenv, poetry and pdm, and the hosts that the file links of an index point to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from netsandbox.config.registries.discovery import Discovery, Reader, Setting, SettingsFile, split_values, strongest
from netsandbox.config.registries.readers import pip_ini, table, tables, text_at, texts, toml
from netsandbox.config.registries.sources import Source, files
from netsandbox.config.registries.urls import NoRule, index_links, pattern_of
from netsandbox.frozen import copy_with

_PIP = "pip/pip.conf"
INDEX, NO_INDEX = "index-url", "no-index"
_LINKS = "find-links"
_MORE = ("extra-index-url", _LINKS)
_SECTIONS = ("global", "install", "download", "wheel")
_SAMPLE = "six/"  # a project that nearly every index has, with a short page
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_MAX_PAGES = 4


def pip_files(discovery: Discovery) -> Iterator[Setting]:
    """A file that PIP_CONFIG_FILE names replaces the user's, or all if it is the null device."""
    if discovery.variable("PIP_NO_INDEX"):
        yield Setting(NO_INDEX, "", "PIP_NO_INDEX")
    named = discovery.variable("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    program = discovery.program("pip")
    templates = ["$PIP_CONFIG_FILE", "$VIRTUAL_ENV/pip.conf", "$CONDA_PREFIX/pip.conf"]
    templates += [os.path.join(os.path.dirname(os.path.dirname(program)), "pip.conf")] if program else []
    if not named or not os.path.exists(os.path.join(discovery.folder, named)):
        templates += [f"~/Library/Application Support/{_PIP}", f"$XDG_CONFIG_HOME/{_PIP}", "~/.pip/pip.conf"]
    templates += ["/etc/pip.conf", f"$XDG_CONFIG_DIRS/{_PIP}", f"/Library/Application Support/{_PIP}"]
    for path in (path for template in templates for path in discovery.paths(template)):
        yield from discovery.settings_in(path, pip_conf) or ()


def pip_conf(file: SettingsFile) -> Iterator[Setting]:
    """Settings for all commands have a plain key; those of one command are kept beside them."""
    for line in pip_ini(file.text):
        section, key = line.keys[0], line.keys[1].removeprefix("--").replace("_", "-")
        if section not in _SECTIONS:
            continue
        if key == NO_INDEX and line.value.lower() in ("1", "true", "yes", "on", "y", "t"):
            yield file.setting(NO_INDEX, "", line.number)
        elif line.value and key in (INDEX, *_MORE):
            yield file.setting(key if section == "global" else f"{section}.{key}", line.value, line.number)


def select_pip(settings: Iterable[Setting]) -> list[Setting]:
    """The strongest of each key; a value may hold several URLs, and `find-links` also folders."""
    found: list[Setting] = []
    for each in strongest(settings):
        whole = not each.value or each.key[:1] == "/"
        found += [each] if whole else split_values([each])
    return _without_folders(found)


def _without_folders(settings: Iterable[Setting]) -> list[Setting]:
    return [each for each in settings if "://" in each.value or not each.key.endswith(_LINKS)]


def uv_files(discovery: Discovery) -> Iterable[Setting]:
    if discovery.variable("UV_CONFIG_FILE"):
        return files(uv_toml, "$UV_CONFIG_FILE")(discovery)
    if discovery.variable("UV_NO_CONFIG"):
        return ()
    user = "$XDG_CONFIG_HOME/uv/uv.toml, $XDG_CONFIG_DIRS/uv/uv.toml, /etc/uv/uv.toml"
    return files(uv_toml, f"./uv.toml|pyproject.toml, {user}")(discovery)


def uv_toml(file: SettingsFile) -> Iterator[Setting]:
    """Lists of all files add up, so each item has a separate key."""
    document = toml(file.text)
    settings = table(document, "tool", "uv") if file.path.endswith("pyproject.toml") else document
    for number, index in enumerate(tables(settings.get("index"))):
        key = INDEX if index.get("default") is True else f"{file.path} {number}"
        if text_at(index, "url"):
            yield file.setting(key, text_at(index, "url"), "index")
    for level in (settings, table(settings, "pip")):
        if text_at(level, INDEX):
            yield file.setting(INDEX, text_at(level, INDEX), INDEX)
        for key in _MORE:
            for url in texts(level.get(key)):
                yield file.setting(f"{file.path} {url} {key}", url, key)


def select_uv(settings: Iterable[Setting]) -> list[Setting]:
    found = split_values(strongest(settings), ",")
    return [copy_with(each, value=_unnamed(each.value)) for each in _without_folders(found)]


def _unnamed(text: str) -> str:
    """The setting without the `NAME=` that uv allows before the URL of an index."""
    name, equals, url = text.partition("=")
    return url if equals and not any(char in name for char in ":/?#@") else text


def sources_in(*keys: str) -> Reader:
    """The tables with a `url` in the project's own list of sources."""

    def reader(file: SettingsFile) -> Iterator[Setting]:
        listed = table(toml(file.text), *keys[:-1]).get(keys[-1])
        for number, source in enumerate(tables(listed)):
            if text_at(source, "url"):
                yield file.setting(f"{file.path} {number}", text_at(source, "url"), ".".join(keys))

    return reader


def pdm_toml(file: SettingsFile) -> Iterator[Setting]:
    pypi = table(toml(file.text), "pypi")
    for name, value in (("", pypi), *pypi.items()):
        if text_at(value, "url"):
            yield file.setting(f"pypi.{name}" if name else INDEX, text_at(value, "url"), "pypi")


def default_index(*names: str) -> Source:
    """The default in the help text of pip or uv; neither has a command that prints it."""

    def source(discovery: Discovery) -> list[Setting]:
        for name in names:
            arguments = ("pip", "install", "--help") if name == "uv" else ("download", "--isolated", "--help")
            url = default_in(discovery.query(name, *arguments))
            if url:
                return [Setting(INDEX, url, f"{name} {' '.join(arguments)}")]
        return []

    return source


def default_in(help_text: str) -> str:
    """The URL after the word default in the help of `--index-url` (pure)."""
    from itertools import pairwise

    _, option, about = " ".join(help_text.split()).partition("--index-url")
    words = about.partition(" --")[0].translate(str.maketrans("()<>", "    ")).split()
    for before, word in pairwise(words):
        if option and before.lower().rstrip(":") == "default" and word.startswith("https://"):
            return word.rstrip(".,")
    return ""


def with_links(discovery: Discovery, settings: list[Setting]) -> list[Setting]:
    """Adds the hosts of the files. A project's index is never fetched, because that would be a request of the
    project."""
    indexes = [each for each in settings if each.value and not each.project and not each.key.endswith(_LINKS)]
    links = [link for index in indexes[:_MAX_PAGES] for link in _links_of(discovery, index)]
    return [*settings, *links]


def _links_of(discovery: Discovery, index: Setting) -> list[Setting]:
    try:
        host = pattern_of(index.value)
    except NoRule:
        return []
    if not index.value.lower().startswith("https://"):
        discovery.note(f"{index.origin}: anybody on the way to {host} could name hosts; its links are not followed")
        return []
    page = discovery.page(f"{index.value.rstrip('/')}/{_SAMPLE}", _ACCEPT)
    if page is None:
        discovery.note_incomplete(
            f"{host} could not be asked where its files are; if they are elsewhere, use --allow-domain"
        )
        return []
    address, kind, body = page
    return [Setting(index.key, url, f"links of {host}") for url in index_links(kind, body, address)]
