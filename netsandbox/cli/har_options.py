"""The options of the HAR file: `--har FILE` and `--har-bodies SIZE`. Loaded by runs with one of them."""

from __future__ import annotations

import os

from netsandbox.cli.inspection_options import is_recording
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.policy.sizes import parse_size
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.settings import RunSettings

MAX_BODIES = 1 << 20  # an entry is written in one go, while connections wait


def with_har(settings: RunSettings, parsed: Parsed) -> RunSettings:
    path, bodies = parsed.values.get("har"), parsed.values.get("har-bodies")
    if not path:
        raise UsageError("--har-bodies puts bodies into the file of --har; add --har FILE")
    if not is_recording(settings):
        raise UsageError("--har records requests of inspected hosts, and none is; add --inspect HOST or --allow-http")
    return copy_with(settings, har=os.path.abspath(path), har_bodies=_size(bodies) if bodies else 0)


def _size(text: str) -> int:
    size = parse_size(text)
    if size is None or size > MAX_BODIES:
        raise UsageError(f"--har-bodies: {quoted(text)} is not a size up to {MAX_BODIES >> 20}MiB; write 64kB")
    return size
