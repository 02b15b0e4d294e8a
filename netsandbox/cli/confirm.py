"""A question to the user, on the terminal."""

from __future__ import annotations

import sys


def is_yes(question: str) -> bool:
    """Whether the answer is a yes; anything else, or none, is a no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
