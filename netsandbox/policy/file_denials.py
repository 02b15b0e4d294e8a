"""Files that a session was refused: which option or rule decides, and which are worth telling. Pure."""

from __future__ import annotations

from netsandbox.policy import home_paths
from netsandbox.policy.file_rules import CHANGE, READ, READING, is_within
from netsandbox.policy.reasons import NOT_LISTED, NOT_SHOWN
from netsandbox.policy.shown_files import PROTECTED, SHELL_FILES, SYSTEM_SECRETS, TOOLCHAINS
from netsandbox.text import shell_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from netsandbox.policy.file_rules import FileRules, PathRule

    class Own(Protocol):
        """As `runtime.protection.OwnPaths`."""

        @property
        def hidden(self) -> tuple[str, ...]: ...

        @property
        def read_only(self) -> tuple[str, ...]: ...


MAX_HINTED = 1024  # folders
MIN_DEPTH = 2  # names in a folder that is proposed: never `/srv` or `/home`
# Start-up files and histories of shells, and what Python keeps beside its modules: programs try these, and do without.
QUIET_NAMES = (
    *(*SHELL_FILES, ".bash_aliases", ".bash_history", ".zsh_history"),
    *(".sh_history", ".python_history", ".lesshst", ".viminfo", ".hushlogin", ".node_repl_history", ".mysql_history"),
    *(".selected_editor", ".sudo_as_admin_successful", ".psql_history", ".sqlite_history"),
)
# Logins for registries: package managers read them at each start. Without one that is needed, the command fails.
LOGINS = (
    *(".npmrc", ".yarnrc.yml", ".bunfig.toml", ".config/pnpm/rc", ".pypirc", ".netrc", "_netrc", ".gem/credentials"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".config/pypoetry/auth.toml"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".composer/auth.json", ".config/composer/auth.json"),
)
SYSTEM_STATE = ("/run", "/var")  # caches of user names, of manual pages and others
KEY_FOLDERS = (".ssh", ".gnupg/private-keys-v1.d")
KEY_NAMES = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "ssh_host_")  # how they begin, wherever they lie
KEYS_STAY = (
    "private keys stay closed; use your agent with the profile git-ssh (hosts: ~/.config/netsandbox/known_hosts) or gpg"
)
MACHINE_STAYS = "keys and passwords of this machine stay closed; run what needs them outside"
TOOLS_STAY = "your own programs there change in no session; install on the host, or into the project"
QUIET_FOLDERS = ("__pycache__", ".config/fish", ".local/share/fish")


class Advice:
    """How a user opens what a session was refused. A rule for a link that a session may have made is an error, so the
    advice is for the path where it leads: *real* follows links. *own* returns what is netsandbox's, which no rule
    opens: folders that no session sees, and paths that none writes. It is called for the first option only."""

    def __init__(self, home: str, real: Callable[[str], str], own: Callable[[], Own]) -> None:
        self._home = home
        self._find_own = own
        self._own: Own | None = None
        self._hinted: dict[tuple[str, str], str] = {}  # the first path by its option for several
        self.real = real

    def option(
        self, path: str, operation: str, reason: str = NOT_SHOWN, *, several: bool = False
    ) -> tuple[str, str] | None:
        """The option that would have allowed *operation* on *path*, and its value; None if we advise none. *several*
        paths of its folder were refused, so the folder is opened, not the file alone."""
        real = self.real(path)
        if reason == NOT_LISTED:
            return "--allow-execute", real
        if _redirects_git(real) or self.is_own(real, operation) or not_advised(real, self._home, operation):
            return None
        if operation in READING:
            return "--allow-read", opened_path(real, self._home) if several else real
        opened = opened_path(real, self._home, alone=operation == CHANGE and not several)
        holds_own = self._own is not None and any(is_within(each, opened) for each in self._own.hidden)
        return "--allow-write", real if holds_own else opened

    def hint(self, path: str, operation: str, reason: str = NOT_SHOWN) -> str | None:
        """The same as a text to paste, with `~` for the home. From the second path of a folder on it opens the
        folder."""
        wide = self.option(path, operation, reason, several=True)
        if wide is not None and len(self._hinted) < MAX_HINTED:
            self._hinted.setdefault(wide, path)
        several = wide is not None and self._hinted.get(wide, path) != path
        option = self.option(path, operation, reason, several=several)
        return None if option is None else f"{option[0]} {shell_path(option[1], self._home)}"

    def is_own(self, real: str, operation: str) -> bool:
        """Whether a real path is netsandbox's own, for this *operation*."""
        if self._own is None:
            self._own = self._find_own()
        closed = self._own.hidden if operation in READING else (*self._own.hidden, *self._own.read_only)
        return any(is_within(real, each) for each in closed)


def not_advised(real: str, home: str, operation: str = READ) -> str | None:
    """What helps instead, where no line may advise an option: for private keys, the system's secrets, and to change
    programs that the host runs. None: an option may be advised. A user who knows what he does finds the option in the
    manual."""
    name = real.rpartition("/")[2]
    is_key = name.startswith(KEY_NAMES) and not name.endswith(".pub")
    folders = [f"{home}/{folder}" for folder in KEY_FOLDERS]
    holds_keys = is_within(real, home) and real != home and any(is_within(each, real) for each in folders)
    if is_key or holds_keys or any(is_within(real, each) for each in folders):
        return KEYS_STAY
    if operation not in READING and any(is_within(real, f"{home}/{folder}") for folder in TOOLCHAINS):
        return TOOLS_STAY
    return MACHINE_STAYS if any(is_within(real, each) for each in SYSTEM_SECRETS) else None


def _redirects_git(path: str) -> bool:
    """A file that we put into git directories, so that no session makes it: git would obey another folder."""
    return "/.git/" in path and path.endswith("/commondir")


class DenyRules:
    """The rules that deny, to name the one that refused. *real* follows links."""

    def __init__(self, rules: FileRules, home: str, real: Callable[[str], str] = str) -> None:
        self._hidden = [(real(rule.path), rule_text("deny_read", rule, home)) for rule in rules.deny_read]
        self._kept = [(real(rule.path), rule_text("deny_write", rule, home)) for rule in rules.deny_write]

    def text_for(self, path: str, operation: str) -> str | None:
        """The rule that denies *operation* on *path*, which is real."""
        rules = self._hidden if operation in READING else [*self._hidden, *self._kept]
        return next((text for denied, text in rules if is_within(path, denied)), None)


def rule_text(key: str, rule: PathRule, home: str) -> str:
    """A rule as the user can find it: the option, or the key with file and line."""
    path = shell_path(rule.path, home)
    if rule.origin.startswith("--"):
        return f"{rule.origin} {path}"
    return f"{key} {path} ({shell_path(rule.origin, home)})"


def removal(rule: str) -> str:
    """What the user does so that *rule*, a `rule_text`, no longer counts."""
    return f"leave out {rule}" if rule.startswith("--") else f"remove {rule}"


def opened_path(path: str, home: str, *, alone: bool = False) -> str:
    """The path to open: the folder, where tools want its neighbours too; the file itself if it is to be opened *alone*,
    or where its folder would show too much, such as the home or a place of secrets."""
    for name in (*PROTECTED, ".git/hooks"):  # a rule for the folder around them does not open them
        before, found, _ = f"{path}/".partition(f"/{name}/")
        if found:
            return f"{before}/{name}"
    if alone or "/.git/" in path:
        return path
    folder = path.rpartition("/")[0]
    is_wide = is_within(home, folder or "/") or folder.count("/") < MIN_DEPTH
    if is_wide or is_secret(path, home) or folder in (f"{home}/.config", f"{home}/.local", f"{home}/.local/share"):
        return path
    return folder


def is_secret(path: str, home: str) -> bool:
    """Whether *path* lies in a place of secrets of this home."""
    return any(is_within(path, f"{home}/{name}") for name in (*home_paths.OF_LINUX, *home_paths.AGENTS))


def is_login(path: str, home: str) -> bool:
    """Whether package managers look for *path* at each start, and mostly do without."""
    return path in {f"{home}/{each}" for each in LOGINS}


def is_quiet(path: str, home: str, operation: str = READ, *, succeeded: bool = False) -> bool:
    """Whether a refusal of *path* is recorded but not told at the end of a session. A start-up file that a command
    wanted to write is told. *succeeded*: the command did, so it was not in need of what a program only tries."""
    folder, _, name = path.rpartition("/")
    if _redirects_git(path):
        return True
    if folder == home and name in QUIET_NAMES:
        return operation in READING or name not in SHELL_FILES
    if any(f"/{each}/" in f"{path}/" for each in QUIET_FOLDERS):
        return True
    is_tried = (
        is_login(path, home)
        or not_advised(path, home) is not None
        or any(is_within(path, each) for each in SYSTEM_STATE)
    )
    return succeeded and is_tried and (operation == READ or is_within(path, "/var/cache"))


def shell_path(path: str, home: str) -> str:
    """*path* as it can be pasted into a shell."""
    short = f"~{path[len(home) :]}" if is_within(path, home) else path
    return short if shell_quoted(short[1:] or "x") == (short[1:] or "x") else shell_quoted(path)
