"""Which of the withheld variables a failed command may have wanted. Pure; loaded after the command."""

from __future__ import annotations

from netsandbox.policy.variables import LOADERS, Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.policy.variables import Layer

# Credentials of services and agents that shells export for good. A command fails for another reason, unless it is
# about that service.
AMBIENT = (
    *LOADERS,
    *("SSH_*", "GPG_*", "AWS_*", "AZURE_*", "VAULT_*", "DOCKER_*", "KUBE*", "GITHUB_*", "GH_*", "GITLAB_*"),
)


def missed(withheld: Iterable[str], command: Iterable[str], layers: Iterable[Layer] = ()) -> list[str]:
    """Those of the *withheld* variables that a failed *command* may have wanted: what an application reads, and the
    credentials of a service that the command names, such as AWS_PROFILE for `aws`; none that *layers* deny."""
    ambient, denied = Patterns(AMBIENT), Patterns([pattern for layer in layers for pattern in layer.denied])
    words = {word.rpartition("/")[2].lower() for word in command}
    return [
        name
        for name in withheld
        if not denied.matches(raw := name.upper().encode("ascii", "replace"))
        and (name.partition("_")[0].lower() in words or not ambient.matches(raw))
    ]
