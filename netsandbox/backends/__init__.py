"""The backends by name. Adding one means adding its folder and its line here (README.md)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from netsandbox.backends.contract import Backend, SessionContext
    from netsandbox.policy.ip import Address

# Backend name -> its system. Each has `netsandbox.backends.NAME.backend.open_backend`.
BACKENDS = {"namespaces": "Linux", "broker": "Linux", "seatbelt": "macOS"}


AUTO = "auto"


def candidates(name: str | None) -> tuple[str, ...]:
    """The backends to try, the strongest first. *name* is the user's choice; None or `auto`: all of this system."""
    if name is not None and name != AUTO:
        return (name,)
    first = default_backend()
    return (first, *(each for each, system in BACKENDS.items() if system == BACKENDS[first] and each != first))


def default_backend() -> str:
    """The backend of this system."""
    from netsandbox import system
    from netsandbox.errors import HostError

    if system.DEFAULT_BACKEND is None:
        raise HostError("this version runs on Linux and macOS only; on other systems nothing is run unconfined")
    return system.DEFAULT_BACKEND


def open_backend(name: str, context: SessionContext) -> Backend:
    """The backend *name* for one session; only its own modules are loaded."""
    if name not in BACKENDS:
        from netsandbox.errors import HostError

        raise HostError(f"unknown backend {name!a}; use one of {', '.join(BACKENDS)}")
    made: Backend = __import__(f"netsandbox.backends.{name}.backend", fromlist=["open_backend"]).open_backend(context)
    return made


def own_addresses() -> Collection[Address]:
    """This host's addresses as they are now, for commands that explain the address guard without a session."""
    name = default_backend()
    read = __import__(f"netsandbox.backends.{name}.backend", fromlist=["own_addresses"]).own_addresses(lambda: 0.0)
    found: Collection[Address] = read()
    return found
