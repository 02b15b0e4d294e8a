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
from importlib.util import module_from_spec, spec_from_file_location

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 20


def load_package() -> None:
    """Make `netsandbox` importable from its folder alone: a session may not list the folder above it."""
    spec = spec_from_file_location("netsandbox", f"{PACKAGE}/__init__.py", submodule_search_locations=[PACKAGE])
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules["netsandbox"] = module_from_spec(spec)
    spec.loader.exec_module(package)


def main() -> None:
    signal.alarm(SECONDS)  # a probe that hangs must not make the doctor hang
    load_package()
    from netsandbox.doctor.inside.attempts import attempt

    for probe in json.loads(sys.argv[1]):
        succeeded, detail = attempt(probe["attempt"], probe["arguments"])
        print(json.dumps({"probe": probe["probe"], "succeeded": succeeded, "detail": detail}), flush=True)


if __name__ == "__main__":
    main()
