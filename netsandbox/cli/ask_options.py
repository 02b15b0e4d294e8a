"""The options about asking the user: `--ask`, `--mode`, `--ask-wait`, and `[approvals]` of files. Pure."""

from __future__ import annotations

from netsandbox.cli.run_options import DYNAMIC, STATIC
from netsandbox.config.readers import waiting
from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import PROJECT
from netsandbox.settings import WAIT
from netsandbox.system import IS_MACOS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.config.file_settings import FileSettings
    from netsandbox.runtime.option_parser import Parsed


def asked(
    parsed: Parsed, file: FileSettings | None, mode: str | None, files_mode: str
) -> tuple[int | None, int | None]:
    """How many seconds a question about a name, and one about a file, waits; None: the user is not asked.

    The option --ask also applies in a closed *mode*; the setting of a file does not open one. Files are asked about in
    the mode `project`; elsewhere a session sees all but secrets.
    """
    wanted = _wanted(parsed)
    waits = not IS_MACOS and parsed.values.get("backend") != "seatbelt"
    if parsed.values.get("mode") == DYNAMIC and not waits:
        raise UsageError("--mode dynamic: files cannot wait for an answer on macOS; --ask asks about names there")
    names = file is not None and file.ask and mode in (None, "filtered") if wanted is None else wanted
    files = file is not None and file.ask_files if wanted is None else wanted
    files = files and waits and files_mode == PROJECT
    if wanted and mode == "online":
        if not files:
            raise UsageError("the session is online, so --ask has nothing to ask about; leave one of them out")
        names = False
    if "ask-wait" not in parsed.values:
        wait = file.ask_wait if file else WAIT
    elif names or files:
        wait = waiting(parsed.values["ask-wait"], "--ask-wait")
    else:
        raise UsageError("--ask-wait has no meaning where nobody is asked; add --ask, or leave it out")
    return wait if names else None, wait if files else None


def _wanted(parsed: Parsed) -> bool | None:
    """What the command line says; None: nothing."""
    mode = parsed.values.get("mode")
    if mode not in (None, DYNAMIC, STATIC):
        raise UsageError(f"--mode {mode[:80]!a} is unknown; use {DYNAMIC}, which asks you, or {STATIC}, the default")
    if "ask" in parsed.flags and mode == STATIC:
        raise UsageError("--ask and --mode static exclude each other; choose one")
    return None if mode is None and "ask" not in parsed.flags else mode != STATIC
