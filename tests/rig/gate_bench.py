"""A gate with a log, an upstream and clocks that a test can turn, and one list of everything that happens, in order."""

from __future__ import annotations

from collections.abc import Callable
from socket import AF_INET, AF_INET6
from typing import Any

from netsandbox_dns.synthetic_pool import SyntheticPool
from netsandbox_dns.tunnel_guard import TunnelGuard
from netsandbox_dns.upstream import LookupFailed, Resolved
from netsandbox_proxy.contract import Attempt

from netsandbox.policy.ip import Address
from netsandbox.policy.policy import Policy
from netsandbox.session.gate import Gate, NameServices, PeerFacts

SOURCE = ("127.0.0.1", 40000)


class Log:
    """Keeps the records in one list with everything else that happens, so that order can be proven."""

    def __init__(self, story: list[Any]) -> None:
        self.story = story
        self.writable = True

    def write(self, event: str, **fields: object) -> bool:
        if self.writable:
            self.story.append((event, fields))
        return self.writable

    def hold(self) -> None:
        """Nothing is collected: each record is kept at once."""

    def release(self) -> bool:
        return self.writable


class Upstream:
    """Answers from a table; a callable answer is called and may raise; None answers later, through `waiting`."""

    def __init__(self, story: list[Any], table: dict[str, Any]) -> None:
        self.story = story
        self.table = table
        self.waiting: list[Callable[[Any], None]] = []
        self.known = False

    def knows(self, name: str) -> bool:
        return self.known

    def lookup(self, name: str, done: Callable[[Any], None]) -> None:
        self.story.append(("lookup", name))
        answer = self.table.get(name, LookupFailed("nxdomain"))
        if answer is None:
            self.waiting.append(done)
            return
        done(answer() if callable(answer) else answer)


def found(*addresses: str, chain: tuple[str, ...] = ()) -> Resolved:
    return Resolved([(AF_INET6 if ":" in text else AF_INET, text) for text in addresses], list(chain), 60)


class Bench:
    """A gate with everything around it that a test may want to turn."""

    def __init__(self, policy: Policy, table: dict[str, Any] | None = None, **changes: Any) -> None:
        self.story: list[Any] = []
        self.log = Log(self.story)
        self.upstream = Upstream(self.story, table or {})
        self.pool = SyntheticPool()
        self.own: frozenset[Address] = frozenset()
        settings = {"own": lambda: self.own, "attribute": lambda source: None, "clock": lambda: 0.0, **changes}
        guard, parent = settings.pop("guard", TunnelGuard()), settings.pop("parent", None)
        names = NameServices(self.upstream, self.pool, guard, parent)  # type: ignore[arg-type]
        peers = PeerFacts(settings.pop("own"), settings.pop("attribute"))
        self.gate = Gate(policy, self.log, names, peers, **settings)  # type: ignore[arg-type]

    def admit(self, host: bytes, port: int = 443, door: str = "connect", address: str | None = None) -> Any:
        answers: list[Any] = []

        def done(outcome: Any) -> None:
            self.story.append(("done", outcome))
            answers.append(outcome)

        self.gate.admit(Attempt(door, host, port, SOURCE, address), done)
        assert len(answers) <= 1
        return answers[0] if answers else None

    @property
    def records(self) -> list[dict[str, Any]]:
        return [fields for event, fields in self.story if event in ("egress", "policy", "dns", "udp", "egress.end")]

    @property
    def order(self) -> list[str]:
        return [event for event, _ in self.story]
