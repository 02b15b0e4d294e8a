"""An engine for the tests of this folder, and the server behind it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.rig.certificates import CertificateAuthority
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.inspecting import HOST, EngineBench


@pytest.fixture
def server(ca: CertificateAuthority) -> Iterator[HttpsCanary]:
    with https_canary(ca.issue(HOST)) as made:
        yield made


@pytest.fixture
def bench(ca: CertificateAuthority, server: HttpsCanary) -> Iterator[EngineBench]:
    pytest.importorskip("mitmproxy")
    if not sys.platform.startswith("linux"):
        pytest.skip("the engine needs seccomp")
    made = EngineBench(ca.cert, server.port)
    try:
        yield made
    finally:
        made.close()
