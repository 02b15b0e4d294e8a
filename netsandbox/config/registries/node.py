"""Settings files of npm, yarn, pnpm and bun."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from netsandbox.config.registries.discovery import Discovery, Setting, SettingsFile
from netsandbox.config.registries.readers import npm_ini, pairs, table, text_at, toml, yaml

REGISTRY = "registry"
BROWSERS = "browsers"
BROWSER_VARIABLES = tuple(f"PLAYWRIGHT_{name}_DOWNLOAD_HOST" for name in ("CHROMIUM", "FIREFOX", "WEBKIT"))
SERVER = "npmRegistryServer"  # its name in yarn 2 and later
_PREFIX = "npm_config_"


def registry_key(key: str) -> str:
    """*key* if it names a registry, for all packages or for a scope."""
    return key if key == REGISTRY or (key[:1] == "@" and key.endswith(":registry")) else ""


def npmrc(file: SettingsFile) -> Iterator[Setting]:
    for line in reversed(list(npm_ini(file.text))):  # the last line of a key wins
        section, key = line.keys
        if not section and line.value and registry_key(key):
            yield file.setting(key, line.value, line.number)


def npm_user_files(discovery: Discovery) -> Iterator[Setting]:
    """The user's file, the global one under npm's prefix, and the one that was packed with npm."""
    user = _option(discovery, "userconfig") or os.path.join(discovery.home, ".npmrc")
    for path in (user, *_global_files(discovery, user)):
        yield from discovery.settings_in(path, npmrc) or ()


def _global_files(discovery: Discovery, user: str) -> Iterator[str]:
    node, program = discovery.program("node"), discovery.program("npm")
    prefix = _option(discovery, "prefix") or _prefix_in(discovery, user) or discovery.variable("PREFIX")
    if not prefix and node:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(node)))
    named = _option(discovery, "globalconfig")
    if named or (prefix and prefix.startswith("/")):
        yield named or os.path.join(prefix or "/", "etc", "npmrc")
    if program:
        yield os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(program))), "npmrc")


def _prefix_in(discovery: Discovery, user: str) -> str:
    """The prefix in the user's file, if that file is trusted."""

    def reader(file: SettingsFile) -> Iterable[Setting]:
        lines = [] if file.project else [line for line in npm_ini(file.text) if line.keys[1] == "prefix"]
        return [file.setting("prefix", line.value, line.number) for line in lines[-1:]]

    prefix = "".join(each.value for each in discovery.expanded(discovery.settings_in(user, reader) or ()))
    return os.path.join(discovery.home, prefix[2:]) if prefix.startswith("~/") else prefix


def _option(discovery: Discovery, name: str) -> str:
    variables = sorted(discovery.variables(_PREFIX).items(), reverse=True)
    return next((value for key, value in variables if key[len(_PREFIX) :].lower() == name), "")


def playwright_default(discovery: Discovery) -> list[Setting]:
    """The hosts that Playwright prints; only one that is installed outside the project is run."""
    lines = discovery.query("playwright", "install", "--dry-run").split("\n")
    urls = [word for line in lines for word in line.split()[-1:] if word.startswith(("http://", "https://"))]
    return [Setting(BROWSERS, url, "playwright install --dry-run") for url in urls]


def yarnrc(file: SettingsFile) -> Iterator[Setting]:
    """`registry "https://…"`: a key, blank space, a value."""
    for line in pairs(file.text, " "):
        key = line.keys[0].strip("\"'")
        if registry_key(key):
            yield file.setting(key, line.value.strip("\"'"), line.number)


def yarnrc_yml_files(discovery: Discovery) -> Iterator[Setting]:
    name = discovery.variable("YARN_RC_FILENAME") or ".yarnrc.yml"
    for folder in discovery.folders_upward():
        yield from discovery.settings_in(os.path.join(folder, name), yarnrc_yml, project=True) or ()
    yield from discovery.settings_in(os.path.join(discovery.home, name), yarnrc_yml) or ()


def yarnrc_yml(file: SettingsFile) -> Iterator[Setting]:
    for line in yaml(file.text):
        scoped = len(line.keys) == 3 and line.keys[0] == "npmScopes"
        if line.keys[-1:] == (SERVER,) and (scoped or len(line.keys) == 1):
            yield file.setting(".".join(line.keys), line.value, line.number)


def pnpm_yaml(file: SettingsFile) -> Iterator[Setting]:
    for line in yaml(file.text):
        if line.keys == (REGISTRY,) or (len(line.keys) == 2 and line.keys[0] == "registries"):
            key = REGISTRY if line.keys[-1] in (REGISTRY, "default") else f"{line.keys[-1]}:registry"
            yield file.setting(key, line.value, line.number)


def bunfig(file: SettingsFile) -> Iterator[Setting]:
    install = table(toml(file.text), "install")
    entries = [(REGISTRY, install.get(REGISTRY), "install.registry")]
    for scope, value in table(install, "scopes").items():
        entries.append((f"@{scope.lstrip('@')}:registry", value, "install.scopes"))
    for key, value, place in entries:
        url = text_at(value, "url") if isinstance(value, dict) else value
        if isinstance(url, str) and url:
            yield file.setting(key, url, place)
