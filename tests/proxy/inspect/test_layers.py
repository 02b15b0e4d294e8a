"""mitmproxy's layers as they are changed here."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy")

from mitmproxy.connection import ConnectionState
from mitmproxy.proxy.layers import http, tls
from netsandbox_proxy.inspect import layers


def test_mitmproxy_makes_our_layers() -> None:
    layers.install()
    assert http.HttpStream is layers.InspectedStream
    assert http.validate_headers is layers.check_headers
    assert tls.ServerTLSLayer is layers.UpstreamTls


def test_a_connection_begins_with_both_sides_open() -> None:
    layers.install()
    context, outer = layers.stack("a.test", 443)
    assert context.server.address == ("a.test", 443)
    assert context.server.sni == "a.test"
    assert context.client.state == context.server.state == ConnectionState.OPEN
    assert isinstance(outer.child_layer, tls.ClientTLSLayer)
