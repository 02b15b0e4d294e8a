"""The operating system that this process runs on. This is the only module that reads `sys.platform`.

Code that behaves differently between systems asks the backend first; these constants are for the rest.
"""

from __future__ import annotations

import sys

NAME = sys.platform
IS_LINUX = NAME == "linux"
IS_MACOS = NAME == "darwin"
DEFAULT_BACKEND = {"linux": "namespaces", "darwin": "seatbelt"}.get(NAME)  # None: this system has none
ORGANISATION_FILE = "/etc/netsandbox/config.toml"  # root's, for all users: what it closes no user opens
