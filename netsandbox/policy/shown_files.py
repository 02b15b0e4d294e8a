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
    *(".inputrc", ".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".tmux.conf"),
    *(".editorconfig", ".terminfo", ".fonts", ".fonts.conf", ".local/share/fonts", ".config/fontconfig"),
)
# What shells run at their start. In the private home they are empty and read-only: no session leaves one behind.
SHELL_FILES = (".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin")
# A session inside of the project may not change these: the host's programs run or obey them.
PROTECTED = (
    *(".hg/hgrc", ".vscode", ".idea", ".claude/settings.json", ".claude/settings.local.json"),
    *(".mcp.json", ".cursor", ".codex", ".gemini/settings.json", ".zed", ".devcontainer"),
    *(".envrc", ".husky", *SHELL_FILES, ".config/fish", ".netsandbox"),
)
# A session may make these where they are missing; new ones are reported at its end. CI runs the second row.
REPORTED = (
    *(".git", "HEAD", *PROTECTED),
    *(".github/workflows", ".gitlab-ci.yml", ".circleci", "Jenkinsfile", ".travis.yml", "azure-pipelines.yml"),
    *(".pre-commit-config.yaml", "lefthook.yml", ".mise.toml", "mise.toml"),
)
# A folder with one of these is a project. The nearest repository above the working folder counts, then the nearest
# workspace.
REPOSITORY_MARKS = (".git", ".hg", ".jj", ".svn")
WORKSPACE_MARKS = ("pnpm-workspace.yaml", "go.work", "lerna.json", "nx.json", "rush.json")
MANIFESTS = ("package.json", "Cargo.toml", "pyproject.toml")  # that may have a workspace (`workspaces`)
# Caches whose tool checks what it takes from them, so that all projects share what sessions add.
CHECKED_CACHES = (".npm/_cacache", ".local/share/pnpm/store")
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
