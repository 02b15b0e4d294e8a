"""Which files count for a run, read and laid over one another.

the user's  <  the project's, as far as it is trusted  <  the one named by --config  <  the command line

Profiles lie between them: `netsandbox.profiles.stack` says where.
"""

from __future__ import annotations

from netsandbox.configuration.document import layer_of, read, read_layer
from netsandbox.configuration.settings import Settings, merge, settings
from netsandbox.configuration.trust import is_trusted
from netsandbox.profiles.stack import Wanted, stacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.configuration.layer import Layer

ALONE = Wanted(detect=False)


def effective(user: str | None, project: str | None, named: str | None, wanted: Wanted = ALONE) -> Settings:
    """The project's file may be written by a command: changed, it is not trusted any more."""
    stack = stacked(effective_layers(user, project, named), wanted)
    found = settings(merge(stack.layers), filter(None, (user, named, *stack.kept)))
    return Settings(
        **{
            **vars(found),
            "ignored": (*found.ignored, *stack.untrusted),
            "profiles": tuple((each.profile.name, each.why) for each in stack.used),
            "notes": stack.notes,
        }
    )


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
