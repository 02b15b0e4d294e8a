"""How often a test repeats what chance decides: seldom in `make test`, often in `make soak`."""

from __future__ import annotations

import os

SOAK = "NETSANDBOX_SOAK" in os.environ


def repeated(seldom: int, often: int) -> int:
    return often if SOAK else seldom
