"""What is wanted on the host, and what is there: the values of publishing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class PublishError(Exception):
    """Something was asked for that this host cannot give; the text ends with what to do."""


class Wanted:
    """`automatic`: whatever listens; otherwise only the asked ports in `fixed`, whose host port may be chosen."""

    __slots__ = ("automatic", "fixed")

    def __init__(self, *, automatic: bool, fixed: Mapping[int, int | None] | None = None) -> None:
        self.automatic = automatic
        self.fixed: Mapping[int, int | None] = fixed or {}

    def wants(self, port: int) -> bool:
        return self.automatic or port in self.fixed


class Published:
    """One listener of the session as the host sees it now."""

    __slots__ = (
        "device_address",
        "device_port",
        "exe",
        "host_address",
        "host_port",
        "inside_address",
        "inside_port",
        "pid",
        "port",
        "since",
        "url",
    )

    def __init__(
        self,
        port: int,
        inside: tuple[str, int],
        host: tuple[str, int],
        device: tuple[str, int] | None,
        url: str,
        pid: int,
        exe: str,
        since: float,
    ) -> None:
        self.port = port  # as the program asked for it
        self.inside_address, self.inside_port = inside  # as the kernel has it
        self.host_address, self.host_port = host
        self.device_address = device[0] if device else None
        self.device_port = device[1] if device else None
        self.url = url
        self.pid = pid
        self.exe = exe
        self.since = since  # seconds of the wall clock
