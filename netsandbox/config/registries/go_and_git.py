"""Go's module proxies and checksum database; and the hosts in git's settings and remotes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netsandbox.config.registries.discovery import Discovery, Setting, SettingsFile, split_values
from netsandbox.config.registries.readers import npm_ini, pairs
from netsandbox.config.registries.sources import Source, files
from netsandbox.frozen import copy_with

_UNCHECKED = ("GONOSUMDB", "GOPRIVATE")  # the second is used where the first is not set
GO_NAMES = ("GOPROXY", "GOSUMDB", *_UNCHECKED)
_REMOTE = "remote"
_SECTIONS_OF_URLS = ("url", "credential", "http")  # git's sections that are named by a URL


def go_env_files(discovery: Discovery) -> Iterable[Setting]:
    """The settings that `go env -w` stores."""
    named = discovery.variable("GOENV")
    if named == "off":
        return ()
    usual = "$XDG_CONFIG_HOME/go/env, ~/Library/Application Support/go/env"
    return files(go_env_file, "$GOENV" if named else usual)(discovery)


def go_env_file(file: SettingsFile) -> Iterator[Setting]:
    for line in pairs(file.text, "="):
        if line.keys[0] in GO_NAMES and line.value:
            yield file.setting(line.keys[0], line.value, line.number)


def go_env(name: str) -> Source:
    """The value that is built into Go."""

    def source(discovery: Discovery) -> list[Setting]:
        value = discovery.query("go", "env", name, GOENV="off")
        return [Setting(name, value, f"go env {name}")] if value else []

    return source


def go_urls(discovery: Discovery, settings: list[Setting]) -> list[Setting]:
    proxies = split_values((each for each in settings if each.key == "GOPROXY"), ",|")
    if any(each.value == "direct" for each in proxies) or any(each.key == "GOPRIVATE" for each in settings):
        discovery.note("modules that no proxy has come from their own hosts; name these with --allow-domain")
    return [each for each in proxies if each.value not in ("direct", "off")] + _databases(settings)


def _databases(settings: list[Setting]) -> list[Setting]:
    """The host of the checksum database, unless checks are turned off."""
    unchecked = [each for name in _UNCHECKED for each in settings if each.key == name and not each.project]
    if unchecked and "*" in unchecked[0].value.split(","):
        return []
    return [database(each) for each in settings if each.key == "GOSUMDB" and each.value.strip() not in ("off", "")]


def database(setting: Setting) -> Setting:
    """The checksum database's URL: given after its key, or by its name (pure)."""
    words = setting.value.split()
    return copy_with(setting, value=words[1] if len(words) > 1 else f"https://{words[0].partition('+')[0]}")


def git_config(file: SettingsFile) -> Iterator[Setting]:
    for line in npm_ini(file.text):
        section, _, name = line.keys[0].partition(" ")
        kind, url = section.lower(), name.strip().strip('"')
        if kind in _SECTIONS_OF_URLS and _is_http(url):
            yield file.setting(url, url, line.number)
        elif kind == _REMOTE and line.keys[1].lower() in ("url", "pushurl"):
            yield file.setting(_REMOTE, line.value, line.number)


def http_remotes(discovery: Discovery, settings: list[Setting]) -> list[Setting]:
    """The remotes by HTTP. Those of other protocols become notes."""
    for each in settings:
        if not _is_http(each.value):
            discovery.note(
                f"{each.origin}: this remote is not reached by HTTP; allow its host with --allow-domain HOST:22"
            )
    return [each for each in settings if _is_http(each.value)]


def _is_http(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))
