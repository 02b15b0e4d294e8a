"""What the backend asks of a Mac."""

from __future__ import annotations

import os

from netsandbox.kqueue_loop import KqueueLoop
from netsandbox.macos.exit_notice import KqueueExit
from netsandbox.macos.own_addresses import InterfaceAddresses
from netsandbox.macos.system import APPLY, System, this_mac


def test_a_mac_answers_with_kqueue_and_ifconfig_and_log_and_the_helper_beside_our_code() -> None:
    assert this_mac() == System(
        APPLY, KqueueLoop, KqueueExit, InterfaceAddresses, "/usr/bin/log", release=os.uname().release
    )
    assert this_mac().sandbox_exec == "/usr/bin/sandbox-exec"
    assert APPLY.endswith("/netsandbox/native_macos/netsandbox-apply")
