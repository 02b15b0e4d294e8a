"""The gate and the resolver of one session know the same names (INV-3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dnslib
import pytest
from netsandbox_proxy.contract import Attempt, Grant, Refusal

from netsandbox.backends.contract import DoorSockets
from netsandbox.policy.policy import Policy
from netsandbox.runtime.loop import Loop
from netsandbox.session.approvals.inbox import Inbox
from netsandbox.session.approvals.reply import APPROVE, DONE, Reply, written
from netsandbox.session.doors import SessionServices
from netsandbox.session.upstream import HostResolver, ServiceInputs
from tests.rig.authority import Authority
from tests.rig.fake_log import FakeLog

PATIENCE = 20.0


class Court:
    """SessionServices with a separate loop."""

    def __init__(self, host: HostResolver, *, asks: bool = False) -> None:
        self.loop = Loop()
        self.log = FakeLog()
        policy = Policy(allow_domains=["allowed.test"], allow_addresses=["127.0.0.1"])
        inputs = ServiceInputs(policy, self.log, host, inbox=self._inbox() if asks else None)  # type: ignore[arg-type]
        sockets = DoorSockets((), (), (), lambda clock: frozenset, lambda clock: lambda peer: None)
        self.services = SessionServices(self.loop, inputs, sockets)

    def _inbox(self) -> Inbox:
        """Every question is approved in the next turn of the loop."""

        def approve() -> None:
            for question in inbox.status():
                assert inbox.handle_reply(written(Reply(APPROVE, int(str(question["id"])))), 1, 0) == DONE

        def say(text: str) -> None:
            self.loop.call_later(0, approve)

        log: Any = self.log
        inbox = Inbox(log, 600, clock=self.loop.now, later=self.loop.call_later, notify=say)
        return inbox

    def ask(self, name: str, kind: str = "A") -> dnslib.DNSRecord:
        reply = self.services.resolver.answer(bytes(dnslib.DNSRecord.question(name, kind).pack()), "udp")
        assert reply is not None
        return dnslib.DNSRecord.parse(reply)

    def admit(self, address: str, port: int = 443) -> Grant | Refusal:
        answers: list[Grant | Refusal] = []

        def done(answer: Grant | Refusal) -> None:
            answers.append(answer)
            self.loop.stop()

        self.loop.call_later(0, lambda: self.services.gate.admit(attempt, done))
        attempt = Attempt("transparent", address.encode(), port, ("127.0.0.1", 1), address)
        guard = self.loop.call_later(PATIENCE, self.loop.stop)
        self.loop.run()
        guard.cancel()
        return answers[0]

    def close(self) -> None:
        self.services.close()
        self.loop.close()


@pytest.fixture
def court() -> Iterator[Callable[..., Court]]:
    made: list[Court] = []

    def court(host: HostResolver, *, asks: bool = False) -> Court:
        made.append(Court(host, asks=asks))
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
    each.services.close()
    assert sum(record.get("count", 1) for record in each.log.records) == 3


def test_where_the_user_is_asked_a_name_gets_an_address_and_the_world_hears_of_it_after_a_yes(
    court: Any, authority: Authority
) -> None:
    authority.answer("*.asked.test", "127.0.0.1")
    each = court(HostResolver(((authority.host, authority.port),)), asks=True)
    given = str(each.ask("www.asked.test").a.rdata)
    assert given.startswith("198.18.")
    for kind in ("AAAA", "HTTPS", "TXT", "MX"):
        each.ask("www.asked.test", kind)
    assert authority.queries == []
    granted = each.admit(given)
    assert isinstance(granted, Grant)
    assert set(authority.names) == {"www.asked.test"}


@pytest.mark.parametrize("label", ["x" * 53, "abcdefghijklmnopqrstuvwxyz0123456789", ".".join(["data"] * 20)])
def test_where_the_user_is_asked_labels_full_of_data_do_not_exist(court: Any, authority: Authority, label: str) -> None:
    each = court(HostResolver(((authority.host, authority.port),)), asks=True)
    assert each.ask(f"{label}.asked.test").header.rcode == dnslib.RCODE.NXDOMAIN
    assert each.ask("plain.asked.test").header.rcode == dnslib.RCODE.NOERROR
    assert authority.queries == []
    assert [record["reason"] for record in each.log.records] == ["tunnel-label", "ask"]
