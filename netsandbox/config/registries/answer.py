"""What is known of a tool's registries. Nothing in here holds a path or a user name of a URL: both may be secrets."""

from __future__ import annotations

from netsandbox.frozen import frozen


@frozen
class Registry:
    """One host that the tool goes to, as `--allow-domain` takes it."""

    pattern: str  # NAME:PORT
    origin: str  # file:line, a variable, or the command that was asked
    project: bool  # said by a file that the project brings along: not to be believed before the user says so


@frozen
class Answer:
    """The registries of one tool in one folder."""

    registries: tuple[Registry, ...]
    notes: tuple[str, ...]  # what was skipped and what to do about it, a line each
    consulted: tuple[tuple[str, str], ...]  # each file and variable that was looked at, and what it was then
    unasked: tuple[str, ...] = ()  # programs that a session may have put there, not asked before the user says so
    complete: bool = True  # False where a question went unanswered, so that it is worth asking again soon

    def patterns(self, *, project: bool = False) -> tuple[str, ...]:
        """The rules that follow; with *project*, those that its own files ask for as well."""
        return tuple(dict.fromkeys(each.pattern for each in self.registries if project or not each.project))
