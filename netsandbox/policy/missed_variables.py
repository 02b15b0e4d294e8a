"""Which of the withheld variables a failed command may have wanted. Pure; loaded after the command."""

from __future__ import annotations

from netsandbox.policy.variables import LOADERS, Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.policy.variables import Layer

# Passing one on would not help: the loader's are for programs of the host, and agents' sockets are not in the session.
USELESS = (*LOADERS, "SSH_*", "GPG_*")


def missed(withheld: Iterable[str], command: Iterable[str], layers: Iterable[Layer] = ()) -> list[str]:
    """Those of the *withheld* variables that a failed *command* may have wanted. Nobody sees which ones a program looks
    for, so none is left out but those that *layers* deny; those of a service that the command names, such as
    AWS_PROFILE for `aws`, come first."""
    useless = Patterns([*USELESS, *(pattern for layer in layers for pattern in layer.denied)])
    words = {word.rpartition("/")[2].lower() for word in command}
    names = [name for name in withheld if not useless.matches(name.upper().encode("ascii", "replace"))]
    return sorted(names, key=lambda name: name.partition("_")[0].lower() not in words)
