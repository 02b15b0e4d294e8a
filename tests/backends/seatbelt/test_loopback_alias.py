"""The loopback device of rewire-device: what is missing is named, and never made by us."""

from __future__ import annotations

import pytest

from netsandbox.backends.seatbelt.loopback_alias import alias_command, can_bind, check_device, removal_command
from netsandbox.errors import HostError


def test_a_missing_address_is_named_with_the_command_that_makes_it() -> None:
    with pytest.raises(HostError) as caught:
        check_device("127.78.32.1", lambda device: False)
    assert "`sudo ifconfig lo0 alias 127.78.32.1`" in str(caught.value)
    assert "`sudo ifconfig lo0 -alias 127.78.32.1`" in str(caught.value)
    assert "--listening-loopback 127.78.32.1" in str(caught.value)
    assert "rewire-port" in str(caught.value)


def test_an_address_that_is_there_is_fine() -> None:
    check_device("127.78.32.1", lambda device: True)


def test_what_was_added_can_be_taken_away() -> None:
    assert alias_command("127.0.0.2") == "sudo ifconfig lo0 alias 127.0.0.2"
    assert removal_command("127.0.0.2") == "sudo ifconfig lo0 -alias 127.0.0.2"


def test_the_trial_tells_addresses_of_this_host_from_others() -> None:
    assert can_bind("127.0.0.1")
    assert not can_bind("192.0.2.1")


def test_what_cannot_be_tried_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def bind(self, place: object) -> None:
            raise OSError(1, "no")

        def close(self) -> None: ...

    monkeypatch.setattr("netsandbox.backends.seatbelt.loopback_alias._socket.socket", lambda *_: Broken())
    with pytest.raises(HostError, match="cannot tell"):
        can_bind("127.0.0.1")
