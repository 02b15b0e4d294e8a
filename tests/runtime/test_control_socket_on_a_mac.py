"""The control socket where there is no O_PATH, no /proc and no SO_PEERCRED: the words that a Mac has for them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from netsandbox.runtime import control_socket
from netsandbox.runtime.control_socket import (
    LOCAL_PEERCRED,
    LOCAL_PEERPID,
    SOL_LOCAL,
    address,
    is_trusted,
    make_private,
)

UID = 501


class Peer:
    """A connected socket of a Mac, as far as getsockopt(2) tells of its peer."""

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert level == SOL_LOCAL
        if option == LOCAL_PEERPID:
            return (4711).to_bytes(4, sys.byteorder)
        assert option == LOCAL_PEERCRED
        return bytes(4) + UID.to_bytes(4, sys.byteorder) + bytes(size - 8)


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(control_socket, "PATH_ONLY", 0)
    monkeypatch.delattr(control_socket._socket, "SO_PEERCRED", raising=False)
    return Peer()


def test_the_peer_is_known_by_what_a_macs_kernel_says(peer: Any) -> None:
    assert control_socket.peer_uid(peer) == UID
    assert control_socket.peer_pid(peer) == 4711


@pytest.mark.attack(182)
@pytest.mark.parametrize(("ours", "trusted"), [(UID, True), (502, False)])
def test_another_user_is_not_answered(peer: Any, monkeypatch: pytest.MonkeyPatch, ours: int, trusted: bool) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ours)
    assert is_trusted(peer) is trusted


def test_a_folder_is_made_private_by_its_descriptor(peer: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    folder = control_socket.open_folder(str(tmp_path))
    make_private(folder)
    os.close(folder)
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_path_that_no_socket_can_have_is_an_error(peer: Any) -> None:
    assert address(3, "/short/control") == "/short/control"
    with pytest.raises(OSError, match="too long"):
        address(3, "/" + "x" * 120 + "/control")


@pytest.mark.macos
@pytest.mark.skipif(sys.platform != "darwin", reason="asks a Mac's kernel")
def test_on_a_mac_both_ends_know_one_another() -> None:
    import _socket

    left, right = _socket.socketpair()
    assert control_socket.peer_uid(left) == os.geteuid()
    assert control_socket.peer_pid(right) == os.getpid()
    assert is_trusted(left)
