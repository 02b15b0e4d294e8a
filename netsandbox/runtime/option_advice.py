"""What a user meant who wrote a word that no table of options or commands knows. Loaded only for an error. Pure."""

from __future__ import annotations

from netsandbox.text import did_you_mean, shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_SHOWN = 300  # characters of a command
NEAR, VERY_NEAR = 0.7, 0.8  # of the names without dashes, which would make any two of them alike
MEANT = {  # names of other tools, and ours; where several options do it, the one that opens least
    **dict.fromkeys(("net", "network", "no-net", "no-network", "no-internet", "unshare-net"), "--offline"),
    **dict.fromkeys(
        ("allow", "allow-host", "allow-hosts", "allow-net", "allow-url", "domain", "host"), "--allow-domain"
    ),
    **dict.fromkeys(("deny", "deny-host", "block", "block-domain"), "--deny-domain"),
    **dict.fromkeys(("allow-ip", "ip", "address"), "--allow-address"),
    **dict.fromkeys(("port", "ports", "expose"), "--publish"),
    **dict.fromkeys(("read", "ro", "ro-bind", "allow-file", "allow-path"), "--allow-read"),
    **dict.fromkeys(("write", "bind", "mount", "volume"), "--allow-write"),
    **dict.fromkeys(("e", "env", "setenv", "allow-env"), "--pass-env"),
    **dict.fromkeys(("allow-all", "allow-network", "all", "unrestricted", "internet"), "--online"),
    **dict.fromkeys(("prompt", "interactive"), "--ask"),
    **dict.fromkeys(("memory", "cpus", "ulimit"), "--limit"),
    **dict.fromkeys(("log", "log-file"), "--audit-log"),
    "version": "`netsandbox --version`",
    **{name: f"`netsandbox {name}`" for name in ("init", "learn", "explain", "doctor", "ps", "ports", "stop", "trust")},
}
COMMANDS_MEANT = {
    **dict.fromkeys(("list", "status", "sessions"), "ps"),
    **dict.fromkeys(("start", "shell"), "run"),
    **{"kill": "stop", "allow": "approve", "log": "audit", "why": "explain", "check": "doctor"},
}


def option_advice(name: str, known: Iterable[str], otherwise: str, cutoff: float = NEAR) -> str:
    """The option or command that was meant by the unknown option *name*, or *otherwise*. VERY_NEAR: only what must be a
    slip of the pen."""
    bare = name.lstrip("-").lower()
    names = {each.lstrip("-"): each for each in known if each.startswith("--")}
    meant = MEANT.get(bare)
    if cutoff < VERY_NEAR and meant is not None and (meant in names.values() or meant[0] == "`"):
        return f"did you mean {meant}?"
    near = did_you_mean(bare, names, "", cutoff)
    return near.replace("mean ", "mean --", 1) if near else otherwise


def command_advice(word: str, known: Sequence[str], otherwise: str, cutoff: float = 0.6) -> str:
    """The command of ours that was meant by *word*, or *otherwise*."""
    bare = word.lstrip("-")
    meant = bare if bare in known else COMMANDS_MEANT.get(bare)
    return f"did you mean `netsandbox {meant}`?" if meant else did_you_mean(bare, known, otherwise, cutoff)


def written(command: str, words: Sequence[str]) -> str:
    """*command* and *words* as they can be pasted into a shell."""
    return single_line(" ".join([command, *map(shell_quoted, words)]), MAX_SHOWN)


def with_dashes(command: str, arguments: Sequence[str], start: int) -> str:
    """The advice to a user who forgot `--` before the word at *start*."""
    return f"to run a command write `{written(command, [*arguments[:start], '--', *arguments[start:]])}`"
