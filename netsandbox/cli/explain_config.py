"""`netsandbox explain` without a host: the whole policy and configuration here, each value with its origin."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.cli.notices import withheld_names
from netsandbox.cli.policy_text import (
    labelled,
    policy_json,
    policy_lines,
    profile_json,
    profile_lines,
    without_password,
)
from netsandbox.cli.run_options import command_mode
from netsandbox.config.effective import effective_layers
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.layer import Layer
from netsandbox.config.merging import merge
from netsandbox.config.paths import organisation_files, project_files, user_files
from netsandbox.config.profiles.selection import ProfileRequest, select_profiles
from netsandbox.frozen import frozen
from netsandbox.paths import LOG_NAME, sessions_dir
from netsandbox.policy.policy import Policy
from netsandbox.runtime.option_parser import Parsed
from netsandbox.settings import RunSettings
from netsandbox.text import printable

# Values that `policy_lines` already shows with their origin, except empty lists.
SHOWN = (
    *(("network", "allow_domains"), ("network", "deny_domains"), ("network", "allow_addresses")),
    ("network", "budgets"),
    *(("filesystem", "allow_read"), ("filesystem", "allow_write"), ("filesystem", "cache"), ("filesystem", "copy")),
    *(("filesystem", "deny_read"), ("filesystem", "deny_write"), ("network", "secrets")),
)
PROXY = ("network", "upstream_proxy")
ORGANISATION, YOURS, PROJECTS, NAMED = "the organisation's", "yours", "the project's", "named by --config"


@frozen
class FileRead:
    """A configuration file that was read. `ignored`: the settings that need trust, each with its line."""

    path: str
    owner: str
    trusted: bool
    ignored: tuple[tuple[str, str], ...]


@frozen
class SourcedSetting:
    """One value of a file or a profile, and its file and line."""

    key: str
    value: object
    origin: str


def config_lines(parsed: Parsed, file: FileSettings | None, policy: Policy, settings: RunSettings) -> list[str]:
    """For people."""
    read, sourced = _files_and_settings(parsed)
    return [
        *labelled("file", [line for each in read for line in _file_lines(each)] or ["there is no configuration file"]),
        *profile_lines(file),
        *policy_lines(policy, settings, withheld_names(settings)),
        *labelled("localhost", _localhost(settings.localhost)),
        *labelled("log", [settings.audit_log or os.path.join(sessions_dir(), "SESSION", LOG_NAME)]),
        *labelled("setting", [_setting_line(each) for each in sourced]),
    ]


def config_json(parsed: Parsed, file: FileSettings | None, policy: Policy, settings: RunSettings) -> dict[str, object]:
    """The same for programs."""
    read, sourced = _files_and_settings(parsed)
    return {
        **policy_json(policy, settings, withheld_names(settings)),
        **profile_json(file),
        "configuration": [{**vars(each), "ignored": [list(pair) for pair in each.ignored]} for each in read],
        "localhost": {**vars(settings.localhost), "connect_host": [*map(str, settings.localhost.connect_host)]},
        "settings": [vars(each) for each in sourced],
    }


def rules_to_trust(file: FileSettings) -> list[tuple[str, str]]:
    """Each host that a file would allow once it is trusted, and `FILE:PLACE`."""
    rules = list(file.ignored)  # hosts of a tool's file; of a configuration file the names of its settings
    for layer in effective_layers((), project_files(), None):
        setting = None if layer.trusted else layer.values.get(SHOWN[0])
        rules += [(str(text), origin) for text, origin in setting.written] if setting is not None else []
    return rules


def _files_and_settings(parsed: Parsed) -> tuple[list[FileRead], list[SourcedSetting]]:
    alone = "no-config" in parsed.flags
    user, project = (organisation_files(), ()) if alone else (user_files(), project_files())
    layers = effective_layers(user, project, parsed.values.get("config"))
    names = tuple(parsed.all("profile"))
    mode = command_mode(parsed)[0]
    wanted = ProfileRequest(names, not alone and "no-detect" not in parsed.flags, mode, query_tools=False)
    merged = merge(select_profiles(layers, wanted).layers)
    sourced = [
        SourcedSetting(".".join(place), without_password(str(item)) if place == PROXY else item, origin)
        for place, value in merged.values.items()
        for item, origin in value.written
        if place not in SHOWN or item == []
    ]
    return [_file_read(layer, user, project) for layer in layers], sourced


def _file_read(layer: Layer, user: Iterable[str], project: Iterable[str]) -> FileRead:
    owner = (
        ORGANISATION if layer.bounds else YOURS if layer.path in user else PROJECTS if layer.path in project else NAMED
    )
    return FileRead(layer.path, owner, layer.trusted, tuple(_ignored(layer)))


def _ignored(layer: Layer) -> list[tuple[str, str]]:
    return [(".".join(place), setting.origin) for place, setting in merge([layer]).ignored]


def _file_lines(read: FileRead) -> list[str]:
    text = f"{printable(read.path)}: {read.owner}"
    if read.owner != PROJECTS:
        return [text]
    if read.trusted:
        return [f"{text}, trusted as it is now"]
    if not read.ignored:
        return [f"{text}; it opens nothing, so it needs no trust"]
    ignored = [f"  ignored: {key}, line {origin.rpartition(':')[2]}" for key, origin in read.ignored]
    return [f"{text}, not trusted; `netsandbox trust` puts it into effect", *ignored]


def _setting_line(setting: SourcedSetting) -> str:
    written = f"{setting.key} = {json.dumps(setting.value, default=str)}"
    return f"{printable(written):<48} {printable(setting.origin)}"


def _localhost(settings: LocalhostSettings) -> list[str]:
    """The session's own localhost. Values from files are listed among the settings too."""
    lines = [
        f"strategy {settings.strategy}, by {'the preload library' if settings.engine == 'preload' else 'the kernel'}"
    ]
    if settings.publish is None:
        lines.append("every port that listens is published on the host")
    elif not settings.publish:
        lines.append("no port is published on the host")
    else:
        shown = [f"{inner} at {outer}" if outer else str(inner) for inner, outer in settings.publish]
        lines.append(f"shown on the host: {', '.join(shown)}")
    reached = ", ".join(map(str, settings.connect_host))
    return [*lines, f"ports of the host's localhost and of other sessions that it reaches: {reached or 'none'}"]
