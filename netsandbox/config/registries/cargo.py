"""Cargo: registries by name, replaced sources, and where an index keeps its crates."""

from __future__ import annotations

import os

from netsandbox.config.registries import toml
from netsandbox.config.registries.destination import Skipped, pattern_of
from netsandbox.config.registries.links import cargo_links
from netsandbox.config.registries.setting import Setting, settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from netsandbox.config.registries.discovery import Discovery

_DEFAULT = "crates-io"  # what Cargo calls its own registry; a name, no host
_MAX_CHAIN = 16
_MAX_PAGES = 4


def cargo(inquiry: Discovery) -> list[Setting]:
    said = [*_variables(inquiry), *_files(inquiry)]
    named = settle(each for each in said if each.key.startswith("registries."))
    trusted = [each for each in said if not each.project]
    replaced, wanted = replacement(trusted)
    by_project, _ = replacement(said)
    found = [*named, *replaced, *(each for each in by_project if each.project)]
    if wanted:
        found += _default(inquiry)
    return [*found, *_links(inquiry, found)]


def replacement(said: Iterable[Setting]) -> tuple[list[Setting], bool]:
    """What stands for Cargo's own registry (pure), and whether nothing does, so that it is used itself."""
    settings: dict[str, Setting] = {}
    for each in said:
        settings.setdefault(each.key, each)
    source, project = _DEFAULT, False
    for _ in range(_MAX_CHAIN):
        other = settings.get(f"source.{source}.replace-with")
        if other is None:
            break
        source, project = other.text, project or other.project
    if source == _DEFAULT:
        return [], True
    kept = [settings.get(f"source.{source}.registry"), settings.get(f"registries.{source}.index")]
    found = [Setting(each.key, each.text, each.origin, project or each.project) for each in kept if each is not None]
    return found[:1], False


def _variables(inquiry: Discovery) -> Iterator[Setting]:
    prefix = "cargo_registries_"
    for name, value in inquiry.variables(prefix).items():
        key = name[len(prefix) :].lower().replace("_", "-")
        if key.endswith("-index") and value:
            yield Setting(f"registries.{key.removesuffix('-index')}.index", value, name, project=False)


def _files(inquiry: Discovery) -> Iterator[Setting]:
    """From the folder upward, and Cargo's own home; without a suffix is the older spelling, and it wins."""
    home = inquiry.variable("CARGO_HOME") or os.path.join(inquiry.home, ".cargo")
    for folder in inquiry.upward():
        for name in ("config", "config.toml"):
            yield from _settings(inquiry, os.path.join(folder, ".cargo", name), project=True)
    for folder in dict.fromkeys((os.path.join(inquiry.home, ".cargo"), home)):
        for name in ("config", "config.toml"):
            yield from _settings(inquiry, os.path.join(folder, name), project=False)


def _settings(inquiry: Discovery, path: str, *, project: bool) -> Iterator[Setting]:
    found = inquiry.toml(path, project=project)
    if found is None:
        return
    text, document = found
    for kind, keys in (("registries", ("index",)), ("source", ("registry", "replace-with"))):
        for name, table in toml.table(document, kind).items():
            for key in keys:
                if toml.word(table, key):
                    yield text.said(f"{kind}.{name}.{key}", toml.word(table, key), kind)


def _default(inquiry: Discovery) -> list[Setting]:
    """Cargo has no command that says it; it is overheard when it looks something up."""
    program = inquiry.asked_program("cargo")
    if program is None:
        return []
    from tempfile import TemporaryDirectory

    from netsandbox.config.registries.observed_connection import first_destination

    command = [program, "search", "--limit", "1", "a"]
    environment = inquiry.tool_environment()
    with TemporaryDirectory(prefix="netsandbox-") as home:  # Cargo's own files say what was read already
        environment.update(CARGO_HOME=home, CARGO_NET_RETRY="0")
        place = first_destination(command, environment, inquiry.home, "CARGO_HTTP_PROXY")
    if place is None:
        inquiry.unanswered("cargo search gave no answer")
        return []
    return [Setting("default", f"sparse+https://{place}/", "cargo search", project=False)]


def _links(inquiry: Discovery, found: list[Setting]) -> Iterator[Setting]:
    """Where the crates are, as the index says; a project's index is never asked."""
    asked = [each for each in found if not each.project and each.text.startswith("sparse+https://")]
    for each in asked[:_MAX_PAGES]:
        try:
            host = pattern_of(each.text)
        except Skipped:
            continue
        page = inquiry.page(f"{each.text.removeprefix('sparse+').rstrip('/')}/config.json", "application/json")
        if page is None:
            inquiry.unanswered(f"{host} could not be asked where its crates are; if elsewhere, use --allow-domain")
        for url in cargo_links(page[2]) if page else ():
            yield Setting(each.key, url, f"config.json of {host}", project=False)
