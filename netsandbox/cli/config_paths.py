"""`netsandbox config list-paths | add-path | remove-path | edit`: the user's list of what sessions here may write; with
`--global` what all sessions may write, in the user's configuration file."""

from __future__ import annotations

import os
from typing import Any

from netsandbox.cli.file_notices import secrets_in
from netsandbox.cli.notices import shown_path
from netsandbox.cli.terminal import notice, print_text
from netsandbox.config.document import layer_of, read, read_layer
from netsandbox.config.effective import effective_layers
from netsandbox.config.layer import Layer
from netsandbox.config.path_list import added, paths_of, removed
from netsandbox.config.paths import USER_FILE, is_list, list_file, project_files, user_file, user_files
from netsandbox.config.toml_edit import with_items
from netsandbox.errors import HostError, UsageError
from netsandbox.paths import config_home, home
from netsandbox.policy.file_rules import is_within, path_rule
from netsandbox.runtime.private_file import replace
from netsandbox.runtime.project import find_project
from netsandbox.text import quoted, single_line

EDITOR = "vi"
WRITES = ("filesystem", "allow_write")


def run_subcommand(subcommand: str, words: list[str], *, everywhere: bool) -> int:
    """The exit status. *everywhere*: for all folders."""
    takes = subcommand in ("add-path", "remove-path")
    if len(words) != takes:
        advice = f"netsandbox config {subcommand}{' PATH' if takes else ''}"
        raise UsageError(f"config {subcommand} takes {'one path' if takes else 'nothing more'}; write `{advice}`")
    if everywhere and takes:
        add = subcommand == "add-path"
        return (_add_everywhere if add else _remove_everywhere)(_normal(words[0]))
    if everywhere:
        raise UsageError(f"--global is for add-path and remove-path; write `netsandbox config {subcommand}`")
    here = _checked_folder()
    file = list_file()
    if file is None:
        raise UsageError("the working folder does not exist any more; change to one that does")
    if subcommand == "list-paths":
        print_text("\n".join(map(single_line, _listed(here, file))))
        return 0
    if subcommand == "edit":
        return _edit(file, here)
    path = _normal(words[0])
    return _add(file, here, path) if subcommand == "add-path" else _remove(file, path)


def _checked_folder() -> str:
    """Lists exist only for folders in the user's home."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        raise UsageError("the working folder does not exist any more; change to one that does") from None
    own = os.path.realpath(home())
    if not is_within(here, own):
        raise UsageError(
            "this must be invoked from within your home directory."
            f" Current directory: {here}. Home directory: {own}; change to a folder of yours"
        )
    return here


def _normal(text: str) -> str:
    """The absolute path, without a slash at the end. Links and wildcards are resolved at the time of a run."""
    path = os.path.normpath(path_rule(text, "PATH", os.getcwd(), home).path)
    if "\n" in path or path != path.strip() or not path.isprintable() or " #" in path:
        raise UsageError(f"PATH: {quoted(path)} does not fit on one line; rename it")
    return path


def _warn(path: str) -> None:
    """What the entry will mean."""
    if not os.path.lexists(path) and not any(char in path for char in "*?"):
        notice(f"warning: {path} does not exist; the entry takes effect in sessions that start once it does")
    if secrets_in(path) == [path]:  # those in a folder stay hidden
        notice(f"warning: sessions can read and change {shown_path(path)}, which may hold secrets")


def _add(file: str, here: str, path: str) -> int:
    data = _content(file, here)
    if any(os.path.normpath(rule.path) == path for rule in paths_of(file, data, home)):
        print_text(f"{path} is listed already\nConfig file: {file}")
        return 0
    _warn(path)
    _write(file, added(data, path))
    print_text(f"Added {path}\nConfig file: {file}")
    return 0


def _remove(file: str, path: str) -> int:
    data = read(file, regular=True) if os.path.lexists(file) else b""
    found = [rule for rule in paths_of(file, data, home) if os.path.normpath(rule.path) == path]
    if not found:
        notice(f"{path} is not listed; `netsandbox config list-paths` shows what is")
        return 1
    _write(file, removed(data, {int(rule.origin.rpartition(":")[2]) for rule in found}))
    print_text(f"Removed {path}\nConfig file: {file}")
    return 0


def _add_everywhere(path: str) -> int:
    file = os.path.join(config_home(), USER_FILE)
    if path in (each for each, _ in _everywhere(file)):
        print_text(f"{path} is listed already\nConfig file: {file}")
        return 0
    text = read(file, regular=True).decode("utf-8") if os.path.lexists(file) else ""
    edited = with_items(text, *WRITES, [(path, "")])
    if edited is None:
        raise UsageError(f"{file} cannot be edited here; add {quoted(path)} to allow_write in [filesystem] yourself")
    _warn(path)
    _write(file, edited.encode("utf-8"))
    print_text(f"Added {path}\nConfig file: {file}")
    return 0


def _remove_everywhere(path: str) -> int:
    """Removes whole lines only, since the file is the user's own text."""
    file = os.path.join(config_home(), USER_FILE)
    listed = _everywhere(file)
    numbers = {number for each, number in listed if each == path}
    if not numbers:
        notice(f"{path} is not listed; `netsandbox config list-paths` shows what is")
        return 1
    lines = read(file, regular=True).decode("utf-8").split("\n")
    edited = "\n".join(line for number, line in enumerate(lines, 1) if number not in numbers).encode("utf-8")
    try:
        left = _listed_in(layer_of(file, edited))
    except UsageError:
        left = []
    if [each for each, _ in left] != [each for each, _ in listed if each != path]:
        raise UsageError(f"{file}:{min(numbers)} has more than this path; remove it there yourself")
    _write(file, edited)
    print_text(f"Removed {path}\nConfig file: {file}")
    return 0


def _everywhere(file: str) -> list[tuple[str, int]]:
    """The paths of the user's file, each with its line."""
    return _listed_in(read_layer(file)) if os.path.lexists(file) else []


def _listed_in(layer: Layer) -> list[tuple[str, int]]:
    setting = layer.values.get(WRITES)
    rules: Any = setting.value if setting is not None else ()
    return [(os.path.normpath(rule.path), int(rule.origin.rpartition(":")[2])) for rule in rules]


def _edit(file: str, here: str) -> int:
    """The file is checked after the edit, so that a mistake shows now and not at the next run."""
    import shlex
    import subprocess

    if not os.path.lexists(file):
        _write(file, _content(file, here))
    editor = os.environ.get("EDITOR") or EDITOR
    try:
        status = subprocess.call([*shlex.split(editor), file])
    except (OSError, ValueError) as error:
        raise HostError(f"cannot start the editor {quoted(editor)}: {error}; set EDITOR") from None
    if status:
        raise HostError(f"the editor {quoted(editor)} ended with status {status}; look at {file}")
    paths_of(file, read(file, regular=True), home)
    print_text(f"Config file: {file}")
    return 0


def _content(file: str, here: str) -> bytes:
    if os.path.lexists(file):
        return read(file, regular=True)
    return f"# What sessions in {single_line(here)} may write besides it, one path a line.\n".encode()


def _write(file: str, data: bytes) -> None:
    """Whole or not at all."""
    try:
        os.makedirs(os.path.dirname(file), 0o700, exist_ok=True)
        replace(file, data)
    except OSError as error:
        raise HostError(f"cannot write {file}: {error.strerror}; check {config_home()}") from None


def _listed(here: str, file: str) -> list[str]:
    layers = effective_layers(user_files(), project_files(), None)
    own = {layer.path: layer for layer in layers}
    project = find_project(here, os.path.realpath(home()))
    if project is None:
        always = "it is not a project, so nothing of it is writable"
    else:
        always = "always writable" + ("" if project.folder == here else f", as all of {project.folder}")
    lines = [f"Current directory: {here} ({always})"]
    lines += ["", f"Global paths (from {user_file() or os.path.join(config_home(), 'config.toml')}):"]
    lines += _paths(own.get(user_file() or ""))
    lines += ["", f"Per-directory paths (from {file}):", *_paths(own.get(file))]
    for layer in layers:
        if layer.path != user_file() and not is_list(layer.path) and WRITES in layer.values:
            untrusted = "" if layer.trusted else "; ignored until you run `netsandbox trust`"
            lines += ["", f"Project paths (from {layer.path}{untrusted}):", *_paths(layer)]
    return lines


def _paths(layer: Layer | None) -> list[str]:
    setting = layer.values.get(WRITES) if layer is not None else None
    return [f"  {item}" for item, _ in setting.items] if setting is not None and setting.items else ["  (none)"]
