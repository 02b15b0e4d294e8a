"""Which files count for a run, read and laid over one another.

the user's  <  the project's, as far as it is trusted  <  the one named by --config  <  the command line
"""

from __future__ import annotations

from netsandbox.configuration.document import layer_of, read, read_layer
from netsandbox.configuration.settings import merge, settings
from netsandbox.configuration.trust import is_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.configuration.layer import Layer
    from netsandbox.configuration.settings import Settings


def effective(user: str | None, project: str | None, named: str | None) -> Settings:
    """The project's file may be written by a command: changed, it is not trusted any more."""
    return settings(merge(effective_layers(user, project, named)), filter(None, (user, named)))


def effective_layers(user: str | None, project: str | None, named: str | None) -> list[Layer]:
    """From the lowest to the highest."""
    found: list[Layer] = []
    if user is not None:
        found.append(layer_of(user, read(user, regular=True)))
    if project is not None:
        data = read(project, regular=True)  # once: what is judged is what is used
        layer = layer_of(project, data, trusted=is_trusted(project, data))
        found = [layer] if _stands_alone(layer) else [*found, layer]
    if named is not None:
        found.append(read_layer(named))
    return found


def _stands_alone(project: Layer) -> bool:
    """Leaving the user's own rules out is opening, which takes trust."""
    said = project.values.get(("sandbox", "inherit_global"))
    return said is not None and said.value is False and project.trusted
