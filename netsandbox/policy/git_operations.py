"""What an operation of git that is not finished would run when the host goes on with it. Pure.

`git rebase --continue` and its like obey files in folders of the git directory. Some of them can name a program:

| file | what git does with it |
|---|---|
| `rebase-merge/git-rebase-todo` | a shell runs its lines `exec …` |
| `strategy` | the name of a program, with or without a folder |
| `sequencer/opts` | settings, of which `options.strategy` is the same |

A session may begin, continue or end an operation. What it adds to these files and git would run is taken away again.
"""

from __future__ import annotations

from netsandbox.policy.git_config import parse, values

FOLDERS = ("rebase-merge", "rebase-apply", "sequencer")
TODO, STRATEGY, OPTIONS = "git-rebase-todo", "strategy", "opts"
OBEYED = (TODO, STRATEGY, OPTIONS)
STRATEGIES = ("ort", "recursive", "resolve", "octopus", "ours", "subtree")  # git's own
COMMANDS = (
    *("pick", "revert", "edit", "reword", "fixup", "squash", "drop", "label", "reset", "merge", "update-ref"),
    *("p", "e", "r", "f", "s", "d", "l", "t", "m", "u", "break", "b", "noop"),
)


def vetted(name: str, known: bytes | None, found: bytes) -> tuple[bytes | None, list[str]]:
    """The content that the file may keep, None if it should be gone, and what is taken away. *known* is its content
    before the session."""
    if found == known:
        return found, []
    if name == TODO:
        return _vetted_todo(known or b"", found)
    strategies = [found.decode("utf-8", "replace").strip()] if name == STRATEGY else _strategies(found)
    unknown = [each for each in strategies if each not in STRATEGIES]
    return (known, [f"strategy {each}" for each in unknown]) if unknown else (found, [])


def _strategies(found: bytes) -> list[str]:
    try:
        set_ = values(parse(found.decode("utf-8", "surrogateescape")))
    except ValueError:
        return ["in a file with errors"]
    return [value or "" for value in set_.get(("options", "strategy"), [])]


def _vetted_todo(known: bytes, found: bytes) -> tuple[bytes, list[str]]:
    """Lines that the host had before stay, whatever they run."""
    before = {line.strip() for line in known.split(b"\n")}
    kept, taken = [], []
    for line in found.split(b"\n"):
        is_fine = line.strip() in before or _runs_nothing(line)
        kept.append(line) if is_fine else taken.append(line.decode("utf-8", "replace").strip())
    return b"\n".join(kept), taken


def _runs_nothing(line: bytes) -> bool:
    """Whether the line is empty, a comment, or begins with a command of which git itself carries out the rest."""
    text = line.strip()
    word = text.replace(b"\t", b" ").partition(b" ")[0].decode("utf-8", "replace")
    return not text or text.startswith(b"#") or word in COMMANDS
