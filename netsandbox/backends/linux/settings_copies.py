"""Copies of settings files of package managers, without the credentials in them, for sessions to read.

A copy is named by what it was made from, so that it is made once for each version of the user's file.
"""

from __future__ import annotations

import os
from errno import EFBIG

from netsandbox.runtime.host_file import read_host_file
from netsandbox.runtime.private_file import digest, make_room, replace

MAX_SETTINGS = 1 << 20
MAX_COPIES = 128
VERSION = 1  # of the rules by which a copy is made


def settings_copy(real: str, name: str, folder: str) -> str:
    """The copy in *folder* of the file *real*, which its tool reads as *name*. OSError, ValueError: there is none."""
    state = os.stat(real)
    made_from = (VERSION, name, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    copy = f"{folder}/{digest(repr(made_from).encode('utf-8', 'surrogateescape'))}"
    if not os.path.isfile(copy):
        from netsandbox.policy.tool_settings import without_credentials

        data = read_host_file(real, MAX_SETTINGS + 1)
        if len(data) > MAX_SETTINGS:
            raise OSError(EFBIG, os.strerror(EFBIG))
        text = without_credentials(name, data.decode("utf-8"))
        make_room(folder, MAX_COPIES)
        replace(copy, text.encode("utf-8"))
    return copy
