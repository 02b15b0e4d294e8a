"""How a probe says that it did not get what it wanted, where no error number says it."""

from __future__ import annotations


class Prevented(Exception):
    """The attempt achieved nothing; the text says why, in a few words."""
