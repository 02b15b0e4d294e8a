"""How many descriptors the supervisor may have: as many as the user is allowed, within reason."""

from __future__ import annotations

MOST = 65536
MAX_OF_A_MAC = 10240  # OPEN_MAX: a Mac may name no limit as the hard one and refuse more all the same


def raise_descriptor_limit() -> None:
    """A connection takes two descriptors and more; the command was started before and keeps the limit it had."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (MOST, MAX_OF_A_MAC):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, most) if hard > 0 else most, hard))
        except (OSError, ValueError):  # the lower limit still holds; doors refuse what they cannot accept
            continue
        return
