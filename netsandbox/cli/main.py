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
    *("run", "ps", "ports", "open", "stop", "pending", "approve", "deny", "explain", "audit", "doctor"),
    *("changes", "apply", "discard", "home", "profile", "config", "trust", "init", "learn", "completion"),
)
DESCRIPTOR_SHORTAGE = (
    b"netsandbox: too many open files, so the command was not started or has been ended; raise the limit, "
    b"for instance with `ulimit -n 1024`\n"
)


def main() -> NoReturn:
    """Run the command line and leave the process at once: the interpreter's own clean-up takes milliseconds."""
    try:
        status = dispatch(sys.argv[1:])
    except NetsandboxError as error:
        status = error.status
        from netsandbox.cli.terminal import notice

        notice(str(error))
    except (OSError, ImportError) as error:
        if not _is_descriptor_shortage(error):
            raise
        status = NetsandboxError.status
        os.write(2, DESCRIPTOR_SHORTAGE)  # without an import, which needs a descriptor
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

        print(f"netsandbox {__version__}")
        return 0
    raise UsageError(f"unknown command {name!a}; {_advice(arguments)}")


def _advice(arguments: list[str]) -> str:
    """For a program's name, how it is run; for a slip of the pen, the command that was meant."""
    import shutil

    from netsandbox.runtime.option_parser import after_dashes
    from netsandbox.text import did_you_mean

    otherwise = after_dashes("netsandbox run", arguments) if shutil.which(arguments[0]) else "see `netsandbox --help`"
    return did_you_mean(arguments[0], COMMANDS, otherwise, 0.6 if otherwise.startswith("see") else 0.8)


def _is_descriptor_shortage(error: OSError | ImportError) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return os.strerror(errno.EMFILE) in str(error)  # the dynamic loader passes on only the text


def complete_bundle() -> None:
    """Add the modules of this command to the bundle, so that the next one starts faster. `run` does so before `go`."""
    if sys.meta_path and isinstance(bundle := sys.meta_path[0], Bundle) and bundle.lacks:
        from netsandbox.runtime.bundle_writer import complete

        complete(bundle)
