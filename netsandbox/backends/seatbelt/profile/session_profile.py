"""The Seatbelt profile of one session. Pure: settings in, text out, the same text for the same settings.

Fixed parts are `.sbpl` files beside this one, each allowance with its reason. Paths and ports are literals in the text,
not parameters. So the text alone shows what is enforced: `--dry-run` prints, the tests' evaluator checks and the kernel
gets the same text. Lists have any length, and no rule depends on a parameter that may be missing. Parameters would only
save the escaping, which is one tested function (`sbpl_string`).
"""

from __future__ import annotations

import os

from netsandbox.backends.seatbelt.profile.file_rules import allowed_files, check_files, denied_files
from netsandbox.backends.seatbelt.profile.network_rules import check_network, network_rules
from netsandbox.backends.seatbelt.profile.switches import SWITCHES
from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.seatbelt.profile.profile_settings import ProfileSettings

_FOLDER = os.path.dirname(os.path.abspath(__file__))
MAX_BYTES = 12 << 20  # the helper accepts 16 MiB, including the environment
_WITHOUT_TEXT = ("debug", "tool-caches")  # `debug` has a text for off too; `tool-caches` is in `file_rules.written`


def session_profile(settings: ProfileSettings) -> str:
    """The profile, or a `UsageError`; no profile enforces less than the settings require (INV-1)."""
    check_files(settings)
    check_network(settings.network, settings.own)
    others, sockets = _raw(settings)
    parts = (
        _fixed("header"),
        _fixed("process"),
        _fixed("debug" if "debug" in settings.switches else "no-debug"),
        _fixed("facts"),
        _fixed("services"),
        *_switches(settings),
        _fixed("refused-services"),
        _fixed("devices"),
        _fixed("system"),
        allowed_files(settings),
        _fixed("handover"),
        *((others, _fixed("refused-services")) if others else ()),
        denied_files(settings),
        _fixed("resolver"),
        sockets,
        network_rules(settings.network, settings.own),
    )
    text = _spaced("\n".join(parts))
    if len(text.encode("utf-8")) > MAX_BYTES:
        raise UsageError(f"the profile is longer than {MAX_BYTES >> 20} MiB; name fewer paths, or folders above them")
    return text


def _raw(settings: ProfileSettings) -> tuple[str, str]:
    """The user's own rules: those about Unix sockets come after the others."""
    if not settings.raw:
        return "", ""
    from netsandbox.backends.seatbelt.profile.raw_rules import raw_rules

    raw = raw_rules(settings.raw, {"home": settings.home, "working_dir": settings.working})
    return raw.others, raw.sockets


def _switches(settings: ProfileSettings) -> list[str]:
    for name in settings.switches:
        if name not in SWITCHES:
            raise UsageError(f"unknown switch {name!a}; use {', '.join(SWITCHES)}")
    return [_fixed(f"switches/{name}") for name in SWITCHES if name in settings.switches and name not in _WITHOUT_TEXT]


def _fixed(name: str) -> str:
    with open(f"{_FOLDER}/{name}.sbpl", encoding="utf-8") as file:
        return file.read()


def _spaced(text: str) -> str:
    """One empty line between parts, even if an empty part was left out. No literal has a line end."""
    lines = text.split("\n")
    kept = [line for at, line in enumerate(lines) if line or (at and lines[at - 1])]
    return "\n".join(kept).strip("\n") + "\n"
