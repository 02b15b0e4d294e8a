"""`netsandbox completion bash | zsh | fish`: a script for the user's shell, made from the tables of options.

The scripts call `netsandbox completion --words KIND` for words that change; that form is for them only.
"""

from __future__ import annotations

from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import print_text
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, Option, parse

SHELLS = ("bash", "zsh", "fish")
ALIASES = {
    "nso": "netsandbox run online",
    "nsl": "netsandbox run localhost",
    "nsn": "netsandbox run online node",
    "nsp": "netsandbox run online python",
    "nsr": "netsandbox run online rust",
    "nsc": "netsandbox run online claude",
}
OPTIONS = (
    Option("aliases", FLAG, "", "", f"with the short commands {', '.join(ALIASES)}"),
    Option("prompt", FLAG, "", "", "show the mode in the prompt of every shell in a session, not only the first"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = SHELLS
USAGE = """\
usage: netsandbox completion bash | zsh | fish [--aliases] [--prompt]

Print a script that makes your shell complete commands, options, profiles, sessions and the hosts of the audit logs:

  bash   eval "$(netsandbox completion bash)"      in ~/.bashrc
  zsh    eval "$(netsandbox completion zsh)"       in ~/.zshrc, after compinit
  fish   netsandbox completion fish | source       in ~/.config/fish/config.fish"""


def main(arguments: list[str]) -> int:
    """The exit status."""
    if len(arguments) == 2 and arguments[0] == "--words":
        from netsandbox.shells.grammar import look_up

        for word in look_up(arguments[1]):
            print_text(word)
        return 0
    parsed = parse(arguments, OPTIONS, "netsandbox completion")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.command is not None or len(parsed.words) != 1 or parsed.words[0] not in SHELLS:
        raise UsageError(
            f"completion takes a shell; write `netsandbox completion {SHELLS[0]}`, {', '.join(SHELLS[1:])}"
        )
    print_text(script(parsed.words[0], aliases="aliases" in parsed.flags, prompt="prompt" in parsed.flags))
    return 0


def script(shell: str, *, aliases: bool, prompt: bool) -> str:
    from netsandbox.cli.grammar import grammar

    maker = __import__(f"netsandbox.shells.{shell}", fromlist=["script"])
    parts = [maker.script(grammar())]
    if aliases:
        parts.append(maker.aliases(ALIASES))
    if prompt:
        parts.append("\n" + _prompt(shell))
    return "".join(parts).rstrip("\n")


def _prompt(shell: str) -> str:
    from pathlib import Path

    from netsandbox.shells.interactive import FILES

    return Path(FILES, f"prompt.{shell}").read_text("utf-8")
