"""The rules for files of options and configuration, together. Loaded where there is such an option or a file."""

from __future__ import annotations

from netsandbox.cli.run_options import PATH_OPTIONS, check_bound
from netsandbox.config.file_settings import FileSettings
from netsandbox.errors import UsageError
from netsandbox.paths import home, working_folder
from netsandbox.policy.file_rules import FILE_MODES, FileRules, path_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.file_rules import PathRule
    from netsandbox.runtime.option_parser import Parsed


def file_rules(parsed: Parsed, file: FileSettings | None) -> FileRules:
    """Lists add up; the mode of the command line wins."""
    read, write, rw, hide, blacklist, keep = (_path_rules(parsed, name) for name in PATH_OPTIONS)
    known = file or FileSettings()
    mode = parsed.values.get("files", known.files_mode)
    if mode not in FILE_MODES:
        raise UsageError(f"--files: {mode!a} is not a mode of files; write one of {', '.join(FILE_MODES)}")
    check_bound(known, "files_mode", mode, "--files")
    return FileRules(
        (*known.allow_read, *read),
        (*known.allow_write, *write, *rw),
        (*known.deny_read, *hide, *blacklist),
        known.allow_execute,
        (*known.deny_write, *keep),
        known.caches,
        known.copies,
        mode,
        known.share_tmp or "share-tmp" in parsed.flags,
        "fresh-home" in parsed.flags,
    )


def _path_rules(parsed: Parsed, name: str) -> tuple[PathRule, ...]:
    texts = parsed.all(name)
    return tuple(path_rule(text, f"--{name}", _working_folder(), home) for text in texts)


def _working_folder() -> str:
    folder = working_folder()
    if folder is None:
        raise UsageError("the working folder does not exist any more; change to one that does")
    return folder
