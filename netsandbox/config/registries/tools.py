"""The table of tools: the sources of each tool's settings, strongest first, and how its default registry is found.

To add a tool, add a row. A source has settings: variables, or files with the parser of their format. Paths are
templates (`Discovery.paths`) with commas between them. Those that begin with `./` are searched in the folder and each
one above it, and belong to the project. If no setting of the user replaces the tool's default, the tool is queried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from netsandbox.config.registries import cargo, go_and_git, java, node, python, ruby
from netsandbox.config.registries.discovery import Discovery, Setting, is_set, strongest
from netsandbox.config.registries.sources import Source, after, expanded, files, first_of, printed_url, variable
from netsandbox.frozen import frozen

Default = tuple[tuple[str, ...], Source]  # the keys that replace the default, and the function that finds it


@frozen
class Tool:
    """`defaults`: chains; each is tried until a default is found, unless a key is set. `select` chooses among the
    settings of all sources. `follow` replaces or adds settings at the end."""

    sources: tuple[Source, ...]
    defaults: tuple[tuple[Default, ...], ...] = ()
    select: Callable[[Iterable[Setting]], list[Setting]] = strongest
    follow: Callable[[Discovery, list[Setting]], list[Setting]] | None = None

    def settings(self, discovery: Discovery) -> list[Setting]:
        """Every setting that names a registry."""
        found = self.select(each for source in self.sources for each in source(discovery))
        for chain in self.defaults:
            for keys, source in chain:
                if is_set(found, *keys):
                    break
                default = list(source(discovery))
                if default:
                    found += default
                    break
        if self.follow is not None:
            found = self.follow(discovery, found)
        return [each for each in found if each.value]


def _tool(
    *sources: Source,
    defaults: tuple[tuple[Default, ...], ...] = (),
    select: Callable[[Iterable[Setting]], list[Setting]] = strongest,
    follow: Callable[[Discovery, list[Setting]], list[Setting]] | None = None,
) -> Tool:
    return Tool(sources, defaults, select, follow)


def _default(source: Source, *keys: str) -> tuple[Default, ...]:
    """A chain of one; chains are joined by `+`."""
    return ((keys, source),)


_REGISTRY, _SERVER, _INDEX = node.REGISTRY, node.SERVER, python.INDEX
_NO_FILES = ("--userconfig=/nonexistent/npmrc", "--globalconfig=/nonexistent/npmrc-global")  # npm reads no settings
_NPM = (after("npm_config_", node.registry_key), files(node.npmrc, "./.npmrc"), node.npm_user_files)
_NPM_DEFAULT = _default(printed_url(_REGISTRY, "npm", "config", "get", _REGISTRY, *_NO_FILES), _REGISTRY)
_PIP = (
    variable(_INDEX, "PIP_INDEX_URL"),
    variable("extra-index-url", "PIP_EXTRA_INDEX_URL"),
    variable("find-links", "PIP_FIND_LINKS"),
    python.pip_files,
)
_PIP_HELP = python.default_index("pip", "pip3", "uv")
_PIP_DEFAULT = _default(_PIP_HELP, _INDEX, python.NO_INDEX)

TOOLS: dict[str, Tool] = {
    "npm": _tool(expanded(*_NPM), defaults=(_NPM_DEFAULT,)),
    "yarn": _tool(  # the first yarn reads npm's settings and its own, the later ones only their own
        expanded(
            *_NPM,
            variable(_REGISTRY, "YARN_REGISTRY", "yarn_registry"),
            files(node.yarnrc, "./.yarnrc, ~/.yarnrc, /etc/yarnrc"),
            variable(_SERVER, "YARN_NPM_REGISTRY_SERVER"),
            node.yarnrc_yml_files,
        ),
        defaults=(
            _default(printed_url(_SERVER, "yarn", "config", "get", _SERVER), _SERVER)
            + _default(printed_url(_REGISTRY, "yarn", "config", "get", _REGISTRY), _REGISTRY),
        ),
    ),
    "pnpm": _tool(
        expanded(
            after("pnpm_config_", node.registry_key),
            files(node.pnpm_yaml, "./pnpm-workspace.yaml, $XDG_CONFIG_HOME/pnpm/config.yaml"),
            files(node.npmrc, "$XDG_CONFIG_HOME/pnpm/rc"),
            files(node.pnpm_yaml, "~/Library/Preferences/pnpm/config.yaml"),
            files(node.npmrc, "~/Library/Preferences/pnpm/rc"),
            *_NPM,
        ),
        defaults=(_default(printed_url(_REGISTRY, "pnpm", "config", "get", _REGISTRY), _REGISTRY) + _NPM_DEFAULT,),
    ),
    "bun": _tool(  # it has no command that prints its default, and documents that it is npm's
        expanded(
            variable(_REGISTRY, "BUN_CONFIG_REGISTRY"),
            files(node.bunfig, "./bunfig.toml, ${XDG_CONFIG_HOME:-~}/.bunfig.toml"),
            *_NPM,
        ),
        defaults=(_NPM_DEFAULT,),
    ),
    "playwright": _tool(  # a variable for one browser is used before that for all
        *(variable(name, name) for name in node.BROWSER_VARIABLES),
        variable(node.BROWSERS, "PLAYWRIGHT_DOWNLOAD_HOST"),
        defaults=(_default(node.playwright_default, node.BROWSERS),),
    ),
    "pip": _tool(*_PIP, defaults=(_PIP_DEFAULT,), select=python.select_pip, follow=python.with_links),
    "uv": _tool(
        expanded(
            variable(_INDEX, "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
            variable("index", "UV_INDEX"),
            variable("extra-index-url", "UV_EXTRA_INDEX_URL"),
            variable("find-links", "UV_FIND_LINKS"),
            python.uv_files,
        ),
        defaults=(_default(python.default_index("uv", "pip", "pip3"), _INDEX),),
        select=python.select_uv,
        follow=python.with_links,
    ),
    "poetry": _tool(  # the user has no setting for this, and its own default is pip's
        expanded(files(python.sources_in("tool", "poetry", "source"), "./pyproject.toml")),
        defaults=(_default(_PIP_HELP),),
        follow=python.with_links,
    ),
    "pipenv": _tool(
        first_of(variable(_INDEX, "PIPENV_PYPI_MIRROR"), *_PIP),
        expanded(files(python.sources_in("source"), "./Pipfile")),
        defaults=(_PIP_DEFAULT,),
        select=python.select_pip,
        follow=python.with_links,
    ),
    "pdm": _tool(
        expanded(
            variable(_INDEX, "PDM_PYPI_URL"),
            files(python.sources_in("tool", "pdm", "source"), "./pyproject.toml"),
            files(python.pdm_toml, "./pdm.toml, $XDG_CONFIG_HOME/pdm/config.toml"),
            files(
                python.pdm_toml,
                "~/Library/Application Support/pdm/config.toml",
            ),
        ),
        defaults=(_default(printed_url(_INDEX, "pdm", "config", "pypi.url"), _INDEX) + _default(_PIP_HELP, _INDEX),),
        follow=python.with_links,
    ),
    "cargo": _tool(  # `config` is the older spelling, and it wins
        cargo.variables,
        files(cargo.config_toml, "./.cargo/config, ./.cargo/config.toml, ~/.cargo/config, ~/.cargo/config.toml"),
        files(cargo.config_toml, "$CARGO_HOME/config, $CARGO_HOME/config.toml"),
        defaults=(_default(cargo.default, cargo.REPLACED),),
        select=cargo.select,
        follow=cargo.with_links,
    ),
    "go": _tool(
        *(variable(name, name) for name in go_and_git.GO_NAMES),
        go_and_git.go_env_files,
        defaults=tuple(_default(go_and_git.go_env(name), name) for name in ("GOPROXY", "GOSUMDB")),
        follow=go_and_git.go_urls,
    ),
    "gem": _tool(ruby.gemrc_files, defaults=(_default(ruby.default, ruby.SOURCES),), select=list),
    "bundle": _tool(  # mirrors replace sources; project settings come before variables, both before the user's
        files(ruby.bundle_config, "./.bundle/config"),
        ruby.mirror_variables,
        files(ruby.bundle_config, "${BUNDLE_USER_CONFIG:-~/.bundle/config}"),
        files(ruby.gemfile, "./Gemfile, ./gems.rb"),
        ruby.gemrc_files,
        defaults=(_default(ruby.default, ruby.SOURCES, ruby.MIRROR_ALL),),
        select=ruby.select_bundle,
    ),
    "mvn": _tool(
        files(java.settings_xml, "~/.m2/settings.xml"),
        java.maven_home_settings,
        files(java.pom_xml, "./pom.xml"),
        defaults=(_default(java.maven_default, java.CENTRAL),),
        select=list,
        follow=java.expand_urls,
    ),
    "gradle": _tool(  # it has no command that prints a default; most builds use Maven's
        files(java.gradle_wrapper, "./gradle/wrapper/gradle-wrapper.properties", nearest=True),
        defaults=(_default(java.maven_default),),
        select=list,
    ),
    "git": _tool(  # it has no default
        files(go_and_git.git_config, "~/.gitconfig, $XDG_CONFIG_HOME/git/config"),
        files(go_and_git.git_config, "./.git/config", nearest=True),
        select=list,
        follow=go_and_git.http_remotes,
    ),
}
