"""What `-v` says of a session on a Mac before its command runs (pure): how its ports show, its doors, its library."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.window import Window

# System Integrity Protection covers these: dyld takes the library's variable away from what lies there.
PROTECTED = ("/bin/", "/sbin/", "/usr/", "/System/")
UNPROTECTED = ("/usr/local/", "/System/Volumes/Data/")


def introduction(strategy: str, window: Window, program: str, *, opens: bool, library: bool) -> list[str]:
    """Lines for the user. *program* is the command's resolved path, empty if it is not known."""
    doors = "doors for HTTP, SOCKS5 and names on localhost, behind a token" if opens else "no doors: nothing is allowed"
    lines = [f"strategy {strategy}, window {window}; {doors}; {'with' if library else 'without'} the preload library"]
    if library and is_protected(program):
        lines.append(
            f"{program} is a program of the system: macOS starts it without the preload library, and what it starts"
            " too, but for commands of a shell (-c) and of env; servers there have ports of the window only, and"
            " programs there need the proxy variables"
        )
    return lines


def is_protected(path: str) -> bool:
    """Whether SIP keeps the library out of the program at *path*, by where it lies; it is confined all the same."""
    return path.startswith(PROTECTED) and not path.startswith(UNPROTECTED)
