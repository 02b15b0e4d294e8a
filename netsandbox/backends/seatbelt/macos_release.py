"""Which macOS this is, by the number of its kernel (pure): uname(3) costs nothing and no variable changes it."""

from __future__ import annotations

from netsandbox.errors import HostError

LEAST_DARWIN = 20  # macOS 11


def macos_version(darwin: str) -> str | None:
    """The macOS with the kernel release *darwin*, such as 24 for 24.6.0; None if that is no such number."""
    major = darwin.partition(".")[0]
    if not (major.isascii() and major.isdigit() and len(major) < 4):
        return None
    number = int(major)
    if number < LEAST_DARWIN:
        return f"10.{number - 4}" if number > 4 else None
    return str(number - 9 if number < 25 else number + 1)  # 15 was followed by 26


def check_release(darwin: str) -> None:
    """An error for a macOS that is too old. A newer one than we know may do: whether the profile holds is tried."""
    version = macos_version(darwin)
    if version is not None and version.startswith("10."):
        raise HostError(f"this is macOS {version}, and a session needs macOS 11 or newer; nothing was run")
