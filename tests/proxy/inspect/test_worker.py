"""The worker's loop."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy")

from netsandbox_proxy.inspect import channel
from netsandbox_proxy.inspect.authority import Authority
from netsandbox_proxy.inspect.session_ca import SessionCa
from netsandbox_proxy.inspect.tls_contexts import TlsContexts
from netsandbox_proxy.inspect.worker import prepared


def test_it_says_ready_answers_and_ends_with_its_channel() -> None:
    near, far = channel.pair()
    worker = prepared(far, TlsContexts(Authority(SessionCa("s")), b""), {"idle": 60})
    channel.send(near, channel.encode({"kind": "ping"}))
    channel.send(near, channel.encode({"kind": "judged", "id": 7, "n": 1, "allow": True}))  # of one that is gone
    worker.loop.call_later(0.1, near.close)
    said: list[str] = []
    worker.loop.call_later(0.05, lambda: said.extend(each["kind"] for each in channel.receive(near)[0]))  # type: ignore[index]
    worker.run()
    assert said == ["ready", "pong"]
    worker.loop.close()
    far.close()
