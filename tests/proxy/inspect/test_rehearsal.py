"""The exchange before the worker is sealed."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy")

from netsandbox_proxy.inspect import layers
from netsandbox_proxy.inspect.authority import Authority
from netsandbox_proxy.inspect.rehearsal import rehearse
from netsandbox_proxy.inspect.session_ca import SessionCa
from netsandbox_proxy.inspect.tls_contexts import TlsContexts


def test_it_passes_with_its_own_authority_and_fails_without() -> None:
    layers.install()
    authority = Authority(SessionCa("s"))
    rehearse(TlsContexts(authority, authority.pem.encode()))
    with pytest.raises(RuntimeError, match="rehearsal failed"):
        rehearse(TlsContexts(authority, b""))
