"""What the backend asks of a Mac."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt import mac_system
from netsandbox.backends.seatbelt.mac_system import (
    ADD,
    APPLY,
    AT_EXIT,
    FILTER_PROCESS,
    ONCE,
    KqueueExit,
    MacSystem,
    check_release,
    macos_version,
    this_mac,
)
from netsandbox.backends.seatbelt.own_addresses import InterfaceAddresses
from netsandbox.backends.seatbelt.signing import Parts
from netsandbox.errors import HostError
from netsandbox.runtime.kqueue_loop import KqueueLoop


def test_a_mac_answers_with_kqueue_and_ifconfig_and_log_and_the_helper_beside_our_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.signing.signed_parts", Parts)
    assert this_mac() == MacSystem(
        APPLY, KqueueLoop, KqueueExit, InterfaceAddresses, "/usr/bin/log", release=os.uname().release
    )
    assert APPLY.endswith("/netsandbox/backends/seatbelt/native/netsandbox-apply")


def test_helper_library_and_module_are_those_that_this_mac_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    parts = Parts("/a/helper", "/a/library", "/a/module", "why")
    monkeypatch.setattr("netsandbox.backends.seatbelt.signing.signed_parts", lambda: parts)
    monkeypatch.setattr("netsandbox.backends.seatbelt.signing.load_module", loaded.append)
    system = this_mac()
    assert (system.helper, system.library, system.unsigned) == ("/a/helper", "/a/library", "why")
    assert loaded == ["/a/module"]


class Queue:
    made: list[Queue] = []  # noqa: RUF012 (emptied by the fixture)
    error: OSError | None = None

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.closed = 0
        Queue.made.append(self)

    def control(self, told: list[Any], most: int, timeout: float) -> list[Any]:
        if Queue.error is not None:
            raise Queue.error
        self.told += told
        return []

    def fileno(self) -> int:
        return 99

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> type[Queue]:
    monkeypatch.setattr(Queue, "made", [])
    monkeypatch.setattr(Queue, "error", None)
    monkeypatch.setattr(mac_system.select, "kqueue", Queue, raising=False)
    monkeypatch.setattr(mac_system.select, "kevent", lambda *words: words, raising=False)
    return Queue


def test_the_kernel_is_asked_for_the_end_of_that_process_once(queue: type[Queue]) -> None:
    notice = KqueueExit(4711)
    assert queue.made[0].told == [(4711, FILTER_PROCESS, ADD | ONCE, AT_EXIT)]
    assert notice.fileno() == 99
    notice.close()
    notice.close()
    assert queue.made[0].closed == 1


def test_a_process_that_has_ended_already_is_told_at_once(queue: type[Queue], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Queue, "error", ProcessLookupError())
    notice = KqueueExit(4711)
    assert select.select([notice.fileno()], [], [], 5)[0]
    number = notice.fileno()
    notice.close()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(number)


@pytest.mark.macos
@pytest.mark.skipif(sys.platform != "darwin", reason="kqueue is a Mac's")
def test_on_a_mac_the_end_of_a_process_is_told() -> None:
    with subprocess.Popen(["/bin/sleep", "0.2"]) as process:
        notice = KqueueExit(process.pid)
        assert select.select([notice.fileno()], [], [], 0)[0] == []
        assert select.select([notice.fileno()], [], [], 5)[0]
        late = KqueueExit(process.pid)  # ended, not yet waited for
        assert select.select([late.fileno()], [], [], 5)[0]
        notice.close()
        late.close()


@pytest.mark.parametrize(
    ("darwin", "version"),
    [
        ("19.6.0", "10.15"),
        ("20.0.0", "11"),
        ("23.1.0", "14"),
        ("24.6.0", "15"),
        ("25.0.0", "26"),
        ("26.0.0", "27"),
        ("5.0", "10.1"),
        ("4.0", None),
        ("", None),
        ("6.18.5-generic", "10.2"),
        ("x", None),
        ("\u0662\u0660.0", None),
        ("9999.0", None),
    ],
)
def test_a_kernel_has_its_macos(darwin: str, version: str | None) -> None:
    assert macos_version(darwin) == version


@pytest.mark.parametrize(("darwin", "version"), [("19.6.0", "10.15"), ("18.0.0", "10.14"), ("8.1", "10.4")])
def test_a_mac_that_is_too_old_is_named(darwin: str, version: str) -> None:
    with pytest.raises(HostError, match=rf"this is macOS {version}, .*needs macOS 11 or newer; nothing was run"):
        check_release(darwin)


@pytest.mark.parametrize("darwin", ["20.0.0", "25.1.0", "99.0.0", "", "strange"])
def test_what_is_newer_or_unknown_is_for_the_self_test_to_decide(darwin: str) -> None:
    check_release(darwin)


@given(st.text(max_size=12))
def test_any_text_is_a_version_or_none(text: str) -> None:
    version = macos_version(text)
    assert version is None or version.replace(".", "").isdigit()
