"""The world as most programs meet it: one server that they may reach by name, and its twin that they may not."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rig.authority import Authority
    from tests.rig.canary import Canaries, StreamCanary
    from tests.rig.command import CommandLine, Run

ALLOWED, DENIED = "allowed.test", "denied.test"


def need(program: str, package: str) -> str:
    """The path of PROGRAM; without it the test is skipped and names the Debian package that brings it.

    Last of all it is looked for beside our interpreter, where `pip install '.[test]'` put it.
    """
    beside = os.path.dirname(sys.executable)
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin:{beside}")
    if found is None:
        pytest.skip(f"{program} is missing (package {package})")
    return found


class World:
    """An allowed server and a forbidden one, names for both, and the options that let only the first through.

    The address guard is lifted for both, so that a denial is the name's alone.
    """

    def __init__(self, netsandbox: CommandLine, canary: Canaries, authority: Authority) -> None:
        self.netsandbox = netsandbox
        self.canary = canary
        self.authority = authority
        self.forbidden = canary.http(body=b"forbidden\n")
        for name in (ALLOWED, DENIED):
            authority.answer(name, "127.0.0.1")

    def options(self, port: int) -> tuple[str, ...]:
        names = ("--upstream-dns", self.authority.address, "--allow-domain", f"{ALLOWED}:{port}")
        return (*names, "--allow-address", f"127.0.0.1:{port}", "--allow-address", self.forbidden.address)

    def urls(self, port: int, scheme: str = "http") -> tuple[str, str]:
        return f"{scheme}://{ALLOWED}:{port}/", f"{scheme}://{DENIED}:{self.forbidden.port}/"

    def fetch_both(self, command: list[str], port: int, *options: str, scheme: str = "http", **more: Any) -> Run:
        """Fetch the allowed URL, then the forbidden one, in one session; the statuses are printed last."""
        script = 'good=$1 bad=$2; shift 2; "$@" "$good"; echo "good=$?"; "$@" "$bad"; echo "bad=$?"'
        inside = ("sh", "-c", script, "sh", *self.urls(port, scheme), *command)
        return self.netsandbox("run", *options, *self.options(port), "--", *inside, **more)

    def assert_only_allowed(self, run: Run, server: StreamCanary, answer: str) -> None:
        assert answer in run.stdout, (run.stdout, run.stderr)
        assert "good=0" in run.stdout
        assert "forbidden" not in run.stdout
        assert server.accepts >= 1
        assert self.forbidden.accepts == 0
        self.assert_denied(run)
        assert self.authority.count(DENIED) == 0

    def assert_denied(self, run: Run) -> None:
        denials = [r for r in run.audit if r.get("host") == DENIED]
        assert denials
        assert all(record["verdict"] == "deny" for record in denials)


@pytest.fixture
def world(netsandbox: CommandLine, canary: Canaries, authority: Authority) -> World:
    """Two servers and the options that let one of them through."""
    return World(netsandbox, canary, authority)
