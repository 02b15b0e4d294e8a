"""npm, yarn, pnpm and bun. The stronger word comes first: variables, the project's files, the user's, the system's."""

from __future__ import annotations

import os

from netsandbox.config.registries import toml
from netsandbox.config.registries.ini import npm_lines
from netsandbox.config.registries.setting import Setting, believed, settle
from netsandbox.config.registries.yaml import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.config.registries.discovery import Discovery, Text

REGISTRY = "registry"
SERVER = "npmRegistryServer"  # what yarn calls it from its second version on
_PREFIX = "npm_config_"
_NOWHERE = "/nonexistent/npmrc"  # npm reads no settings there


def npm(inquiry: Discovery) -> list[Setting]:
    said = settle(inquiry.expanded(_npm_said(inquiry)))
    return said if believed(said, REGISTRY) else [*said, *_npm_default(inquiry)]


def pnpm(inquiry: Discovery) -> list[Setting]:
    own = [*_variables(inquiry, "pnpm_config_"), *_pnpm_files(inquiry)]
    said = settle(inquiry.expanded([*own, *_npm_said(inquiry)]))
    if believed(said, REGISTRY):
        return said
    return [*said, *(inquiry.asked(REGISTRY, "pnpm", "config", "get", REGISTRY) or _npm_default(inquiry))]


def yarn(inquiry: Discovery) -> list[Setting]:
    """Both yarns: the first reads npm's settings and its own, the later ones only their own."""
    first = [*_npm_said(inquiry), *inquiry.said(REGISTRY, "YARN_REGISTRY", "yarn_registry"), *_yarnrc(inquiry)]
    later = [*inquiry.said(SERVER, "YARN_NPM_REGISTRY_SERVER"), *_yarnrc_yml(inquiry)]
    said = settle(inquiry.expanded([*first, *later]))
    if not believed(said, SERVER):
        answer = inquiry.asked(SERVER, "yarn", "config", "get", SERVER)
        if not answer and not believed(said, REGISTRY):
            answer = inquiry.asked(REGISTRY, "yarn", "config", "get", REGISTRY)
        said += answer
    return said


def bun(inquiry: Discovery) -> list[Setting]:
    """Bun has no command that names its default, and documents that it is npm's."""
    own = [*inquiry.said(REGISTRY, "BUN_CONFIG_REGISTRY"), *_bunfig(inquiry)]
    said = settle(inquiry.expanded([*own, *_npm_said(inquiry)]))
    return said if believed(said, REGISTRY) else [*said, *_npm_default(inquiry)]


def _npm_said(inquiry: Discovery) -> Iterator[Setting]:
    yield from _variables(inquiry, _PREFIX)
    for folder in inquiry.upward():
        yield from _npmrc(inquiry, os.path.join(folder, ".npmrc"), project=True)
    user = _option(inquiry, "userconfig") or os.path.join(inquiry.home, ".npmrc")
    yield from _npmrc(inquiry, user)
    for path in _npm_system_files(inquiry, user):
        yield from _npmrc(inquiry, path)


def _npm_system_files(inquiry: Discovery, user: str) -> Iterator[str]:
    """The global file under npm's prefix, and the one that was packed with npm."""
    node, program = inquiry.program("node"), inquiry.program("npm")
    prefix = _option(inquiry, "prefix") or _prefix_in(inquiry, user) or inquiry.variable("PREFIX")
    if not prefix and node:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(node)))
    named = _option(inquiry, "globalconfig")
    if named or (prefix and prefix.startswith("/")):
        yield named or os.path.join(prefix or "/", "etc", "npmrc")
    if program:
        yield os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(program))), "npmrc")


def _prefix_in(inquiry: Discovery, user: str) -> str:
    """The prefix in the user's file, if it is the user's."""
    text = inquiry.text(user)
    lines = [line for line in npm_lines(text.text) if line.key == "prefix"] if text and not text.project else []
    said = [text.said(line.key, line.value, line.number) for line in lines[-1:] if text]
    prefix = "".join(each.text for each in inquiry.expanded(said))
    return os.path.join(inquiry.home, prefix[2:]) if prefix.startswith("~/") else prefix


def _option(inquiry: Discovery, name: str) -> str:
    variables = inquiry.variables(_PREFIX)
    return next((value for key, value in sorted(variables.items(), reverse=True) if _plain(key) == name), "")


def _plain(variable: str) -> str:
    return variable[len(_PREFIX) :].lower()


def _is_registry(key: str) -> bool:
    return key == REGISTRY or (key[:1] == "@" and key.endswith(":registry"))


def _variables(inquiry: Discovery, prefix: str) -> Iterator[Setting]:
    for name, value in sorted(inquiry.variables(prefix).items(), reverse=True):  # lower case first
        key = name[len(prefix) :].lower()
        if value and _is_registry(key):
            yield Setting(key, value, name, project=False)


def _npmrc(inquiry: Discovery, path: str, *, project: bool = False) -> Iterator[Setting]:
    text = inquiry.text(path, project=project)
    lines = list(npm_lines(text.text)) if text else []
    for line in reversed(lines):  # the last line of a key wins
        if text and not line.section and line.value and _is_registry(line.key):
            yield text.said(line.key, line.value, line.number)


def _yarnrc(inquiry: Discovery) -> Iterator[Setting]:
    """`registry "https://…"`: a key, blank space, a value."""
    own = [inquiry.text(os.path.join(folder, ".yarnrc"), project=True) for folder in inquiry.upward()]
    for text in (*own, inquiry.text(os.path.join(inquiry.home, ".yarnrc")), inquiry.text(inquiry.system("yarnrc"))):
        for number, line in enumerate(text.text.split("\n") if text else (), 1):
            key, _, value = line.strip().partition(" ")
            if text and _is_registry(key.strip("\"'")):
                yield text.said(key.strip("\"'"), value.strip().strip("\"'"), number)


def _yarnrc_yml(inquiry: Discovery) -> Iterator[Setting]:
    name = inquiry.variable("YARN_RC_FILENAME") or ".yarnrc.yml"
    own = [inquiry.text(os.path.join(folder, name), project=True) for folder in inquiry.upward()]
    for text in (*own, inquiry.text(os.path.join(inquiry.home, name))):
        for leaf in leaves(text.text) if text else ():
            scoped = len(leaf.path) == 3 and leaf.path[0] == "npmScopes"
            if text and leaf.path[-1:] == (SERVER,) and (scoped or len(leaf.path) == 1):
                yield text.said(".".join(leaf.path), leaf.value, leaf.number)


def _pnpm_files(inquiry: Discovery) -> Iterator[Setting]:
    for folder in inquiry.upward():
        yield from _pnpm_yaml(inquiry.text(os.path.join(folder, "pnpm-workspace.yaml"), project=True))
    for base in (inquiry.config_home("pnpm"), os.path.join(inquiry.home, "Library", "Preferences", "pnpm")):
        yield from _pnpm_yaml(inquiry.text(os.path.join(base, "config.yaml")))
        yield from _npmrc(inquiry, os.path.join(base, "rc"))


def _pnpm_yaml(text: Text | None) -> Iterator[Setting]:
    for leaf in leaves(text.text) if text else ():
        if text and (leaf.path == (REGISTRY,) or (len(leaf.path) == 2 and leaf.path[0] == "registries")):
            key = REGISTRY if leaf.path[-1] in (REGISTRY, "default") else f"{leaf.path[-1]}:registry"
            yield text.said(key, leaf.value, leaf.number)


def _bunfig(inquiry: Discovery) -> Iterator[Setting]:
    own = [inquiry.toml(os.path.join(folder, "bunfig.toml"), project=True) for folder in inquiry.upward()]
    xdg = inquiry.variable("XDG_CONFIG_HOME")
    for found in (*own, inquiry.toml(os.path.join(xdg or inquiry.home, ".bunfig.toml"))):
        if found:
            text, document = found
            install = toml.table(document, "install")
            yield from _bun_entry(text, REGISTRY, install.get(REGISTRY), "install.registry")
            for scope, value in toml.table(install, "scopes").items():
                yield from _bun_entry(text, f"@{scope.lstrip('@')}:registry", value, "install.scopes")


def _bun_entry(text: Text, key: str, value: object, place: str) -> Iterator[Setting]:
    url = toml.word(value, "url") if isinstance(value, dict) else value
    if isinstance(url, str) and url:
        yield text.said(key, url, place)


def _npm_default(inquiry: Discovery) -> list[Setting]:
    nothing = (f"--userconfig={_NOWHERE}", f"--globalconfig={_NOWHERE}-global")
    return inquiry.asked(REGISTRY, "npm", "config", "get", REGISTRY, *nothing)
