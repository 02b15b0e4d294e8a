"""`netsandbox completion bash | zsh | fish`: a script for the user's shell.

The scripts call `netsandbox completion --complete WORD…` with the words of the line; that form is for them only.
"""

from __future__ import annotations

import os

from netsandbox.cli.help import ABOUT, print_help
from netsandbox.cli.terminal import print_text
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, Option, parse
from netsandbox.shells.interactive import FILES
from netsandbox.text import shell_quoted

SHELLS = ("bash", "zsh", "fish")
ALIASES = {
    "nso": "netsandbox run online",
    "nsl": "netsandbox run localhost",
    "nsn": "netsandbox run node",
    "nsp": "netsandbox run python",
    "nsr": "netsandbox run rust",
    "nsc": "netsandbox run claude",
}
OPTIONS = (
    Option("aliases", FLAG, "", "", f"with the short commands {', '.join(ALIASES)}"),
    Option("prompt", FLAG, "", "", "show the mode in the prompt of every shell in a session, not only the first"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = SHELLS
USAGE = """\
usage: netsandbox completion bash | zsh | fish [--aliases] [--prompt]

  eval "$(netsandbox completion bash)"    in ~/.bashrc
  eval "$(netsandbox completion zsh)"     in ~/.zshrc, after compinit
  netsandbox completion fish | source     in ~/.config/fish/config.fish

Print a script that makes your shell complete commands, options, profiles, sessions and the hosts of the audit logs."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    if arguments[:1] == ["--complete"] and len(arguments) > 1:
        print_text("\n".join(_offered(arguments[1:])))
        return 0
    parsed = parse(arguments, OPTIONS, "netsandbox completion")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    unknown = next((word for word in parsed.words if word not in SHELLS), None)
    if parsed.command is not None or len(parsed.words) != 1 or unknown is not None:
        what = (
            "completion takes one shell" if unknown is None else f"completion does not know the shell {unknown[:80]!a}"
        )
        raise UsageError(f"{what}; write `netsandbox completion {'`, `completion '.join(SHELLS)}`")
    print_text(script(parsed.words[0], aliases="aliases" in parsed.flags, prompt="prompt" in parsed.flags))
    return 0


def _offered(words: list[str]) -> list[str]:
    """*words* follow `netsandbox`; the last one is being typed."""
    from netsandbox.cli.grammar import command
    from netsandbox.shells.grammar import look_up
    from netsandbox.shells.offers import Offer, first_word, later_word

    if len(words) == 1:
        return first_word(words[0], ABOUT).lines()
    offer = later_word(command(words[0]), words[1:], look_up) if words[0] in ABOUT else Offer()
    return offer.lines()


def script(shell: str, *, aliases: bool, prompt: bool) -> str:
    parts = [_file(f"complete.{shell}")]
    if aliases:
        equals = " " if shell == "fish" else "="
        parts += [f"alias {name}{equals}{shell_quoted(meaning)}\n" for name, meaning in ALIASES.items()]
        if shell == "bash":  # the other shells complete what an alias stands for
            parts.append(f"complete -o bashdefault -o default -F _netsandbox_alias {' '.join(ALIASES)}\n")
    if prompt:
        parts.append(_file(f"prompt.{shell}"))
    return "\n".join(parts).rstrip("\n")


def _file(name: str) -> str:
    with open(os.path.join(FILES, name), encoding="utf-8") as file:
        return file.read()
