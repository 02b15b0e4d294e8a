"""A Mac's log as others describe it: the lines of `log stream --style ndjson`, and a program that prints some."""

from __future__ import annotations

import json
import sys
from pathlib import Path

BANNER = b'Filtering the log data using "process == \\"kernel\\" AND sender == \\"Sandbox\\""\n'
TRAILER = b'{"count":3,"finished":1}\n'
ROOT = Path(__file__).parents[2]
PROGRAM = """\
#!{python} -IS
import os, signal, sys, time
sys.path.insert(0, {root!r})
from tests.rig.mac_log import BANNER, TRAILER, line
here = {here!r}
assert sys.argv[1:5] == ["stream", "--style", "ndjson", "--predicate"], sys.argv
tag = sys.argv[5].rpartition('CONTAINS "')[2].rstrip('"')
def say(*lines):
    data = b"".join(lines)
    while data:
        data = data[os.write(1, data):]
def refused(text, **other):
    return line("Sandbox: " + text + "\\n" + tag, **other)
open(here + "/pid", "w").write(str(os.getpid()))
{body}
"""


def line(message: str, **other: object) -> bytes:
    """A record as it is described to be written; slashes are escaped there."""
    record = {
        "traceID": 2305843009213693952,
        "eventMessage": message,
        "eventType": "logEvent",
        "source": None,
        "formatString": "%s",
        "userID": 0,
        "activityIdentifier": 0,
        "subsystem": "",
        "category": "",
        "threadID": 1234,
        "senderImageUUID": "00000000-0000-0000-0000-000000000000",
        "backtrace": {"frames": [{"imageOffset": 77, "imageUUID": "00000000-0000-0000-0000-000000000000"}]},
        "processImagePath": "/kernel",
        "senderImagePath": "/System/Library/Extensions/Sandbox.kext/Contents/MacOS/Sandbox",
        "timestamp": "2025-01-02 03:04:05.678901+0100",
        "machTimestamp": 123456789012,
        "messageType": "Error",
        "processID": 0,
        "timezoneName": "",
        **other,
    }
    return json.dumps(record, separators=(",", ":")).replace("/", "\\/").encode() + b"\n"


def stand_in(folder: Path, body: str) -> str:
    """The path of a program in *folder* that does *body* in the place of `log`. It leaves its number there in `pid`."""
    path = folder / "log"
    path.write_text(PROGRAM.format(python=sys.executable, root=str(ROOT), here=str(folder), body=body))
    path.chmod(0o755)
    return str(path)
