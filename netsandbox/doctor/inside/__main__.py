"""Runs probes inside a session and prints one JSON line for each: {"probe", "done", "said"}.

    python -I -S __main__.py '[{"probe": "tcp-loopback", "verb": "tcp", "with": {"host": …, "port": …}}, …]'

`done` says that the attempt achieved something from where it stands. Whether anything got out is not ours to say: that
is what the canaries outside are for.
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
    from netsandbox.doctor.inside.verbs import attempt

    for wish in json.loads(sys.argv[1]):
        done, said = attempt(wish["verb"], wish["with"])
        print(json.dumps({"probe": wish["probe"], "done": done, "said": said}), flush=True)


if __name__ == "__main__":
    main()
