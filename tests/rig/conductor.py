"""Runs inside a session, copied there: starts servers, is their first client, tells what it found, and stays.

`conductor.py FILE`: FILE holds a list of {name, kind, port, in_window, argv, folder}. One line of JSON on stdout says
for each server what its client at localhost saw, or how it ended, and what it printed. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import clients  # type: ignore[import-not-found]

PATIENCE = 40


class Server:
    """One server with its output."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self.wanted = wanted
        base = int(os.environ.get("LISTENING_BASE_PORT", "0"))
        self.port = int(wanted["port"]) + (base if wanted["in_window"] else 0)
        self.output = os.path.join(wanted["folder"], f"{wanted['name']}.out")
        argv = [word.replace("PORT", str(self.port)) for word in wanted["argv"]]
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                argv, cwd=wanted["folder"], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def look(self) -> dict[str, Any]:
        """Once it can be reached, or once it has ended."""
        found: dict[str, Any] = {"port": self.port, "pid": self.process.pid}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                found["answer"] = clients.ask(self.wanted["kind"], "localhost", self.port)
                break
            except (OSError, ValueError) as error:
                found["error"] = repr(error)
                time.sleep(0.02)
        found["status"] = self.process.poll()
        with open(self.output, errors="replace") as output:
            found["output"] = output.read()
        return found


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with open(sys.argv[1]) as file:
        wanted = json.load(file)
    servers = [Server(one) for one in wanted]
    found = {server.wanted["name"]: server.look() for server in servers}
    environment = {name: value for name, value in os.environ.items() if name.startswith("LISTENING_")}
    print(json.dumps({"servers": found, "environment": environment}), flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
