"""Runs probes inside a session and prints one JSON line for each: {"probe", "succeeded", "detail"}.

    python -I -S __main__.py '[{"probe": "tcp-loopback", "attempt": "tcp", "arguments": {"host": …, "port": …}}, …]'

`succeeded` is true if the attempt achieved something as seen from inside. The canaries outside show whether anything
got out.
"""

from __future__ import annotations

import json
import os
import signal
import sys

PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SECONDS = 20


def main() -> None:
    signal.alarm(SECONDS)  # a probe that hangs must not make the doctor hang
    sys.path.insert(0, PACKAGE_ROOT)
    from netsandbox.doctor.inside.attempts import attempt

    for probe in json.loads(sys.argv[1]):
        succeeded, detail = attempt(probe["attempt"], probe["arguments"])
        print(json.dumps({"probe": probe["probe"], "succeeded": succeeded, "detail": detail}), flush=True)


if __name__ == "__main__":
    main()
