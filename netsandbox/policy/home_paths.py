"""Paths relative to the home directory: those of secrets, and those that environment variables move. Pure.

Secrets are keys, tokens, passwords, histories and mail, one list for both systems. A session reads them only with
`--allow-read` (docs/configuration.md, Files).

Variables such as `CARGO_HOME` and `GOCACHE` move folders. The rules for `~/.cargo` then hold for the folder that the
variable names: programs in it can be run, its cache can be written, its credentials stay hidden. A variable that names
too much is not followed: it opens nothing.
"""

from __future__ import annotations

from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


EVERYWHERE = _names(
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
    " .vault-token .viminfo .wrangler .yarnrc.yml .zsh_history .zsh_sessions _netrc"
)
_LINUX = _names(
    ".ICEauthority .Xauthority .config/.wrangler .config/BraveSoftware .config/Bitwarden .config/Element"
    " .config/Exodus .config/Signal .config/Slack .config/chromium .config/dart/pub-credentials.json .config/discord"
    " .config/evolution .config/google-chrome .config/google-chrome-beta .config/keepassxc .config/microsoft-edge"
    " .config/opera .config/pulse/cookie .config/vivaldi .floorp .librewolf .local/share/com.vercel.cli"
    " .local/share/evolution .local/share/gnome-keyring .local/share/jupyter/runtime .local/share/keyrings"
    " .local/share/kwalletd .mozilla .pki .thunderbird .var/app/com.brave.Browser .var/app/com.google.Chrome"
    " .var/app/org.chromium.Chromium .var/app/org.mozilla.Thunderbird .var/app/org.mozilla.firefox .zen snap/brave"
    " snap/chromium snap/firefox snap/thunderbird"
)
_MAC = _names(
    "Library/Accounts Library/Calendars Library/Containers Library/Cookies Library/Ethereum Library/HTTPStorages"
    " Library/IdentityServices Library/Jupyter/runtime Library/Keychains Library/Mail Library/Messages"
    " Library/Preferences/.wrangler Library/Preferences/netlify Library/Preferences/pnpm Library/Safari"
    " Library/Thunderbird Library/WebKit"
)
_MAC_SPACED = (
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

OF_LINUX = (*EVERYWHERE, *_LINUX)
# Logins and transcripts of agents. They are secrets like the others, until a rule of the session names something in one
# or a folder around it, as the profile of the agent does: then that place is open as far as the rules say.
AGENTS = _names(
    ".aider .aider.conf.yml .augment .claude .claude.json .codeium .codex .config/Claude"
    " .config/Code/User/globalStorage .config/Code/User/workspaceStorage .config/Cursor"
    " .config/VSCodium/User/globalStorage"
    " .config/Windsurf .config/amp .config/anthropic .config/crush .config/cursor .config/github-copilot .config/goose"
    " .config/io.datasette.llm .config/openai .config/opencode .continue .copilot .cursor .factory .gemini .grok .kiro"
    " .local/share/amp .local/share/crush .local/share/goose .local/share/opencode .local/state/opencode .mistral"
    " .ollama/id_ed25519 .openai .qwen .vscode-server/data/User/globalStorage .windsurf"
)
OF_MAC = (*EVERYWHERE, *_MAC, *_MAC_SPACED)
LINUX_SYSTEM = ("/run/secrets",)  # container runtimes put the cluster's tokens and passwords there
# /System/Volumes/Data is a second name of the whole disk, which no rule for the first name would match.
MAC_SYSTEM = ("/Library/Keychains", "/System/Volumes/Data", "/private/etc/master.passwd", "/private/var/db/dslocal")

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
AGENT_HOMES = {"CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex", "COPILOT_HOME": ".copilot"}
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


def touches(path: str, home: str, places: tuple[str, ...]) -> bool:
    """Whether *path*, below *home*, holds one of *places* or lies in one; each place ends with a slash."""
    inner = f"{path}/"[len(home) + 1 :] if is_within(path, home) else ""
    return bool(inner) and (inner.startswith(places) or f"\0{inner}" in "\0" + "\0".join(places))


def moved_secrets(places: Iterable[str], environment: Mapping[str, str], home: str, working: str) -> tuple[str, ...]:
    """The new paths of secret *places*. Unlike for opening, a variable may name the home, the working directory or what
    holds them: the secrets lie below it. None of these can be hidden as a whole."""
    pairs = [
        (place, path.rstrip("/"))
        for variable, place in (*VARIABLES.items(), *AGENT_HOMES.items())
        for path in environment.get(variable, "").split(":" if variable in LISTS else "\0")
        if path.startswith("/") and not is_within(path, DEVICES)
    ]
    found = dict.fromkeys(moved(places, pairs))
    return tuple(path for path in found if path and not is_within(home, path) and not is_within(working, path))


def closed_agents(named: Iterable[str], home: str) -> tuple[str, ...]:
    """The places of agents that no path of *named* opens: none lies in the place, or holds it but not the home."""
    opened = [path for path in named if not is_within(home, path)]
    places = [(name, f"{home}/{name}") for name in AGENTS]
    return tuple(
        name for name, place in places if not any(is_within(path, place) or is_within(place, path) for path in opened)
    )


def _is_followed(path: str, home: str, working: str) -> bool:
    """An absolute path that holds neither all of the home nor the working directory, and is not a device."""
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
