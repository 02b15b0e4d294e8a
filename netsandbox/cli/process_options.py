"""The options and keys about a session's processes: limits, debugging, programs and devices by list."""

from __future__ import annotations

import os
import stat

from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.paths import home, working_folder
from netsandbox.policy.file_rules import path_rule
from netsandbox.policy.limits import parse_limits
from netsandbox.system import IS_MACOS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.config.file_settings import FileSettings
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.settings import RunSettings

DEVICES = "/dev/"


def with_process_rules(settings: RunSettings, parsed: Parsed, file: FileSettings | None) -> RunSettings:
    """Lists add up; of a limit the command line's value counts."""
    texts = [*(file.limits if file else ()), *((text, "--limit") for text in parsed.all("limit"))]
    devices = [
        *(file.allow_devices if file else ()),
        *((text, "--allow-device") for text in parsed.all("allow-device")),
    ]
    base = working_folder() or "/"
    programs = tuple(path_rule(text, "--allow-execute", base, home) for text in parsed.all("allow-execute"))
    files, switches = settings.files, settings.switches
    no_debug = "no-debug" in parsed.flags or (file is not None and not file.debug)
    if IS_MACOS or parsed.values.get("backend") == "seatbelt":
        if devices:
            raise UsageError(f"{devices[0][1]}: a Mac has its own list of devices; leave it out")
        switches = (*switches, "no-debug") if no_debug else switches
    return copy_with(
        settings,
        limits=parse_limits(texts),
        no_debug=no_debug,
        switches=switches,
        files=copy_with(
            files,
            devices=tuple(dict.fromkeys(check_device(text, origin) for text, origin in devices)),
            allow_execute=(*files.allow_execute, *programs),
            listed_only=bool(programs) or (file is not None and file.execute == "listed"),
        ),
    )


def check_device(text: str, origin: str) -> str:
    """The real path of a device. Disks are refused: a program that writes a disk writes every file on it."""
    real = os.path.realpath(text)
    try:
        mode = os.stat(real).st_mode if text.startswith(DEVICES) and real.startswith(DEVICES) else 0
    except (OSError, ValueError):
        raise UsageError(f"{origin}: {text!a} does not exist here; leave it out, or load its driver") from None
    if stat.S_ISBLK(mode):
        raise UsageError(f"{origin}: {text!a} is a disk, by which every file on it could be changed; mount it instead")
    if not stat.S_ISCHR(mode):
        raise UsageError(f"{origin}: {text!a} is not a device; write one below /dev, such as /dev/kvm")
    return real
