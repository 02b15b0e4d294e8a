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
    ".asdf .bun .cabal .cargo .composer/vendor .conda .config/nvm .deno .dotnet .elan .fnm .gem .ghcup .goenv .jabba"
    " .jdks .jenv .julia .local/bin .local/lib .local/pipx .local/share/fnm .local/share/mise .local/share/nvm"
    " .local/share/pipx .local/share/pnpm .local/share/pypoetry .local/share/rtx .local/share/swiftly .local/share/uv"
    " .local/share/virtualenvs .local/state/nix .n .nimble .nix-profile .nodenv .npm-global .npm-packages .nvm .nvs"
    " .opam .pixi .poetry .proto .pub-cache .pyenv .rbenv .rustup .rvm .sdkman .stack .swiftly .swiftpm .virtualenvs"
    " .volta .yarn .zvm Library/Developer/Toolchains Library/Java Library/Python Library/pnpm anaconda3 bin flutter go"
    " micromamba miniconda3 miniforge3"
)
ALL_TOOLCHAINS = (
    *TOOLCHAINS,
    *("Library/Application Support/fnm", "Library/Application Support/pypoetry/venv"),
)

# Read by git, bundler, shells and Foundation. `.gitconfig` and `.bundle/config` may hold a token, and without them git
# and bundler do nothing: see the page.
SETTINGS = _names(".CFUserTextEncoding .bundle/config .config/git .gitconfig .gitignore_global .stCommitMsg")

# Filled by package managers while they work. What is fetched once is built and run by later projects, so a session that
# writes here can reach them; see the page for the switch.
CACHES = _names(
    ".bun/install/cache .bundle/cache .cache .cargo/.global-cache .cargo/.package-cache .cargo/.package-cache-mutate"
    " .cargo/git .cargo/registry .gem/specs .gradle/.tmp .gradle/caches .gradle/daemon .gradle/native"
    " .gradle/notifications .gradle/workers .gradle/wrapper .ivy2/cache .local/share/pnpm/store .m2/repository"
    " .m2/wrapper .node-gyp .npm .nuget/packages .pub-cache/git .pub-cache/hosted .yarn/berry/cache"
    " Library/Caches/CocoaPods Library/Caches/Coursier Library/Caches/Cypress Library/Caches/Yarn"
    " Library/Caches/composer Library/Caches/deno Library/Caches/electron Library/Caches/go-build"
    " Library/Caches/ms-playwright Library/Caches/node-gyp Library/Caches/org.swift.swiftpm Library/Caches/pip"
    " Library/Caches/pnpm Library/Caches/pypoetry Library/Caches/typescript Library/pnpm/store go/pkg/mod go/pkg/sumdb"
)

# Keys, tokens, passwords, histories, other people's letters. No allowance opens them (INV-6).
SECRETS = _names(
    ".1password .android .aws .azure .bash_history .bitcoin .boto .bunfig.toml .cache/huggingface/stored_tokens"
    " .cache/huggingface/token .cargo/credentials .cargo/credentials.toml .composer/auth.json .config/1Password"
    " .config/composer/auth.json .config/configstore .config/containers/auth.json .config/doctl .config/fly"
    " .config/gcloud .config/gh .config/git/credentials .config/glab-cli .config/hub .config/kaggle .config/netlify"
    " .config/op .config/pnpm/rc .config/pypoetry/auth.toml .config/rclone .config/sops .config/stripe .docker"
    " .electrum .ethereum .fly .gcp .gem/credentials .git-credentials .gnupg .gradle/gradle.properties .heroku"
    " .hex/hex.config .histfile .history .huggingface .irb_history .ivy2/.credentials .julia/logs .kaggle .kube"
    " .lesshst .local/share/atuin .local/share/fish/fish_history .local/share/uv/credentials .m2/settings-security.xml"
    " .m2/settings.xml .minikube .mysql_history .netrc .node_repl_history .npmrc .nuget/NuGet/NuGet.Config .oci"
    " .password-store .pgpass .psql_history .pub-cache/credentials.json .pulumi .pypirc .python_history .railway"
    " .rediscli_history .s3cfg .sbt/.credentials .sh_history .sqlite_history .ssh .supabase .terraform.d .terraformrc"
    " .vault-token .viminfo .wrangler .yarnrc.yml .zsh_history .zsh_sessions Library/Accounts Library/Calendars"
    " Library/Containers Library/Cookies Library/Ethereum Library/HTTPStorages Library/IdentityServices"
    " Library/Jupyter/runtime Library/Keychains Library/Mail Library/Messages Library/Preferences/.wrangler"
    " Library/Preferences/netlify Library/Preferences/pnpm Library/Safari Library/Thunderbird Library/WebKit _netrc"
)
HOME_SECRETS = (
    *SECRETS,
    "Library/Application Support/1Password",
    "Library/Application Support/AddressBook",
    "Library/Application Support/Arc",
    "Library/Application Support/Bitcoin",
    "Library/Application Support/Bitwarden",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/CallHistoryDB",
    "Library/Application Support/Chromium",
    "Library/Application Support/Electrum",
    "Library/Application Support/Exodus",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google",
    "Library/Application Support/LibreWolf",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/MobileSync",
    "Library/Application Support/Signal",
    "Library/Application Support/Slack",
    "Library/Application Support/Vivaldi",
    "Library/Application Support/com.apple.TCC",
    "Library/Application Support/com.operasoftware.Opera",
    "Library/Application Support/com.vercel.cli",
    "Library/Application Support/dart/pub-credentials.json",
    "Library/Application Support/discord",
    "Library/Application Support/pypoetry/auth.toml",
    "Library/Application Support/zen",
    "Library/Group Containers",
)
# The second name of the whole disk, by which no rule for a first name would be asked.
SYSTEM_SECRETS = ("/Library/Keychains", "/System/Volumes/Data", "/private/etc/master.passwd", "/private/var/db/dslocal")

# Read and run by the host when the user next opens a shell, logs in or starts a program (attack 150).
RUN_AT_HOME = _names(
    ".Rprofile .bash_login .bash_logout .bash_profile .bashrc .bundle/config .claude/settings.json .codex/config.toml"
    " .config/direnv .config/fish .config/git .config/nushell .config/nvim .config/opencode .config/pip"
    " .config/powershell .config/tmux .config/zsh .curlrc .cursor .direnvrc .emacs .emacs.d .gdbinit"
    " .gemini/settings.json .gemrc .gitconfig .gitignore_global .hammerspoon .hgrc .irbrc .lldbinit .local/bin"
    " .oh-my-zsh .pip .profile .pryrc .tmux.conf .vim .vimrc .vscode .wgetrc .zlogin .zlogout .zprofile .zsh .zshenv"
    " .zshrc Library/LaunchAgents Library/QuickLook Library/Scripts Library/Services bin"
)
# The same in the working directory: git's hooks and settings, editors' tasks, direnv, agents' settings, our own file.
RUN_IN_PROJECT = _names(
    ".agent-os/sandbox-config.json .claude-sandbox.json .claude/settings.json .claude/settings.local.json .codex"
    " .cursor .devcontainer .envrc .gemini/settings.json .git/config .git/config.worktree .git/hooks .idea .mcp.json"
    " .netsandbox.toml .sandbox .sandbox.toml .vscode .zed"
)


def toolchains(home: str) -> tuple[str, ...]:
    return below(home, ALL_TOOLCHAINS)


def below(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


def secrets(home: str) -> tuple[str, ...]:
    return (*below(home, HOME_SECRETS), *SYSTEM_SECRETS)


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
    if not path.startswith("/"):
        raise UsageError(f"the {what} {path!a} is not absolute; write it from / on")
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
