"""Where the caches and settings of tools are, and the variables that tools need in the mode `project`. Pure.

A variable such as `CARGO_HOME` or `GOCACHE` moves a folder. The rule of a profile for `~/.cargo/registry` then holds
for the folder that the variable names; the caller leaves out those that name too much.

pnpm and uv link files from their cache into the project. The cache is a mount of its own in a session, so that links
fail: uv copies at once if it is told to, and pnpm, unless it is told where its store is, makes one in the project.
"""

from __future__ import annotations

from netsandbox.policy.file_rules import PathRule, is_within, normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

VARIABLES = {
    "BUN_INSTALL": ".bun",
    "BUN_INSTALL_CACHE_DIR": ".bun/install/cache",
    "CARGO_HOME": ".cargo",
    "CLAUDE_CONFIG_DIR": ".claude",
    "CODEX_HOME": ".codex",
    "COPILOT_HOME": ".copilot",
    "GEM_HOME": ".gem",
    "GNUPGHOME": ".gnupg",
    "GOCACHE": ".cache/go-build",
    "GOMODCACHE": "go/pkg/mod",
    "GOPATH": "go",
    "GRADLE_USER_HOME": ".gradle",
    "NPM_CONFIG_CACHE": ".npm",
    "PDM_CACHE_DIR": ".cache/pdm",
    "PIPENV_CACHE_DIR": ".cache/pipenv",
    "PIP_CACHE_DIR": ".cache/pip",
    "PNPM_HOME": ".local/share/pnpm",
    "PLAYWRIGHT_BROWSERS_PATH": ".cache/ms-playwright",
    "POETRY_CACHE_DIR": ".cache/pypoetry",
    "UV_CACHE_DIR": ".cache/uv",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "YARN_CACHE_FOLDER": ".cache/yarn",
    "npm_config_cache": ".npm",
    "npm_config_store_dir": ".local/share/pnpm/store",
    "pnpm_config_store_dir": ".local/share/pnpm/store",
}
LISTS = ("GOPATH",)  # the first folder of several is the one for caches
PNPM, PNPM_PROGRAMS = ".local/share/pnpm/store", ("pnpm", "pnpx")
STORE_VARIABLES = ("npm_config_store_dir", "pnpm_config_store_dir")  # of pnpm 9, and of later ones
UV, UV_PROGRAMS, LINK_MODE = ".cache/uv", ("uv", "uvx"), "UV_LINK_MODE"
CLONING = ("xfs", "btrfs", "bcachefs")  # file systems that clone files across mounts


def followed(rules: Iterable[PathRule], environment: Mapping[str, str], home: str) -> Iterator[tuple[str, PathRule]]:
    """The name of each cache below *home*, and its rule with the path that the tool uses."""
    pairs = sorted(_moves(environment, home), key=lambda pair: -len(pair[0]))
    for rule in rules:
        if rule.wild or not is_within(rule.path, home):
            yield "", rule
            continue
        name = rule.path[len(home) + 1 :]
        moved = next((path + name[len(root) :] for root, path in pairs if is_within(name, root)), rule.path)
        yield name, PathRule(moved, rule.origin, rule.folder)
        for root, path in pairs:
            if is_within(root, name) and root != name:  # a part of the cache was moved
                yield root, PathRule(path, rule.origin, rule.folder)


def _moves(environment: Mapping[str, str], home: str) -> Iterator[tuple[str, str]]:
    for variable, root in VARIABLES.items():
        value = environment.get(variable, "")
        path = normal(value.partition(":")[0] if variable in LISTS else value) if value.startswith("/") else "/"
        if not is_within(home, path) and ".." not in path.split("/"):
            yield root, path


def needs_variables(caches: Iterable[PathRule], program: str) -> tuple[bool, bool]:
    """Whether pnpm and whether uv is in use: a profile opens its cache, or it is the command."""
    paths = tuple(rule.path for rule in caches)
    name = program.rpartition("/")[2]
    return (
        name in PNPM_PROGRAMS or any(path.endswith(f"/{PNPM}") for path in paths),
        name in UV_PROGRAMS or any(path.endswith(f"/{UV}") for path in paths),
    )


def link_mode(file_system: str) -> str:
    """How uv takes files from its cache. Both are written out, since uv warns where it has to find out by itself."""
    return "clone" if file_system in CLONING else "copy"


def file_system_of(path: str, mounts: Iterable[str]) -> str:
    """The type of the file system that holds *path*; *mounts* are the lines of /proc/self/mounts."""
    best = ("", "")
    for line in mounts:
        words = line.split(" ")
        if len(words) > 2:
            point = words[1].replace("\\040", " ")
            if is_within(path, point) and len(point) >= len(best[0]):
                best = (point, words[2])
    return best[1]
