"""The files of the host that a session in the mode `project` sees: the tables, for both systems. Pure.

The home of such a session is private. Toolchains and settings are shown in it read-only where they exist, so that
programs run as on the host; what is not listed here is not there (INV-12). Each entry was found by running the tool in
such a view (docs/files.md).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Read-only, as far as they exist. A symbolic link among them stays a link.
LINUX_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/sys"),
    *("/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/var/guix/profiles", "/home/linuxbrew/.linuxbrew", "/snap"),
    *("/run/current-system", "/run/wrappers", "/run/opengl-driver"),  # NixOS
    *("/var/lib/dpkg", "/var/lib/gems", "/var/lib/texmf", "/var/lib/ghc", "/var/lib/xkb", "/var/lib/alternatives"),
    *("/var/lib/dictionaries-common", "/var/lib/rpm", "/var/lib/pacman", "/var/cache/fontconfig", "/var/cache/man"),
)
# Secrets of the host in /etc. Most can be read by root only, so they matter for sessions of root.
SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd", "/etc/krb5.keytab"),
    *("/etc/rancher", "/etc/kubernetes", "/etc/openvpn", "/etc/wireguard", "/etc/NetworkManager/system-connections"),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/etc/ssl/private", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/docker", "/etc/ppp", "/etc/netplan", "/etc/wpa_supplicant", "/etc/letsencrypt", "/etc/netsandbox"),
)

# Below the home, read-only.
TOOLCHAINS = (
    *(".nvm", ".fnm", ".local/share/fnm", ".volta", ".asdf", ".local/share/mise", ".n"),
    *(".npm-global", ".local/share/pnpm", ".bun/bin", ".deno/bin", ".local/share/fnm_multishells"),
    *(".pyenv", ".local/pipx", ".local/share/pipx", ".local/share/uv/python", ".local/share/uv/tools", ".local/bin"),
    *("miniconda3", "miniforge3", "micromamba", "anaconda3", ".conda/envs"),
    *(".rustup", ".cargo/bin", ".cargo/env", ".cargo/config.toml", "go/bin", "sdk", ".config/go/env"),
    *(".sdkman", ".jdks", ".gradle/init.d", ".rbenv", ".rvm", ".gem/ruby", ".gem/bin", ".local/share/gem", ".dotnet"),
    *(".ghcup", ".opam", ".nix-profile", ".guix-profile"),
)
# Of TOOLCHAINS, with the variables that move them: uvx and pipx lock and write what the host has installed there, even
# to run something else. A session changes a copy, which goes with it: what it made of a tool runs in no later one.
TOOL_HOMES = (".local/share/uv/tools", ".local/pipx", ".local/share/pipx")
TOOL_HOME_VARIABLES = ("UV_TOOL_DIR", "PIPX_HOME")
# Of these the names of versions differ, so that the folder is listed.
TOOLCHAIN_FOLDERS = ((".local/lib", "python"),)
# Variables that move folders of TOOLCHAINS. One that names too much opens nothing.
VARIABLES = (
    *("NVM_DIR", "FNM_DIR", "VOLTA_HOME", "ASDF_DATA_DIR", "MISE_DATA_DIR", "N_PREFIX", "PNPM_HOME"),
    *("npm_config_prefix", "NPM_CONFIG_PREFIX", "PYENV_ROOT", "PIPX_HOME", "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR"),
    *("CONDA_PREFIX", "MAMBA_ROOT_PREFIX", "VIRTUAL_ENV", "RUSTUP_HOME", "GOROOT", "SDKMAN_DIR", "JAVA_HOME"),
    *("RBENV_ROOT", "GEM_HOME", "DOTNET_ROOT"),
)
# Below folders that a variable moves, for those of which only a part is shown.
MOVED_PARTS = {
    "BUN_INSTALL": ("bin",),
    "DENO_INSTALL": ("bin",),
    "CARGO_HOME": ("bin", "env", "config.toml"),
    "GOPATH": ("bin",),
}
# Plain settings. Start-up files of shells are left out: they often export keys.
SETTINGS = (
    *(".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".gitignore"),
    *(".gitignore_global", ".stCommitMsg"),
    *(".inputrc", ".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".tmux.conf"),
    *(".editorconfig", ".terminfo", ".fonts", ".fonts.conf", ".local/share/fonts", ".config/fontconfig"),
)
GIT_CONFIGURATIONS = (".gitconfig", ".config/git/config")  # of SETTINGS; they name other files (`git_settings`)
# Settings of package managers, shown without the credentials in them (`tool_settings`). A variable may move `.config`.
TOOL_SETTINGS = (
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".bunfig.toml", ".pip/pip.conf", ".gemrc", ".bundle/config"),
    *(".config/pip/pip.conf", ".config/uv/uv.toml", ".config/pnpm/rc", ".config/pnpm/config.yaml"),
    *(".config/pypoetry/config.toml", ".config/pdm/config.toml"),
)
# What shells run at their start and end. In the private home these are empty and read-only: no session leaves one
# behind.
SHELL_FILES = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"),
    *(".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout"),
    *(".config/fish/config.fish", ".config/nushell/config.nu", ".config/nushell/env.nu", ".config/nushell/login.nu"),
)
SHELL_FOLDERS = (".config/fish/conf.d", ".config/nushell/autoload")  # every file in them is run
# What programs of the host run or obey in a project without being asked, by who does: one table for the views of all
# backends, `apply`, the end of a session and doctor. A session changes none of it, and what it makes by a name that was
# missing is taken out of the project when it ends (`held_names`).
OBEYED = {
    "version control": (".hg/hgrc", ".jj/repo/config.toml"),
    "editors": (
        *(".vscode", ".idea", ".zed", ".fleet", ".helix", ".devcontainer", ".devcontainer.json"),
        *(".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el"),
    ),
    "agents": (
        *(".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".codex", ".cursor", ".windsurf"),
        *(".gemini/settings.json", ".gemini/.env", ".gemini/extensions", ".qwen/settings.json", ".qwen/.env"),
        *(".opencode", "opencode.json", "opencode.jsonc", ".github/hooks", ".aider.conf.yml"),
        *(".continue", ".continuerc.json", ".roo/mcp.json", ".kiro", ".amazonq", ".crush.json", "crush.json"),
    ),
    "shells": (*(name for name in SHELL_FILES if "/" not in name), ".config/fish", ".config/nushell"),
    "direnv and mise": (
        *(".envrc", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml"),
        *("mise/config.toml", ".mise/config.toml", ".config/mise.toml", ".config/mise"),
    ),
    "husky": (".husky",),
    "netsandbox": (".netsandbox",),
}
PROTECTED = tuple(name for names in OBEYED.values() for name in names)
# What others run: CI, and tools that the user calls. A session may make these; its end names those that are new.
REPORTED = (
    *(".git", "HEAD"),
    *(".github/workflows", ".gitlab-ci.yml", ".circleci", "Jenkinsfile", ".travis.yml", "azure-pipelines.yml"),
    *(".pre-commit-config.yaml", "lefthook.yml", ".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", ".cargo/config.toml"),
)
# A folder with one of these is a project. The nearest repository above the working folder counts, then the nearest
# workspace.
REPOSITORY_MARKS = (".git", ".hg", ".jj", ".svn")
WORKSPACE_MARKS = ("pnpm-workspace.yaml", "go.work", "lerna.json", "nx.json", "rush.json")
MANIFESTS = ("package.json", "Cargo.toml", "pyproject.toml")  # that may have a workspace (`workspaces`)
# Settings of agents that hold commands beside harmless values: a session changes a copy (`agent_settings`).
AGENT_FILES = (".claude.json",)
# Of the session's own.
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
# What /dev has.
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = (
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("pts/ptmx", "/dev/ptmx"),
)
# Folders that a tool writes, by variable; outside of the home they are private too.
MOVED_HOMES = (
    *("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CARGO_HOME", "GOPATH", "BUN_INSTALL"),
    *("GRADLE_USER_HOME", "DENO_DIR", "npm_config_cache", "NPM_CONFIG_CACHE", "GOCACHE", "GOMODCACHE", "PIP_CACHE_DIR"),
    *("UV_CACHE_DIR", "YARN_CACHE_FOLDER", "POETRY_CACHE_DIR"),
)
# Folders that hold other things than one toolchain.
SHARED_FOLDERS = (
    *("/home", "/tmp", "/var", "/var/tmp", "/run", "/srv", "/mnt", "/media", "/data", "/root", "/usr", "/etc"),  # noqa: S108
)
# Variables that name sockets and folders of the host, which the session does not see.
HOST_VARIABLES = (
    *("TMUX", "TMUX_PANE", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO", "EMACS_SOCKET_NAME"),
)


def moved_toolchains(environment: Mapping[str, str]) -> list[str]:
    """The toolchain folders that *environment* names; the caller leaves out those that name too much."""
    whole = [environment[name] for name in VARIABLES if environment.get(name)]
    parts = [
        f"{folder}/{part}"
        for name, names in MOVED_PARTS.items()
        for folder in environment.get(name, "").split(":")
        if folder
        for part in names
    ]
    return [path for path in (*whole, *parts) if path.startswith("/")]


def prefix_of(folder: str, home: str) -> str:
    """The tree that a folder of programs belongs to: `X` for `X/bin`, unless `X` holds other things too."""
    above, _, name = folder.rpartition("/")
    whole = name in ("bin", "sbin", "Scripts") and above not in (home, f"{home}/.local", "", *SHARED_FOLDERS)
    return above if whole else folder


def packages_of(program: str) -> str | None:
    """The folder of packages that a program of node lies in: it loads those beside it."""
    above, found, _ = program.partition("/node_modules/")
    return f"{above}/node_modules" if found else None
