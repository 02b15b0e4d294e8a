"""Cargo: registries by name, replaced sources, and where an index keeps its crates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netsandbox.config.registries.discovery import Discovery, Setting, SettingsFile, strongest
from netsandbox.config.registries.readers import table, text_at, toml
from netsandbox.config.registries.urls import NoRule, cargo_links, pattern_of
from netsandbox.frozen import copy_with

REPLACED = "replaced"  # the key of the setting that replaces Cargo's own registry
_DEFAULT = "crates-io"  # Cargo's name of its own registry; it is not a host
_PREFIX = "cargo_registries_"
_MAX_CHAIN = 16
_MAX_PAGES = 4


def variables(discovery: Discovery) -> Iterator[Setting]:
    for name, value in discovery.variables(_PREFIX).items():
        key = name[len(_PREFIX) :].lower().replace("_", "-")
        if key.endswith("-index") and value:
            yield Setting(f"registries.{key.removesuffix('-index')}.index", value, name)


def config_toml(file: SettingsFile) -> Iterator[Setting]:
    document = toml(file.text)
    for kind, keys in (("registries", ("index",)), ("source", ("registry", "replace-with"))):
        for name, entry in table(document, kind).items():
            for key in keys:
                if text_at(entry, key):
                    yield file.setting(f"{kind}.{name}.{key}", text_at(entry, key), kind)


def select(settings: Iterable[Setting]) -> list[Setting]:
    """Named registries, and what replaces Cargo's own: for the user, and for the project beside it."""
    found = list(settings)
    named = strongest(each for each in found if each.key.startswith("registries."))
    replaced, is_default = replacement(each for each in found if not each.project)
    by_project, _ = replacement(found)
    marker = [] if is_default else [Setting(REPLACED, "", "")]
    return [*named, *replaced, *(each for each in by_project if each.project), *marker]


def replacement(settings: Iterable[Setting]) -> tuple[list[Setting], bool]:
    """What replaces Cargo's own registry (pure), and whether nothing does, so that it is used itself."""
    first: dict[str, Setting] = {}
    for each in settings:
        first.setdefault(each.key, each)
    source, project = _DEFAULT, False
    for _ in range(_MAX_CHAIN):
        other = first.get(f"source.{source}.replace-with")
        if other is None:
            break
        source, project = other.value, project or other.project
    if source == _DEFAULT:
        return [], True
    kept = [first.get(f"source.{source}.registry"), first.get(f"registries.{source}.index")]
    return [copy_with(each, project=project or each.project) for each in kept if each is not None][:1], False


def default(discovery: Discovery) -> list[Setting]:
    """Cargo has no command that prints its default registry, so Cargo is run with a search and its connection is
    observed."""
    program = discovery.trusted_program("cargo")
    if program is None:
        return []
    from tempfile import TemporaryDirectory

    from netsandbox.config.registries.query_sandbox import first_destination

    command = [program, "search", "--limit", "1", "a"]
    environment = discovery.tool_environment()
    with TemporaryDirectory(prefix="netsandbox-") as home:  # Cargo's own files were read already
        environment.update(CARGO_HOME=home, CARGO_NET_RETRY="0")
        destination = first_destination(command, environment, discovery.home, "CARGO_HTTP_PROXY")
    if destination is None:
        discovery.note_incomplete("cargo search gave no answer")
        return []
    return [Setting("default", f"sparse+https://{destination}/", "cargo search")]


def with_links(discovery: Discovery, settings: list[Setting]) -> list[Setting]:
    """Adds the hosts of the crates, which the index names. A project's index is never fetched."""
    found = list(settings)
    indexes = [each for each in settings if not each.project and each.value.startswith("sparse+https://")]
    for each in indexes[:_MAX_PAGES]:
        try:
            host = pattern_of(each.value)
        except NoRule:
            continue
        page = discovery.page(f"{each.value.removeprefix('sparse+').rstrip('/')}/config.json", "application/json")
        if page is None:
            discovery.note_incomplete(
                f"{host} could not be asked where its crates are; if elsewhere, use --allow-domain"
            )
        found += [Setting(each.key, url, f"config.json of {host}") for url in (cargo_links(page[2]) if page else ())]
    return found
