"""gem and bundle. A Gemfile is a program and is not run; only lines with a literal source are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netsandbox.config.registries.discovery import Discovery, Setting, SettingsFile, is_set, strongest
from netsandbox.config.registries.readers import yaml

SOURCES = "sources"
MIRROR_ALL = "BUNDLE_MIRROR__ALL"
_MIRROR = "BUNDLE_MIRROR__"
_MAX_FILES = 10
_SOURCE_MARKS = (  # the text before a URL in a Gemfile, and whether it begins a line
    (":source => ", False),
    ("source: ", False),
    ("source(", True),
    ("source ", True),
)


def gemrc_files(discovery: Discovery) -> Iterator[Setting]:
    """The first of the user's files with a list of sources is used."""
    named = [path for path in (discovery.variable("GEMRC") or "").split(":")[:_MAX_FILES] if path]
    usual = [path for each in _GEMRC for path in discovery.paths(each)]
    for path in (*named, *usual):
        found = discovery.settings_in(path, gemrc) or []
        yield from found
        if is_set(found, SOURCES):
            return


_GEMRC = ("$XDG_CONFIG_HOME/gem/gemrc", "~/.gemrc", "/etc/gemrc")


def gemrc(file: SettingsFile) -> Iterator[Setting]:
    for line in yaml(file.text):
        if line.keys in ((":sources",), (SOURCES,)):
            yield file.setting(SOURCES, line.value, line.number)


def mirror_variables(discovery: Discovery) -> Iterator[Setting]:
    for name, value in discovery.variables(_MIRROR.lower()).items():
        if value and not name.endswith("__FALLBACK_TIMEOUT"):
            yield Setting(name, value, name.partition("://")[0])


def bundle_config(file: SettingsFile) -> Iterator[Setting]:
    for line in yaml(file.text):
        key = line.keys[0]
        if len(line.keys) == 1 and key.startswith(_MIRROR) and not key.endswith("FALLBACK_TIMEOUT/"):
            yield file.setting(key, line.value, line.number)


def gemfile(file: SettingsFile) -> Iterator[Setting]:
    for number, line in enumerate(file.text.split("\n"), 1):
        url = source_in(line)
        if url:
            yield file.setting(f"{file.path}:{number}", url, number)


def select_bundle(settings: Iterable[Setting]) -> list[Setting]:
    """A mirror of everything replaces all other sources."""
    found = list(settings)
    mirrors = strongest(each for each in found if each.key[: len(_MIRROR)].upper() == _MIRROR)
    sources = [each for each in found if each.key[: len(_MIRROR)].upper() != _MIRROR]
    return mirrors if is_set(mirrors, MIRROR_ALL) else [*mirrors, *sources]


def source_in(line: str) -> str:
    """The URL in `source "https://…"` and in an option `source: "https://…"` (pure); none with anything computed."""
    for mark, begins in _SOURCE_MARKS:
        before, found, after = line.partition(mark)
        quote = after.lstrip()[:1]
        if found and quote in ("'", '"') and "#" not in before and not (begins and before.strip()):
            url = after.lstrip()[1:].partition(quote)[0]
            return "" if "#{" in url else url
    return ""


def default(discovery: Discovery) -> list[Setting]:
    lines = discovery.query("gem", "sources", "--list", "--norc").split("\n")
    return [Setting(SOURCES, line, "gem sources") for line in lines if line.startswith("https://")]
