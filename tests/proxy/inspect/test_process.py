"""Starting the engine."""

from __future__ import annotations

import pytest

from netsandbox.errors import HostError
from tests.rig.inspecting import import_folders

pytest.importorskip("mitmproxy")

from netsandbox_proxy.inspect.process import EngineProcess


def test_it_gives_the_certificate_of_its_authority_and_ends() -> None:
    process = EngineProcess("one", import_folders())
    assert process.authority().startswith("-----BEGIN CERTIFICATE-----")
    process.close()
    process.close()
    assert process.pid == 0


def test_an_engine_that_cannot_import_is_an_error() -> None:
    process = EngineProcess("one", ["/nowhere"])
    with pytest.raises(HostError, match="did not start"):
        process.authority()
    process.close()
