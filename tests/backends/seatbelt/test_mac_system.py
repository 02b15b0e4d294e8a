"""What the backend asks of a Mac."""

from __future__ import annotations

import os

import pytest

from netsandbox.backends.seatbelt.exit_watch import KqueueExit
from netsandbox.backends.seatbelt.mac_system import APPLY, MacSystem, this_mac
from netsandbox.backends.seatbelt.own_addresses import InterfaceAddresses
from netsandbox.backends.seatbelt.signing import Parts
from netsandbox.runtime.kqueue_loop import KqueueLoop


def test_a_mac_answers_with_kqueue_and_ifconfig_and_log_and_the_helper_beside_our_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.signing.signed_parts", Parts)
    assert this_mac() == MacSystem(
        APPLY, KqueueLoop, KqueueExit, InterfaceAddresses, "/usr/bin/log", release=os.uname().release
    )
    assert this_mac().sandbox_exec == "/usr/bin/sandbox-exec"
    assert APPLY.endswith("/netsandbox/backends/seatbelt/native/netsandbox-apply")


def test_helper_library_and_module_are_those_that_this_mac_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    parts = Parts("/a/helper", "/a/library", "/a/module", "why")
    monkeypatch.setattr("netsandbox.backends.seatbelt.signing.signed_parts", lambda: parts)
    monkeypatch.setattr("netsandbox.backends.seatbelt.signing.load_module", loaded.append)
    system = this_mac()
    assert (system.helper, system.library, system.unsigned) == ("/a/helper", "/a/library", "why")
    assert loaded == ["/a/module"]
