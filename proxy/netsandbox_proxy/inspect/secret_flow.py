"""Secrets on their way through one exchange of the worker: found in a request, put into it, masked in its answer.

`find` comes before the supervisor is asked, and `put` after it allowed the request. What an answer must not show is
kept with the exchange.
"""

from __future__ import annotations

from typing import Any

from netsandbox_proxy.inspect.request_check import Refused
from netsandbox_proxy.inspect.secret_places import (
    MISPLACED,
    UNMASKABLE,
    HostSecrets,
    PlacedHead,
    Placeholders,
    Secret,
    masked,
    masked_fields,
    unmaskable,
)
from netsandbox_proxy.inspect.stream_replace import StreamReplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Pass = Callable[[bytes], bytes]

PLACED = "placed"  # in the metadata of an exchange
BODILESS = (204, 304)


def host_secrets(placeholders: dict[str, str], messages: list[dict[str, Any]]) -> HostSecrets | None:
    """The secrets of a connection's host, as the supervisor sends them; None if the session has none."""
    if not placeholders:
        return None
    secrets = [
        Secret(each["name"], (placeholders[each["name"]], each["value"]), each["places"], passes_in_body=each["body"])
        for each in messages
    ]
    return HostSecrets(Placeholders(placeholders), secrets)


def find(secrets: HostSecrets | None, flow: Any) -> list[str]:
    """The names of the secrets that the request would get; `Refused` for a placeholder elsewhere in its head."""
    if secrets is None:
        return []
    placed = flow.metadata[PLACED] = secrets.placed(flow.request.data.path, flow.request.headers.fields)
    return list(placed.names)


def put(secrets: HostSecrets | None, flow: Any, count: Pass) -> Pass:
    """Put the values into the head. Returns what passes on the parts of the body, which have no placeholder."""
    if secrets is None:
        return count
    placed: PlacedHead = flow.metadata[PLACED]
    flow.request.data.path = placed.target
    flow.request.headers.fields = tuple(placed.fields)
    search = secrets.body_search()
    if search is None:
        return count

    def pass_on(data: bytes) -> bytes:
        fault = search.feed(data)
        if fault is not None:  # ends the connection
            raise Refused(403, MISPLACED, fault)
        return count(data)

    return pass_on


def check_trailers(secrets: HostSecrets | None, flow: Any) -> None:
    """`Refused` for a placeholder in the trailers of a request."""
    if secrets is not None and flow.request.trailers:
        secrets.check_trailers(flow.request.trailers.fields)


def mask(flow: Any) -> Refused | None:
    """Mask an answer; one that cannot be masked becomes a refusal, which is returned."""
    placed: PlacedHead | None = flow.metadata.get(PLACED)
    if placed is None or not placed.pairs:
        return None
    response = flow.response
    has_body = flow.request.method != "HEAD" and response.status_code not in BODILESS
    detail = unmaskable(response.status_code, response.headers.fields) if placed.names and has_body else None
    if detail is not None:
        return _refuse(flow, detail)
    response.headers.fields = tuple(masked_fields(response.headers.fields, placed.pairs))
    response.data.reason = masked(response.data.reason, placed.pairs)
    if response.stream:
        response.stream = _masking(StreamReplace(placed.pairs), response.stream)
    return None


def mask_trailers(flow: Any) -> None:
    placed: PlacedHead | None = flow.metadata.get(PLACED)
    if placed is not None and flow.response is not None and flow.response.trailers:
        trailers = flow.response.trailers
        trailers.fields = tuple(masked_fields(trailers.fields, placed.pairs))


def _masking(search: StreamReplace, count: Pass) -> Callable[[bytes], list[bytes]]:
    """The part without bytes marks the end. An empty part must not be sent: it would be the end of the body."""

    def pass_on(data: bytes) -> list[bytes]:
        made = search.feed(data) if data else search.end()
        return [count(made)] if made else []

    return pass_on


def _refuse(flow: Any, detail: str) -> Refused:
    """Replace the answer by ours, which ends with the connection, and drop its body as it comes."""
    refused = Refused(502, UNMASKABLE, detail)
    if flow.response.status_code == 101:
        raise refused
    text = [f"netsandbox: {detail}\n".encode("ascii")]
    fields = ((b"content-type", b"text/plain; charset=us-ascii"), (b"cache-control", b"no-store"))
    flow.response.status_code = refused.status
    flow.response.data.reason = b""
    flow.response.headers.fields = (*fields, (b"x-netsandbox-reason", UNMASKABLE.encode("ascii")))
    flow.response.stream = lambda data: [text.pop()] if text else []
    return refused
