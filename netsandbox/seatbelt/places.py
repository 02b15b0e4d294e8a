"""Which files of a Mac belong to whom: toolchains, caches, secrets, what the host runs later. Pure.

Folders of the home directory are named relative to it. Nothing here is looked up: a place that does not exist costs a
line of the profile and nothing else, and one that is made later is already covered.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.seatbelt.escape import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ALIASES = ("/etc", "/tmp", "/var")  # noqa: S108 (links into /private on every Mac; Seatbelt matches what they lead to)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Installed by the user for the user: read and run, never written.
TOOLCHAINS = _names(
    ".asdf .bun .cargo .conda .deno .gem .goenv .local/bin .local/lib .local/pipx .local/share/mise .local/share/pipx"
    " .local/share/pnpm .local/share/uv .local/share/virtualenvs .nodenv .nvm .pyenv .rbenv .rustup .rvm .sdkman"
    " .virtualenvs .volta .yarn Library/Python Library/pnpm anaconda3 go miniconda3 miniforge3"
)

# Read by git, shells and Foundation. `.gitconfig` may hold a token, and git does nothing without it: see the page.
SETTINGS = _names(".CFUserTextEncoding .config/git .gitconfig .gitignore_global .stCommitMsg")

# Filled by package managers while they work. What is fetched once is built and run by later projects, so a session that
# writes here can reach them; see the page for the switch.
CACHES = _names(
    ".bundle .cache .cargo/git .cargo/registry .gradle/caches .m2/repository .node-gyp .npm Library/Caches/Yarn"
    " Library/Caches/go-build Library/Caches/node-gyp Library/Caches/pip Library/Caches/pnpm go/pkg/mod"
)

# Keys, tokens, passwords, histories, other people's letters. No allowance opens them (INV-6).
SECRETS = _names(
    ".1password .android .aws .azure .bash_history .boto .cache/huggingface/token .cargo/credentials"
    " .cargo/credentials.toml .config/1Password .config/containers/auth.json .config/doctl .config/fly .config/gcloud"
    " .config/gh .config/glab-cli .config/hub .config/op .config/rclone .config/sops .config/stripe .docker .fly .gcp"
    " .gem/credentials .git-credentials .gnupg .gradle/gradle.properties .heroku .huggingface .kube"
    " .m2/settings-security.xml .m2/settings.xml .mysql_history .netrc .node_repl_history .npmrc .oci .password-store"
    " .pgpass .psql_history .pypirc .python_history .s3cfg .ssh .terraform.d .vault-token .wrangler .yarnrc.yml"
    " .zsh_history .zsh_sessions Library/Accounts Library/Calendars Library/Cookies Library/Keychains Library/Mail"
    " Library/Messages Library/Safari"
)
APPLICATION_SECRETS = (  # their names have blanks
    "Library/Application Support/1Password",
    "Library/Application Support/AddressBook",
    "Library/Application Support/Arc",
    "Library/Application Support/Bitwarden",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Chromium",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/Vivaldi",
    "Library/Application Support/com.apple.TCC",
    "Library/Containers/com.apple.Safari",
    "Library/Group Containers",
)
# The second name of the whole disk, by which no rule for a first name would be asked.
SYSTEM_SECRETS = ("/Library/Keychains", "/System/Volumes/Data", "/private/etc/master.passwd", "/private/var/db/dslocal")

# Read and run by the host when the user next opens a shell, logs in or starts a program (attack 150).
RUN_AT_HOME = _names(
    ".bash_login .bash_profile .bashrc .config/fish .config/git .gitconfig .local/bin .profile .vimrc .zlogin .zlogout"
    " .zprofile .zshenv .zshrc Library/LaunchAgents"
)
# The same in the working directory: git's hooks and settings, editors' tasks, direnv, agents' settings, our own file.
RUN_IN_PROJECT = _names(
    ".claude/settings.json .claude/settings.local.json .envrc .git/config .git/hooks .idea .mcp.json .netsandbox.toml"
    " .vscode"
)


def below(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


def secrets(home: str) -> tuple[str, ...]:
    return (*below(home, (*SECRETS, *APPLICATION_SECRETS)), *SYSTEM_SECRETS)


def is_within(path: str, folder: str) -> bool:
    """*path* is *folder* or somewhere below it; `/a-b` is not below `/a` (attack 145)."""
    return path == folder or path.startswith(folder if folder == "/" else f"{folder}/")


def ancestors(path: str) -> Iterator[str]:
    """The folders above *path*, the nearest first, without `/`."""
    while (cut := path.rfind("/")) > 0:
        path = path[:cut]
        yield path


def above(paths: Iterable[str]) -> list[str]:
    """All folders above any of *paths*, sorted, each once."""
    return sorted({folder for path in paths for folder in ancestors(path)})


def checked(path: str, what: str) -> str:
    """*path*, if Seatbelt would meet it spelled so: absolute, plain and with every link followed."""
    quoted(path, what)
    if path != plain(path):
        raise UsageError(f"the {what} {path!a} is not resolved, so no rule would match it; give {plain(path)!a}")
    return path


def plain(path: str) -> str:
    """Absolute, without `.`, `..`, doubled slashes and the links of every Mac; other links need the file system."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    clean = "/" + "/".join(parts)
    return f"/private{clean}" if any(is_within(clean, alias) for alias in ALIASES) else clean
