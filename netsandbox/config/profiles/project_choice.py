"""What a file that needs trust is to us: a configuration, a profile, settings that name a registry, or a tool."""

from __future__ import annotations

import os

from netsandbox.config.paths import PROJECT_FILES
from netsandbox.config.profiles.library import Library
from netsandbox.config.profiles.profile_files import OF_PROJECTS, own
from netsandbox.config.profiles.registry_rules import looked_at, project_registries, unasked_programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def is_configuration(path: str) -> bool:
    whole = os.path.abspath(path)
    return any(whole.endswith(f"/{name}") for name in PROJECT_FILES) or is_of_profiles(path)


def is_of_profiles(path: str) -> bool:
    """Whether the file is where a project keeps profiles."""
    folder = os.path.dirname(os.path.abspath(path))
    return any(folder.endswith(f"/{place}") for place in OF_PROJECTS)


def registries_of(path: str) -> list[tuple[str, str, str]]:
    """Tool, host and place of each registry that *path* names and nobody else does."""
    wanted = os.path.realpath(path)
    return [
        (tool, host, origin)
        for tool in _tools()
        for host, file, origin in project_registries(tool, os.environ)
        if os.path.realpath(file) == wanted
    ]


def asked_by(path: str) -> list[str]:
    """The tools whose registry the program at *path* would be asked for."""
    wanted = os.path.abspath(path)
    return [tool for tool in _tools() if wanted in unasked_programs(tool, os.environ)]


def is_of_tools(path: str) -> bool:
    """Whether tools are looked for in it or have their settings there, whatever it says."""
    wanted = os.path.abspath(path)
    return any(wanted in looked_at(tool, os.environ) for tool in _tools())


def _tools() -> Iterator[str]:
    """Of all profiles that the user or we have."""
    library, told = Library(), set()
    for each in own().values():
        for tool in library.itself(each).get("registries", ()):
            if tool not in told:
                told.add(tool)
                yield tool
