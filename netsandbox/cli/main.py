"""The entry point: it runs one subcommand and exits with its status. Errors that a user can fix have no traceback."""

from __future__ import annotations

import errno
import os
import sys

from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.runtime.imports import Bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Each is a module beside this one, which is loaded on demand.
COMMANDS = (
    *("run", "exec", "logs", "ps", "ports", "open", "stop", "pending", "approve", "deny", "explain", "audit", "doctor"),
    *("changes", "apply", "discard", "home", "profile", "config", "trust", "init", "learn", "completion"),
    *("man", "uninstall"),
)
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DESCRIPTOR_SHORTAGE = (
    b"netsandbox: too many open files, so the command was not started or has been ended; raise the limit, "
    b"for instance with `ulimit -n 1024`\n"
)


def main() -> NoReturn:
    """Run the command line and leave the process at once: the interpreter's own clean-up takes milliseconds."""
    if sys.stdout is None:  # closed when we were started
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the end)
    try:
        status = dispatch(sys.argv[1:])
    except NetsandboxError as error:
        status = error.status
        from netsandbox.cli.terminal import notice

        notice(str(error))
    except (OSError, ImportError) as error:
        status = NetsandboxError.status
        if _is_descriptor_shortage(error):
            os.write(2, DESCRIPTOR_SHORTAGE)  # without an import, which needs a descriptor
        elif error.__class__ is OSError and error.errno in OUTPUT_ERRORS and error.filename is None:
            _report_lost_output(error)
        else:
            raise
    except KeyboardInterrupt:
        status = -2
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # closed when we were started
                stream.flush()
        except OSError:  # the reader of our output has left
            pass
    complete_bundle()
    from netsandbox.runtime.inherited import exit_with  # loaded by `run` anyway

    exit_with(status)


def dispatch(arguments: list[str]) -> int:
    """The status of one subcommand; negative for the signal that killed the user's command."""
    name = arguments[0] if arguments else "--help"
    if name in COMMANDS:
        status: int = __import__(f"netsandbox.cli.{name}", fromlist=["main"]).main(arguments[1:])
        return status
    if name == "help" and arguments[1:]:
        return dispatch([arguments[1], "--help"])
    if name in ("-h", "--help", "help"):
        from netsandbox.cli.help import print_overview

        return print_overview()
    if name in ("-V", "--version"):
        from netsandbox import __version__
        from netsandbox.cli.terminal import print_text

        print_text(f"netsandbox {__version__}")
        return 0
    if name == "--supervise":  # started by the Python API
        from netsandbox.api.supervise import main as supervise

        return supervise(arguments[1:])
    raise UsageError(f"unknown command {name!a}; {_advice(arguments)}")


def _advice(arguments: list[str]) -> str:
    """For a program's name or an option of `run`, how it is run; otherwise the command that was meant."""
    from netsandbox.paths import is_program
    from netsandbox.runtime.option_advice import VERY_NEAR, command_advice, with_dashes, written

    if is_program(arguments[0]):
        return command_advice(arguments[0], COMMANDS, with_dashes("netsandbox run", arguments, 0), VERY_NEAR)
    otherwise = "see `netsandbox --help`"
    if arguments[0].startswith("-"):
        from netsandbox.cli.run import OPTIONS

        name = arguments[0].partition("=")[0]
        if name == "--":
            return f"write `{written('netsandbox run', arguments)}`"
        if any(name in (f"--{option.name}", f"-{option.letter}") for option in OPTIONS):
            otherwise = f"it is an option of `run`: write `{written('netsandbox run', arguments)}`"
    else:
        from netsandbox.cli.run import is_profile

        if is_profile(arguments[0]):
            otherwise = f"it is a profile: write `{written('netsandbox run', arguments)}`"
    return command_advice(arguments[0], COMMANDS, otherwise)


def _report_lost_output(error: OSError) -> None:
    from netsandbox.cli.terminal import discard_stdout, notice

    discard_stdout()
    notice(f"the output cannot be written ({error.strerror}); free space, or send it elsewhere")


def _is_descriptor_shortage(error: OSError | ImportError) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return os.strerror(errno.EMFILE) in str(error)  # the dynamic loader passes on only the text


def complete_bundle() -> None:
    """Add the modules of this command to the bundle, so that the next one starts faster. `run` does so before `go`."""
    if sys.meta_path and isinstance(bundle := sys.meta_path[0], Bundle) and bundle.lacks:
        from netsandbox.runtime.bundle_writer import complete

        complete(bundle)
