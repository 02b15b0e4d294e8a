"""The settings files of npm that a command would read: npm may have CAs of its own there, which replace all others.

npm is not asked, since that takes longer than the session's start. A file that cannot be read counts as empty; npm then
refuses the inspected hosts, with a message of its own.
"""

from __future__ import annotations

import os

from netsandbox.runtime.host_file import read_host_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def npm_settings(environment: Mapping[bytes, bytes], folder: bytes) -> bytes:
    """The text of the files for a command with these variables that runs in *folder*."""
    found = []
    for path in _files(environment, folder):
        try:
            found.append(read_host_file(path))
        except (OSError, ValueError):
            continue
    return b"\n".join(found)


def _files(environment: Mapping[bytes, bytes], folder: bytes) -> Iterator[bytes]:
    options = {name.lower(): value for name, value in environment.items()}  # npm takes its own in any case of letters
    yield options.get(b"npm_config_userconfig") or environment.get(b"HOME", b"") + b"/.npmrc"
    prefix = options.get(b"npm_config_prefix") or environment.get(b"PREFIX") or _above_node(environment)
    yield options.get(b"npm_config_globalconfig") or prefix + b"/etc/npmrc"
    while folder != b"/":  # npm looks for its project in the folders above
        yield folder + b"/.npmrc"
        folder = os.path.dirname(folder)


def _above_node(environment: Mapping[bytes, bytes]) -> bytes:
    for folder in environment.get(b"PATH", b"").split(b":"):
        if os.path.isfile(folder + b"/node"):
            return os.path.dirname(os.path.dirname(os.path.realpath(folder + b"/node")))
    return b"/usr"
