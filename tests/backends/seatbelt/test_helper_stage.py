"""The stage behind sandbox-exec runs nothing unless it is confined and its plan is whole."""

from __future__ import annotations

import errno
import socket

import pytest

from netsandbox.backends.seatbelt import helper_stage
from netsandbox.backends.seatbelt.helper_stage import Failed


@pytest.mark.parametrize("words", [[], ["80"], ["0", "true"], ["65536", "true"], ["x", "true"], ["²", "true"]])
def test_words_without_a_port_and_a_command_are_refused(words: list[str]) -> None:
    with pytest.raises(Failed, match="arguments"):
        helper_stage._arguments(words)


def test_a_plan_that_breaks_off_is_refused() -> None:
    assert helper_stage._environment(b"profile\0A=1\0B=x=y\0") == {b"A": b"1", b"B": b"x=y"}
    with pytest.raises(Failed) as refused:
        helper_stage._environment(b"profile\0A=1\0B=x")
    assert refused.value.args[:2] == ("plan", errno.EPIPE)


def test_a_process_that_is_not_confined_is_found_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(Failed):
        helper_stage.prove_confined(server.getsockname()[1])
