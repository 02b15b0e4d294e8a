"""The table of tools: where each has its settings, strongest first, and how its default registry is found.

To add a tool, add a row. A source gives settings: variables, or files with the reader of their format. Paths are
templates (`Discovery.paths`); those that begin with `./` are looked for in the folder and each one above it, and are
the project's. Where no setting of the user replaces the tool's default, the defaults are queried.
"""

from __future__ import annotations

from netsandbox.config.registries import cargo, go_and_git, java, node, python, ruby
from netsandbox.config.registries.discovery import Setting, is_set, strongest
from netsandbox.config.registries.sources import after, expanded, files, first_of, printed_url, variable
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox.config.registries.discovery import Discovery
    from netsandbox.config.registries.sources import Source

    Default = tuple[tuple[str, ...], Source]  # the keys that make it needless, and what finds it


@frozen
class Tool:
    """`defaults`: groups of which each gives its first that is found. `select` chooses among the settings of all
    sources, `follow` replaces or adds some in the end."""

    sources: tuple[Source, ...]
    defaults: tuple[tuple[Default, ...], ...] = ()
    select: Callable[[Iterable[Setting]], list[Setting]] = strongest
    follow: Callable[[Discovery, list[Setting]], list[Setting]] | None = None

    def settings(self, discovery: Discovery) -> list[Setting]:
        """Every setting that names a registry."""
        found = self.select(each for source in self.sources for each in source(discovery))
        for group in self.defaults:
            for keys, source in group:
                if is_set(found, *keys):
                    break
                default = list(source(discovery))
                if default:
                    found += default
                    break
        if self.follow is not None:
            found = self.follow(discovery, found)
        return [each for each in found if each.value]


_REGISTRY, _SERVER, _INDEX = node.REGISTRY, node.SERVER, python.INDEX
_NO_FILE = "/nonexistent/npmrc"  # npm reads no settings there
_NPM_SOURCES = (
    after("npm_config_", node.registry_key),
    files(node.npmrc, "./.npmrc"),
    node.npm_user_files,
)
_NPM_DEFAULT: Default = (
    (_REGISTRY,),
    printed_url(
        _REGISTRY, "npm", "config", "get", _REGISTRY, f"--userconfig={_NO_FILE}", f"--globalconfig={_NO_FILE}-global"
    ),
)
_PIP_SOURCES = (
    variable(_INDEX, "PIP_INDEX_URL"),
    variable("extra-index-url", "PIP_EXTRA_INDEX_URL"),
    variable("find-links", "PIP_FIND_LINKS"),
    python.pip_files,
)
_PIP_KEYS = (_INDEX, python.NO_INDEX)
_PIP_DEFAULT: Default = (_PIP_KEYS, python.default_index("pip", "pip3", "uv"))

TOOLS: dict[str, Tool] = {
    "npm": Tool((expanded(*_NPM_SOURCES),), ((_NPM_DEFAULT,),)),
    "yarn": Tool(  # the first yarn reads npm's settings and its own, the later ones only their own
        (
            expanded(
                *_NPM_SOURCES,
                variable(_REGISTRY, "YARN_REGISTRY", "yarn_registry"),
                files(node.yarnrc, "./.yarnrc", "~/.yarnrc", "/etc/yarnrc"),
                variable(_SERVER, "YARN_NPM_REGISTRY_SERVER"),
                node.yarnrc_yml_files,
            ),
        ),
        (
            (
                ((_SERVER,), printed_url(_SERVER, "yarn", "config", "get", _SERVER)),
                ((_REGISTRY,), printed_url(_REGISTRY, "yarn", "config", "get", _REGISTRY)),
            ),
        ),
    ),
    "pnpm": Tool(
        (
            expanded(
                after("pnpm_config_", node.registry_key),
                files(node.pnpm_yaml, "./pnpm-workspace.yaml", "$XDG_CONFIG_HOME/pnpm/config.yaml"),
                files(node.npmrc, "$XDG_CONFIG_HOME/pnpm/rc"),
                files(node.pnpm_yaml, "~/Library/Preferences/pnpm/config.yaml"),
                files(node.npmrc, "~/Library/Preferences/pnpm/rc"),
                *_NPM_SOURCES,
            ),
        ),
        ((((_REGISTRY,), printed_url(_REGISTRY, "pnpm", "config", "get", _REGISTRY)), _NPM_DEFAULT),),
    ),
    "bun": Tool(  # it has no command that prints its default, and documents that it is npm's
        (
            expanded(
                variable(_REGISTRY, "BUN_CONFIG_REGISTRY"),
                files(node.bunfig, "./bunfig.toml", "${XDG_CONFIG_HOME:-~}/.bunfig.toml"),
                *_NPM_SOURCES,
            ),
        ),
        ((_NPM_DEFAULT,),),
    ),
    "pip": Tool(_PIP_SOURCES, ((_PIP_DEFAULT,),), python.select_pip, python.with_links),
    "uv": Tool(
        (
            expanded(
                variable(_INDEX, "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
                variable("index", "UV_INDEX"),
                variable("extra-index-url", "UV_EXTRA_INDEX_URL"),
                variable("find-links", "UV_FIND_LINKS"),
                python.uv_files,
            ),
        ),
        ((((_INDEX,), python.default_index("uv", "pip", "pip3")),),),
        python.select_uv,
        python.with_links,
    ),
    "poetry": Tool(  # the user has no setting for this, and its own default is pip's
        (expanded(files(python.sources_in("tool", "poetry", "source"), "./pyproject.toml")),),
        ((((), python.default_index("pip", "pip3", "uv")),),),
        follow=python.with_links,
    ),
    "pipenv": Tool(
        (
            first_of(variable(_INDEX, "PIPENV_PYPI_MIRROR"), *_PIP_SOURCES),
            expanded(files(python.sources_in("source"), "./Pipfile")),
        ),
        ((_PIP_DEFAULT,),),
        python.select_pip,
        python.with_links,
    ),
    "pdm": Tool(
        (
            expanded(
                variable(_INDEX, "PDM_PYPI_URL"),
                files(python.sources_in("tool", "pdm", "source"), "./pyproject.toml"),
                files(
                    python.pdm_toml,
                    "./pdm.toml",
                    "$XDG_CONFIG_HOME/pdm/config.toml",
                    "~/Library/Application Support/pdm/config.toml",
                ),
            ),
        ),
        (
            (
                ((_INDEX,), printed_url(_INDEX, "pdm", "config", "pypi.url")),
                ((_INDEX,), python.default_index("pip", "pip3", "uv")),
            ),
        ),
        follow=python.with_links,
    ),
    "cargo": Tool(  # `config` is the older spelling, and it wins
        (
            cargo.variables,
            files(
                cargo.config_toml,
                "./.cargo/config",
                "./.cargo/config.toml",
                "~/.cargo/config",
                "~/.cargo/config.toml",
                "$CARGO_HOME/config",
                "$CARGO_HOME/config.toml",
            ),
        ),
        ((((cargo.REPLACED,), cargo.default),),),
        cargo.select,
        cargo.with_links,
    ),
    "go": Tool(
        (*(variable(name, name) for name in go_and_git.GO_NAMES), go_and_git.go_env_files),
        tuple((((name,), go_and_git.go_env(name)),) for name in ("GOPROXY", "GOSUMDB")),
        follow=go_and_git.go_urls,
    ),
    "gem": Tool((ruby.gemrc_files,), ((((ruby.SOURCES,), ruby.default),),), list),
    "bundle": Tool(  # mirrors replace sources; project settings come before variables, both before the user's
        (
            files(ruby.bundle_config, "./.bundle/config"),
            ruby.mirror_variables,
            files(ruby.bundle_config, "${BUNDLE_USER_CONFIG:-~/.bundle/config}"),
            files(ruby.gemfile, "./Gemfile", "./gems.rb"),
            ruby.gemrc_files,
        ),
        ((((ruby.SOURCES, ruby.MIRROR_ALL), ruby.default),),),
        ruby.select_bundle,
    ),
    "mvn": Tool(
        (
            files(java.settings_xml, "~/.m2/settings.xml"),
            java.maven_home_settings,
            files(java.pom_xml, "./pom.xml"),
        ),
        ((((java.CENTRAL,), java.maven_default),),),
        list,
        java.expand_urls,
    ),
    "gradle": Tool(
        (
            files(java.gradle_script, *(f"./{name}" for name in java.GRADLE_SCRIPTS)),
            files(
                java.gradle_script,
                "${GRADLE_USER_HOME:-~/.gradle}/init.gradle",
                "${GRADLE_USER_HOME:-~/.gradle}/init.gradle.kts",
            ),
            java.gradle_init_scripts,
            files(java.gradle_wrapper, "./gradle/wrapper/gradle-wrapper.properties", nearest=True),
        ),
        select=list,
        follow=java.gradle_built_in,
    ),
    "git": Tool(  # git has no host of its own
        (
            files(go_and_git.git_config, "~/.gitconfig", "$XDG_CONFIG_HOME/git/config"),
            files(go_and_git.git_config, "./.git/config", nearest=True),
        ),
        select=list,
        follow=go_and_git.http_remotes,
    ),
}
