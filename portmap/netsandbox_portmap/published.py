"""The values of publishing: the ports that are wanted on the host, and those that are there."""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class PublishError(Exception):
    """A publication that this host cannot provide; the text ends with what to do."""


class Wanted:
    """`automatic`: every listener; otherwise only the requested ports in `fixed`, whose host port may be set."""

    __slots__ = ("automatic", "fixed")

    def __init__(self, *, automatic: bool, fixed: Mapping[int, int | None] | None = None) -> None:
        self.automatic = automatic
        self.fixed: Mapping[int, int | None] = fixed or {}

    def wants(self, port: int) -> bool:
        return self.automatic or port in self.fixed


@frozen
class Published:
    """One listener of the session as the host sees it now."""

    port: int  # as the program requested it
    inside: tuple[str, int]  # as the kernel knows it
    host: tuple[str, int]
    device: tuple[str, int] | None
    url: str
    pid: int
    exe: str
    since: float  # wall-clock time in seconds

    @property
    def inside_address(self) -> str:
        return self.inside[0]

    @property
    def inside_port(self) -> int:
        return self.inside[1]

    @property
    def host_address(self) -> str:
        return self.host[0]

    @property
    def host_port(self) -> int:
        return self.host[1]

    @property
    def device_address(self) -> str | None:
        return self.device[0] if self.device else None
