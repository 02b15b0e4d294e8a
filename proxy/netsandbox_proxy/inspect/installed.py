"""Which mitmproxy is installed, found by the name of its folder: importing it would take a fifth of a second, and the
supervisor never does."""

from __future__ import annotations

import os

from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The versions that the tests were run with. The engine uses parts of mitmproxy that are not its public interface.
TESTED = ((11, 0), (12, 2))
# No release is published, so a package of this name would be a stranger's.
INSTALL = "pip install 'netsandbox[inspect]'"
_PREFIX, _SUFFIX = "mitmproxy-", ".dist-info"


def version_in(folders: Iterable[str]) -> str | None:
    """The version in the first of the *folders* that has one."""
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
                return name[len(_PREFIX) : -len(_SUFFIX)]
    return None


def check_version(version: str | None) -> None:
    """`UsageError` without mitmproxy, or with one that was not tested."""
    if version is None:
        raise UsageError(f"inspection needs mitmproxy, which is not installed here; run {INSTALL}")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers not in TESTED:
        tested = " and ".join(f"{major}.{minor}" for major, minor in TESTED)
        raise UsageError(f"mitmproxy {version} was not tested with inspection, {tested} were; run {INSTALL}")
