"""`netsandbox changes`: what sessions with `--overlay` changed, before any of it reaches the project."""

from __future__ import annotations

import difflib
import json
import time

from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.backends.namespaces.overlay_files import content, scan
from netsandbox.cli.help import print_help
from netsandbox.cli.progress import progress
from netsandbox.cli.terminal import notice, print_text, terminal_width
from netsandbox.errors import UsageError
from netsandbox.paths import short, state_home, working_folder
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.overlay_changes import FILE, FOLDER, LINK, OTHER, REMOVED, folded, grouped
from netsandbox.policy.overlay_plan import conflict, with_roots
from netsandbox.runtime.option_parser import FLAG, OVERLAYS, Option, parse
from netsandbox.system import IS_MACOS
from netsandbox.text import columns, plural, printable, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.backends.linux.kept_overlays import Overlay
    from netsandbox.backends.namespaces.overlay_files import Scan
    from netsandbox.policy.overlay_changes import Change

OPTIONS = (
    Option("diff", FLAG, "", "", "show the lines that changed"),
    Option("json", FLAG, "", "", "for programs"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = OVERLAYS
USAGE = """\
usage: netsandbox changes [NAME] [--diff] [--json]

  netsandbox changes shop --diff

List the sessions that keep changes, or the changes of one: `netsandbox run --overlay` makes them. NAME is the name of \
the session; --diff needs none in a folder of which one session keeps changes. `netsandbox apply` brings the changes \
into the project."""
MAX_COMPARED = 1 << 19  # bytes of a file whose lines are shown


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox changes")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    words = [*parsed.words, *(parsed.command or ())]
    kept, as_json = kept_overlays(), "json" in parsed.flags
    if len(words) > 1:
        raise UsageError("changes takes the name of one session; `netsandbox changes` lists them")
    if not words and "diff" not in parsed.flags:
        return _list(kept, as_json=as_json)
    overlay = kept.load(words[0] if words else name_here(kept, "changes --diff"))
    with progress("looking for changes"):
        found = scan(overlay)
    if as_json:
        print_text(json.dumps(_document(overlay, found, running=kept.is_running(overlay.name)), indent=2))
    elif "diff" in parsed.flags:
        print_text("\n".join(line for change in folded(found.changes) for line in _difference(overlay, found, change)))
    elif found.changes:
        rows = [("CHANGE", "PATH", "NOTE"), *_rows(found)]
        print_text("\n".join(columns(rows, width=terminal_width(), yielding=((1, 20),))))
    else:
        notice(f"{overlay.name} keeps no changes of {single_line(short(overlay.folder))}")
    return 0


def kept_overlays() -> KeptOverlays:
    if IS_MACOS:
        raise UsageError("a session on a Mac has no overlay; it writes where the rules allow it")
    return KeptOverlays(state_home())


def name_here(kept: KeptOverlays, command: str) -> str:
    """The name of the only session that keeps changes of the working folder, or of a folder around it."""
    here = working_folder() or "/"
    names = [name for name in kept.names() if is_within(here, kept.load(name).folder)]
    if len(names) == 1:
        return names[0]
    which = f"it is one of {', '.join(names[:20])}" if names else "`netsandbox changes` lists them"
    raise UsageError(f"{command} needs the NAME of a session here; {which}")


def _list(kept: KeptOverlays, *, as_json: bool) -> int:
    overlays = [(kept.load(name), kept.is_running(name)) for name in kept.names()]
    if as_json:
        rows = [
            {"name": each.name, "folder": each.folder, "since": each.since / 1e9, "running": running}
            for each, running in overlays
        ]
        print_text(json.dumps({"v": 1, "overlays": rows}, indent=2))
    elif overlays:
        lines = [("NAME", "FOLDER", "SINCE", "STATE"), *(_row(*each) for each in overlays)]
        print_text("\n".join(columns(lines, width=terminal_width(), yielding=((1, 20),))))
    else:
        notice("no session keeps changes; `netsandbox run --overlay -- CMD` makes one that does")
    return 0


def _row(overlay: Overlay, running: bool) -> tuple[str, ...]:  # noqa: FBT001 (private, one caller)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(overlay.since / 1e9))
    return overlay.name, single_line(short(overlay.folder)), when, "running" if running else "kept"


def _rows(found: Scan) -> Iterator[tuple[str, ...]]:
    roots = dict(with_roots(found.changes, found.trees))
    notes = {change.path: "; ".join(_notes(found, change, root)) for change, root in roots.items()}
    for change, files in grouped(found.changes, notes):
        node = found.trees.upper.get(change.path)
        target = f" -> {printable(node.target)}" if node is not None and node.kind == LINK else ""
        slash = "/" if change.kind == FOLDER else ""
        held = plural(files, "file") if files else ""
        note = "; ".join(filter(None, (held, notes[change.path])))
        yield change.action, f"{printable(change.path)}{slash}{target}", note


def _notes(found: Scan, change: Change, root: str | None) -> Iterator[str]:
    node = found.trees.upper.get(change.path)
    if node is not None and node.fault:
        yield node.fault
    if change.kind == OTHER and change.action != REMOVED:
        yield "never applied"
    why = conflict(change, found.trees)
    if why is not None:
        yield why
    if root is not None:
        yield f"protected, name {printable(root)}"


def _document(overlay: Overlay, found: Scan, *, running: bool) -> dict[str, object]:
    roots = dict(with_roots(found.changes, found.trees))
    rows = [
        {
            "path": change.path,
            "change": change.action,
            "kind": change.kind,
            "protected": roots[change],
            "conflict": conflict(change, found.trees),
        }
        for change in found.changes
    ]
    return {"v": 1, "name": overlay.name, "folder": overlay.folder, "running": running, "changes": rows}


def _difference(overlay: Overlay, found: Scan, change: Change) -> list[str]:
    """The changed lines of a text; one line about anything else. All is escaped that a terminal would obey."""
    old, new = (
        content(root, change.path, MAX_COMPARED) if change.path in tree and tree[change.path].kind == FILE else b""
        for root, tree in ((overlay.folder, found.trees.host), (overlay.data, found.trees.upper))
    )
    name = printable(change.path)
    if change.kind != FILE or old is None or new is None or b"\0" in old + new or old == new:
        return [f"{change.action} {change.kind} {name}"]
    before, after = (text.decode("utf-8", "backslashreplace").splitlines() for text in (old, new))
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
    return ["\t".join(map(printable, line.split("\t"))) for line in lines]
