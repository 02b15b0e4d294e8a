"""The gate and the resolver of one session know the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dnslib
import pytest
from netsandbox_proxy.contract import Attempt, Grant, Refusal

from netsandbox.host_resolver import HostResolver
from netsandbox.judges import Judges
from netsandbox.loop import Loop
from netsandbox.policy.policy import Policy
from tests.rig.authority import Authority
from tests.rig.fake_log import FakeLog

PATIENCE = 20.0


class Court:
    """Judges on a loop of their own."""

    def __init__(self, host: HostResolver) -> None:
        self.loop = Loop()
        self.log = FakeLog()
        policy = Policy(allow_domains=["allowed.test"], allow_addresses=["127.0.0.1"])
        self.judges = Judges(
            self.loop,
            policy,
            self.log,  # type: ignore[arg-type]
            host,
            own=frozenset,
            attribute=lambda source: None,
            parent=None,
        )

    def ask(self, name: str) -> dnslib.DNSRecord:
        reply = self.judges.resolver.answer(bytes(dnslib.DNSRecord.question(name).pack()), "udp")
        assert reply is not None
        return dnslib.DNSRecord.parse(reply)

    def admit(self, address: str, port: int = 443) -> Grant | Refusal:
        answers: list[Grant | Refusal] = []

        def done(answer: Grant | Refusal) -> None:
            answers.append(answer)
            self.loop.stop()

        self.loop.call_later(0, lambda: self.judges.gate.admit(attempt, done))
        attempt = Attempt("transparent", address.encode(), port, ("127.0.0.1", 1), address)
        guard = self.loop.call_later(PATIENCE, self.loop.stop)
        self.loop.run()
        guard.cancel()
        return answers[0]

    def close(self) -> None:
        self.judges.close()
        self.loop.close()


@pytest.fixture
def court() -> Iterator[Callable[[HostResolver], Court]]:
    made: list[Court] = []

    def court(host: HostResolver) -> Court:
        made.append(Court(host))
        return made[-1]

    yield court
    for each in made:
        each.close()


def test_an_address_that_the_resolver_gave_is_its_name_to_the_gate(court: Any, authority: Authority) -> None:
    authority.answer("allowed.test", "127.0.0.1")
    each = court(HostResolver(((authority.host, authority.port),)))
    given = str(each.ask("allowed.test").a.rdata)
    assert authority.queries == []
    granted = each.admit(given)
    assert isinstance(granted, Grant)
    assert (granted.host, granted.addresses) == ("allowed.test", [(2, "127.0.0.1")])
    assert isinstance(each.admit("198.18.77.77"), Refusal)


def test_the_hosts_own_files_are_used_where_no_server_was_named(court: Any) -> None:
    each = court(HostResolver((), "nameserver 192.0.2.53\n", "127.0.0.1 allowed.test\n"))
    granted = each.admit(str(each.ask("allowed.test").a.rdata))
    assert isinstance(granted, Grant)
    assert granted.addresses == [(2, "127.0.0.1")]


def test_what_was_folded_is_written_when_they_close(court: Any) -> None:
    each = court(HostResolver(()))
    for _ in range(3):
        each.ask("denied.test")
    assert len(each.log.records) == 1
    each.judges.close()
    assert sum(record.get("count", 1) for record in each.log.records) == 3
