"""What a judge hands over keeps nothing open once it is closed."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest

from netsandbox.backends.linux.syscall_outcome import AllowedCall, Refusal

CALL: Any = object()


def test_a_refusal_without_a_record_is_the_kernels_own_answer() -> None:
    refusal = Refusal(errno.EINVAL)
    assert (refusal.number, refusal.record, refusal.event) == (errno.EINVAL, None, "socket")


@pytest.mark.parametrize("targeted", [False, True])
def test_a_task_closes_its_copy_and_what_it_keeps_open(targeted: bool) -> None:
    sock = socket.socket()
    target = os.open("/", os.O_PATH) if targeted else -1
    held = [sock.fileno(), target] if targeted else [sock.fileno()]
    AllowedCall(CALL, "connect", sock, b"", target=target).close()
    for descriptor in held:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
