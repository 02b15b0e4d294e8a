"""Functions that create the sources of settings in the table of tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from netsandbox.config.registries.discovery import Discovery, Reader, Setting

Source = Callable[[Discovery], Iterable[Setting]]


def variable(key: str, *names: str) -> Source:
    """The first of the variables *names* that is not empty."""

    def source(discovery: Discovery) -> Iterator[Setting]:
        for name in names:
            value = discovery.variable(name)
            if value:
                yield Setting(key, value, name)
                return

    return source


def after(prefix: str, key_of: Callable[[str], str]) -> Source:
    """Each variable whose name begins with *prefix* and, after it, has a key; of two spellings the lower case first."""

    def source(discovery: Discovery) -> Iterator[Setting]:
        for name, value in sorted(discovery.variables(prefix).items(), reverse=True):
            key = key_of(name[len(prefix) :].lower())
            if value and key:
                yield Setting(key, value, name)

    return source


def files(reader: Reader, templates: str, *, nearest: bool = False) -> Source:
    """Files by their templates; `./A|B` is A or, if that cannot be read, B. *nearest*: only the first that exists."""
    listed = templates.split(", ")
    own = [template[2:].split("|") for template in listed if template.startswith("./")]
    others = [template for template in listed if not template.startswith("./")]

    def source(discovery: Discovery) -> Iterator[Setting]:
        for folder in discovery.folders_upward():
            for names in own:
                found = None
                for name in names:
                    path = os.path.join(folder, name)
                    found = discovery.settings_in(path, reader, project=True) if found is None else found
                yield from found or ()
                if nearest and found is not None:
                    return
        for template in others:
            for path in discovery.paths(template):
                yield from discovery.settings_in(path, reader) or ()

    return source


def expanded(*sources: Source) -> Source:
    """The settings of *sources* with `${VARIABLE}` replaced."""
    return lambda discovery: discovery.expanded(each for source in sources for each in source(discovery))


def first_of(first: Source, *others: Source) -> Source:
    """The settings of *first*; if it has none, those of all *others*."""
    return lambda discovery: list(first(discovery)) or [each for source in others for each in source(discovery)]


def printed_url(key: str, name: str, *arguments: str) -> Source:
    """The last line that a tool prints, if it is a URL."""
    origin = " ".join((name, *(each for each in arguments if each[:2] != "--")))

    def source(discovery: Discovery) -> list[Setting]:
        last = discovery.query(name, *arguments).rpartition("\n")[2].strip()
        return [Setting(key, last, origin)] if last.startswith(("http://", "https://")) else []

    return source
