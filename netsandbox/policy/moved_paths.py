"""Folders of the home directory that environment variables such as `CARGO_HOME` and `GOCACHE` move. Pure.

The rules for `~/.cargo` then hold for the folder that the variable names: programs in it can be run, its cache can be
written, its credentials stay hidden. A variable that names too much is not followed: it opens nothing.
"""

from __future__ import annotations

from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

VARIABLES = {
    "ASDF_DATA_DIR": ".asdf",
    "AWS_CONFIG_FILE": ".aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials",
    "AZURE_CONFIG_DIR": ".azure",
    "BUN_INSTALL": ".bun",
    "CARGO_HOME": ".cargo",
    "CLOUDSDK_CONFIG": ".config/gcloud",
    "COMPOSER_HOME": ".composer",
    "CONDA_PREFIX": ".conda",
    "DENO_DIR": "Library/Caches/deno",
    "DENO_INSTALL": ".deno",
    "DOCKER_CONFIG": ".docker",
    "DOTNET_ROOT": ".dotnet",
    "FNM_DIR": ".fnm",
    "GEM_HOME": ".gem",
    "GH_CONFIG_DIR": ".config/gh",
    "GNUPGHOME": ".gnupg",
    "GOCACHE": "Library/Caches/go-build",
    "GOMODCACHE": "go/pkg/mod",
    "GOOGLE_APPLICATION_CREDENTIALS": ".config/gcloud/application_default_credentials.json",
    "GOPATH": "go",
    "GOROOT": ".goenv",
    "GRADLE_USER_HOME": ".gradle",
    "HISTFILE": ".zsh_history",
    "JAVA_HOME": "Library/Java",
    "KUBECONFIG": ".kube/config",
    "MISE_DATA_DIR": ".local/share/mise",
    "NETRC": ".netrc",
    "NPM_CONFIG_CACHE": ".npm",
    "NPM_CONFIG_USERCONFIG": ".npmrc",
    "NUGET_PACKAGES": ".nuget/packages",
    "NVM_DIR": ".nvm",
    "N_PREFIX": ".n",
    "PASSWORD_STORE_DIR": ".password-store",
    "PGPASSFILE": ".pgpass",
    "PIP_CACHE_DIR": "Library/Caches/pip",
    "PLAYWRIGHT_BROWSERS_PATH": "Library/Caches/ms-playwright",
    "PNPM_HOME": "Library/pnpm",
    "POETRY_CACHE_DIR": "Library/Caches/pypoetry",
    "PUB_CACHE": ".pub-cache",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "RUSTUP_HOME": ".rustup",
    "SDKMAN_DIR": ".sdkman",
    "UV_CACHE_DIR": ".cache/uv",
    "VIRTUAL_ENV": ".virtualenvs",
    "VOLTA_HOME": ".volta",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "YARN_CACHE_FOLDER": "Library/Caches/Yarn",
    "npm_config_cache": ".npm",
    "npm_config_userconfig": ".npmrc",
}
LISTS = ("GOPATH", "KUBECONFIG")  # several, with colons between
DEVICES = "/dev"  # HISTFILE=/dev/null


def moves(environment: Mapping[str, str], home: str, working: str) -> tuple[tuple[str, str], ...]:
    """Pairs of a path relative to *home* and the path that replaces it."""
    found = []
    for variable, place in VARIABLES.items():
        value = environment.get(variable, "")
        for path in value.split(":") if variable in LISTS else (value,):
            if _is_followed(path, home, working):
                found.append((place, path.rstrip("/")))
    return tuple(found)


def _is_followed(path: str, home: str, working: str) -> bool:
    """An absolute path that holds neither all of the home nor the working directory, and is no device."""
    whole = path.rstrip("/")
    return whole.startswith("/") and not any(
        (is_within(home, whole), is_within(working, whole), is_within(whole, DEVICES))
    )


def moved(places: Iterable[str], pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The new paths of those *places* that were moved, or that lie within a moved folder."""
    known = tuple(pairs)
    for place in places:
        for root, path in known:
            if is_within(place, root):
                yield path + place[len(root) :]
            elif is_within(root, place):  # the place is a folder of which a part was moved
                yield path
