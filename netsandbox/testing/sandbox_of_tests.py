"""The sandbox of tests: as `netsandbox run` in this folder, with temporary folders shared and no detected profile.

Temporary folders are the host's, so that reports written there and the folders of `tmp_path` are found afterwards. A
detected profile would allow registries, which no test should need. The session also sees what this interpreter loads.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from netsandbox.api.sandbox import Sandbox
from netsandbox.cli.run import OPTIONS, is_profile, report_rules, take_profiles
from netsandbox.cli.run_options import policy_of, read_config, settings_of
from netsandbox.config.profiles.profile_files import unknown_profile
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.paths import home, packages
from netsandbox.policy.file_rules import PathRule, path_rule
from netsandbox.policy.reasons import LOOKUP_FAILED
from netsandbox.policy.rules import parse_address, parse_domain
from netsandbox.runtime.option_parser import parse
from netsandbox.testing.plugin import ALLOWED, INSIDE
from netsandbox.text import denial_text, printable_place

DEFAULTS = ("--no-detect", "--no-publish", "--share-tmp")
DENIALS = "denials"
UNREACHED = "check the name and the host's own network"
_OPTION = re.compile("^--allow-(domain|address) ")
COMMAND = "pytest --netsandbox-options"
HELP = "netsandbox run"  # whose help lists these options


def sandbox_of(config: pytest.Config, allow: Iterable[str], folder: str) -> Sandbox:
    """A sandbox whose sessions may write *folder*, except for the list of denials in it."""
    hosts = _hosts(config, allow)
    further = [*config.getini("netsandbox_options"), *shlex.split(_option(config, "netsandbox_options"))]
    words = [*DEFAULTS, *further, *(word for host in hosts for word in (_rule(host), host)), "--"]
    parsed = parse(words, OPTIONS, HELP)
    if parsed.command:
        raise UsageError(f"{COMMAND} has a command; leave it out")
    if parsed.all("secret"):
        raise UsageError(f"{COMMAND} takes no --secret; run `netsandbox run --secret NAME@HOST -- pytest` instead")
    for word in parsed.words:
        if not is_profile(word):
            raise unknown_profile(word)
    take_profiles(parsed, COMMAND)
    file = read_config(parsed)
    settings = report_rules(settings_of(parsed, file), parsed.flags)
    denials = os.path.join(folder, DENIALS)
    rules = settings.files
    shown, written = map(_rules, (_interpreter(), [folder]))
    settings = copy_with(
        settings,
        denial_file=denials,
        set_env=(*settings.set_env, (INSIDE, denials), (ALLOWED, " ".join(hosts))),
        files=copy_with(rules, allow_read=(*rules.allow_read, *shown), allow_write=(*rules.allow_write, *written)),
    )
    return Sandbox(policy_of(parsed, file), settings)


def _hosts(config: pytest.Config, allow: Iterable[str]) -> list[str]:
    """What is allowed by the configuration, options and a mark. Errors name the place as pytest has it."""
    given = {
        "netsandbox_allow": config.getini("netsandbox_allow"),
        "--netsandbox-allow": _option(config, "netsandbox_allow"),
        "@pytest.mark.netsandbox(allow)": list(allow),
    }
    for origin, hosts in given.items():
        for host in hosts:
            _check(host, origin)
    return [host for hosts in given.values() for host in hosts]


def _check(host: str, origin: str) -> None:
    try:
        (parse_address if _rule(host) == "--allow-address" else parse_domain)(host, origin)
    except UsageError as error:
        raise UsageError(str(error).replace(" --online ", " --netsandbox-options=--online ")) from None


def _option(config: pytest.Config, name: str) -> Any:
    """Also while pytest still reads its options."""
    return getattr(config.option, name, None) or getattr(config.known_args_namespace, name)


def _rules(paths: list[str]) -> list[PathRule]:
    return [path_rule(path, "pytest", os.getcwd(), home) for path in paths]


def _interpreter() -> list[str]:
    """The folders that this interpreter loads code from. Those above the project are not opened for that."""
    here = os.path.join(os.path.realpath(os.getcwd()), "")
    folders = {sys.prefix, sys.base_prefix, *sys.path, *(os.path.dirname(path) for path in packages())}
    real = {os.path.realpath(path) for path in folders if os.path.isabs(path)}
    return sorted(path for path in real if os.path.exists(path) and not here.startswith(os.path.join(path, "")))


def _rule(host: str) -> str:
    """The option that allows *host*, which is a name or an address, with or without a port."""
    text = host.partition("]")[0].lstrip("[") if host.startswith("[") else host
    text = text.rpartition(":")[0] if text.count(":") == 1 else text
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return "--allow-domain"
    return "--allow-address"


def denial_texts(lines: Iterable[str], is_wanted: Callable[[list[int]], bool] = lambda pids: True) -> list[str]:
    """The denials of *lines*, each once. *is_wanted* chooses by the processes that caused them."""
    denials = [denial for denial in map(json.loads, lines) if is_wanted(denial["pids"])]
    return list(dict.fromkeys(map(_text, denials)))


def _text(denial: dict[str, Any]) -> str:
    host, flag = denial["host"], denial["flag"]
    place = printable_place(host, denial["port"]) if host is not None else "more than can be listed"
    if denial["reason"] == LOOKUP_FAILED:
        return f"netsandbox: {place} is allowed but was not reached ({LOOKUP_FAILED}); {UNREACHED}"
    return f"netsandbox: {denial_text(place, denial['reason'], flag and _OPTION.sub('--netsandbox-allow ', flag))}"
