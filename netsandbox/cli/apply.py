"""`netsandbox apply`: brings changes that a session made in its overlay into the project."""

from __future__ import annotations

from netsandbox.backends.namespaces.overlay_apply import Application
from netsandbox.backends.namespaces.overlay_files import scan
from netsandbox.cli.changes import kept_overlays, name_here
from netsandbox.cli.help import print_help
from netsandbox.cli.progress import progress
from netsandbox.cli.terminal import notice
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import home, short
from netsandbox.policy.file_rules import is_within, path_rule
from netsandbox.policy.overlay_plan import Plan, mergeable, plan
from netsandbox.runtime.option_parser import FLAG, OVERLAYS, Option, parse
from netsandbox.runtime.written_folders import release_written, remember_written
from netsandbox.text import few, plural, printable, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.linux.kept_overlays import HeldOverlay, Overlay
    from netsandbox.backends.namespaces.overlay_files import Scan

OPTIONS = (
    Option("force", FLAG, "f", "", "replace what changed in the project meanwhile"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = OVERLAYS
USAGE = """\
usage: netsandbox apply [NAME [PATH…]] [--force]

  netsandbox apply shop            all changes of the session shop
  netsandbox apply shop src        those in the folder src

Bring the changes that a session made in its overlay into the project: all, or those at and below each PATH, as \
`netsandbox changes NAME` lists them. NAME may be left out in a folder of which one session keeps changes. The session \
must have ended.
Nothing is applied if one of the paths changed in the project since the session began. What your editor, shell or git \
runs or obeys is applied only if PATH names it itself.
Exit status: 0 when all was applied, 1 otherwise."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox apply")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    words = [*parsed.words, *(parsed.command or ())]
    kept = kept_overlays()
    held = kept.hold(words[0] if words else name_here(kept, "apply"))
    try:
        return _apply(held, words[1:], force="force" in parsed.flags)
    finally:
        held.close()


def _apply(held: HeldOverlay, words: list[str], *, force: bool) -> int:
    overlay = held.overlay
    found = scan(overlay)
    named = tuple(_inner(word, overlay, found) for word in words)
    wanted = plan(found.changes, found.trees, named, force=force)
    _refuse(wanted, overlay)
    remember_written(overlay.folder)  # the session writes there now, whatever the user trusted before
    application = Application(overlay, found.trees)
    try:
        with progress(f"applying {plural(len(wanted.steps), 'change')}"):
            application.carry_out(wanted.steps)
        left, partly = _merged(application, wanted, found)
    finally:
        application.close()
        release_written()
    done = application.done
    notice(f"{done} {'change' if done == 1 else 'changes'} applied to {single_line(short(overlay.folder))}")
    for path in wanted.special:
        notice(f"{path!a} is a socket, a pipe or a device, which is never made")
    if left:
        what = few(map(printable, left))
        notice(f"programs of this machine obey {what}; look, then name each: `netsandbox apply {overlay.name} PATH`")
    if partly:
        notice(f"the rest of {few(map(printable, partly))} is kept; `netsandbox discard {overlay.name}` removes it")
    if not left and not partly and (not named or "" in named or not scan(overlay).changes):
        held.remove()
    return 1 if left or partly else 0


def _inner(word: str, overlay: Overlay, found: Scan) -> str:
    """*word* as a path below the folder of the overlay, where a change must be."""
    path = path_rule(word, "apply", overlay.folder, home).path
    if ".." in path.split("/") or not is_within(path, overlay.folder):
        raise UsageError(f"{word!a} is not in {short(overlay.folder)!a}; write it as `netsandbox changes` shows it")
    inner = path[len(overlay.folder) + 1 :]
    if not any(not inner or is_within(change.path, inner) for change in found.changes):
        raise UsageError(f"{word!a} has no changes; `netsandbox changes {overlay.name}` lists them")
    return inner


def _refuse(wanted: Plan, overlay: Overlay) -> None:
    """Nothing is applied if one of the changes cannot be."""
    if wanted.faults:
        path, why = wanted.faults[0]
        raise NetsandboxError(f"nothing was applied: {path!a} cannot be, since {why}; name other paths, or discard it")
    if wanted.conflicts:
        path, why = wanted.conflicts[0]
        more = f", and {len(wanted.conflicts) - 1} more" if len(wanted.conflicts) > 1 else ""
        raise NetsandboxError(
            f"nothing was applied: {path!a} {why} since the session began{more}; see `netsandbox changes"
            f" {overlay.name} --diff`, then name other paths, or replace what the host has with --force"
        )


def _merged(application: Application, wanted: Plan, found: Scan) -> tuple[list[str], list[str]]:
    """Merge configuration files of git; what still must be named, and which files got only a part."""
    left, partly = list(wanted.protected), []
    for path in mergeable(wanted.protected, found.trees):
        merged = application.merge_config(path)
        if merged is None:
            continue
        if merged.refused:
            notice(f"{path!a} does not get {few(map(printable, merged.refused))}; set what you want with `git config`")
        if merged.moved:
            notice(f"{path!a} has new URLs now: {few(map(printable, merged.moved))}; check them before you push")
        left.remove(path)
        if merged.refused:
            partly.append(path)
    return left, partly
