"""Which mitmproxy is installed, found by the name of its folder: importing it would take a fifth of a second, and the
supervisor never does."""

from __future__ import annotations

import os
import sys

from netsandbox.errors import UsageError
from netsandbox.text import shell_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The versions that the tests were run with. The engine uses parts of mitmproxy that are not its public interface.
# The extra `inspect` in pyproject.toml has the same: a test compares them.
TESTED = ((11, 0), (12, 2))
NEWER_SINCE = (3, 12)  # the version of Python that takes the second one
_PREFIX, _SUFFIX = "mitmproxy-", ".dist-info"


def requirement(python: tuple[int, ...]) -> str:
    """The mitmproxy that was tested with this version of *python*, as pip takes it."""
    major, minor = TESTED[python[:2] >= NEWER_SINCE]
    return f"mitmproxy>={major}.{minor},<{major}.{minor + 1}"


# It does not name netsandbox: no release is published, so a package of that name would be a stranger's.
INSTALL = f"{shell_quoted(sys.executable or 'python3')} -m pip install '{requirement(sys.version_info[:2])}'"


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
