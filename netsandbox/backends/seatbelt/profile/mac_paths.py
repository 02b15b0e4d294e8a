"""The paths of macOS by purpose: toolchains, caches, files that the host runs later. Pure.

Folders of the home directory are relative to it. Nothing here is looked up: a path that does not exist costs only a
line of the profile, and one that is made later is already covered.
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.profile.sbpl_string import quoted
from netsandbox.errors import UsageError
from netsandbox.policy import shown_files
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.home_paths import MAC_SYSTEM, OF_MAC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ALIASES = ("/etc", "/tmp", "/var")  # noqa: S108 (links into /private on every Mac; Seatbelt matches what they lead to)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Installed by the user for the user: read and run, never written. Those of both systems, and those of a Mac.
MAC_TOOLCHAINS = (
    *_names(
        ".cabal .composer/vendor .config/nvm .elan .goenv .jabba .jenv .julia .local/lib .local/share/nvm"
        " .local/share/pypoetry .local/share/rtx .local/share/swiftly .local/share/virtualenvs .local/state/nix .nimble"
        " .nodenv .npm-packages .nvs .pixi .poetry .proto .pub-cache/bin .stack .swiftly .swiftpm .virtualenvs"
        " .yarn/bin .zvm Library/Developer/Toolchains Library/Java Library/Python Library/pnpm bin flutter"
    ),
    *("Library/Application Support/fnm", "Library/Application Support/pypoetry/venv"),
)
ALL_TOOLCHAINS = (*shown_files.TOOLCHAINS, *MAC_TOOLCHAINS)

# Read by git, bundler, editors and Foundation. `.gitconfig` and `.bundle/config` may hold a token, and git and bundler
# fail without them; see docs/seatbelt-profile.md.
SETTINGS = (
    *shown_files.SETTINGS,
    *_names(".CFUserTextEncoding .bundle/config .config/git"),
)

# Filled by package managers. Later projects build and run what was fetched, so a session that writes here can reach
# them; docs/seatbelt-profile.md has the switch.
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

# Read or run by the host when the user next opens a shell, logs in or starts a program (attack 150).
RUN_AT_HOME = _names(
    ".Rprofile .bash_login .bash_logout .bash_profile .bashrc .bundle/config .claude/settings.json .codex/config.toml"
    " .config/direnv .config/fish .config/git .config/nushell .config/nvim .config/opencode .config/pip"
    " .config/powershell .config/tmux .config/zsh .curlrc .cursor .direnvrc .emacs .emacs.d .gdbinit"
    " .gemini/settings.json .gemrc .gitconfig .gitignore_global .hammerspoon .hgrc .irbrc .lldbinit .local/bin"
    " .oh-my-zsh .pip .profile .pryrc .tmux.conf .vim .vimrc .vscode .wgetrc .zlogin .zlogout .zprofile .zsh .zshenv"
    " .zshrc Library/LaunchAgents Library/QuickLook Library/Scripts Library/Services bin"
)
# The same in the project: editors' tasks, direnv, agents' settings, our own file. Those of both systems, and more: a
# path that does not exist yet can be closed here. Then the folder that it lies in cannot be made either, so that names
# in folders that tools make are left out: `.config`, and `.hg`, which is looked for like `.git`.
MADE_FOLDERS = (".config/", ".github/", ".hg/", ".jj/", "mise/")
RUN_IN_PROJECT = (
    *(name for name in shown_files.PROTECTED if not name.startswith(MADE_FOLDERS)),
    *_names(".agent-os/sandbox-config.json .claude-sandbox.json .netsandbox.toml .sandbox .sandbox.toml"),
)
# In a git directory that exists when the session starts.
RUN_BY_GIT = _names("commondir config config.worktree hooks")


def toolchains(home: str) -> tuple[str, ...]:
    return below(home, ALL_TOOLCHAINS)


def below(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


def home_secrets(home: str) -> tuple[str, ...]:
    """Closed unless the user opens them."""
    return below(home, OF_MAC)


def secrets(home: str) -> tuple[str, ...]:
    """The secrets of the home and of the system; nothing opens the latter."""
    return (*home_secrets(home), *MAC_SYSTEM)


def ancestors(path: str) -> Iterator[str]:
    """The folders above *path*, nearest first, without `/`."""
    while (cut := path.rfind("/")) > 0:
        path = path[:cut]
        yield path


def above(paths: Iterable[str]) -> list[str]:
    """All folders above any of *paths*, sorted, each once."""
    return sorted({folder for path in paths for folder in ancestors(path)})


def checked(path: str, what: str) -> str:
    """*path*, if Seatbelt would see it in this spelling: absolute, normalized and with every link followed."""
    quoted(path, what)
    if not path.startswith("/"):
        raise UsageError(f"the {what} {path!a} is not absolute; write it from / on")
    if path != resolved(path):
        raise UsageError(f"the {what} {path!a} is not resolved, so no rule would match it; give {resolved(path)!a}")
    return path


def resolved(path: str) -> str:
    """Absolute, without `.`, `..`, doubled slashes and the links that every macOS has; others need the file system."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    clean = "/" + "/".join(parts)
    return f"/private{clean}" if any(is_within(clean, alias) for alias in ALIASES) else clean
