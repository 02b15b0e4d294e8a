"""The requests of one inspected connection: each is checked, waits for the supervisor's decision, and is recorded when
it ends. mitmproxy's flows are changed here, between its hooks; `inspected` has the sockets and the layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mitmproxy.connection import Server
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers import http

from netsandbox_proxy.inspect import captured, secret_flow
from netsandbox_proxy.inspect.heads import check_request, check_response, counting, plain
from netsandbox_proxy.inspect.refusals import client_certificate_hint, refusal
from netsandbox_proxy.inspect.request_check import Refused, is_unclear
from netsandbox_proxy.inspect.secret_places import HostSecrets


class ConnectionRequests:
    """*owner* is the worker, *number* that of the connection; *numbers* are for its requests."""

    def __init__(
        self, owner: Any, number: int, target: tuple[str, int], secrets: HostSecrets | None, numbers: Iterator[int]
    ) -> None:
        self._owner = owner
        self._number = number
        self._host, self._port = target
        self._secrets = secrets  # None: the session has none
        self._numbers = numbers
        self.waiting: dict[int, http.HttpRequestHeadersHook] = {}  # for a decision

    def report(self, reason: str, detail: str) -> None:
        self._owner.tell({"kind": "refused", "id": self._number, "reason": reason, "detail": plain(detail)})

    def begin(self, hook: http.HttpRequestHeadersHook) -> bool:
        """Whether the supervisor is asked, so that the hook is completed later."""
        flow = hook.flow
        if flow.error is not None:  # mitmproxy answers itself
            self.report("malformed", str(flow.error))
            return False
        request = flow.request
        try:
            check_request(request, self._host, self._port)
            names = secret_flow.find(self._secrets, flow)
        except Refused as error:
            self.report(error.reason, error.detail)
            self._refuse(flow, error.status, error.reason, error.detail)
            return False
        n = flow.metadata["n"] = next(self._numbers)
        self._capture(flow, request, "up")
        self.waiting[n] = hook
        self._owner.tell(
            {
                "kind": "ask",
                "id": self._number,
                "n": n,
                "method": request.data.method.decode("ascii"),  # as it is sent; the property is in upper case
                "target": request.path,
                "unclear": is_unclear(request.data.method, request.headers.fields),
                "secrets": names,
            }
        )
        return True

    def judged(self, n: int, message: dict[str, Any], lost: Server | None) -> commands.StartHook | None:
        """Act on the supervisor's decision on request *n*; the hook that can be completed now. *lost*: the server,
        if it failed, and no other one can take the request."""
        hook = self.waiting.pop(n, None)
        if hook is None:
            return None
        flow = hook.flow
        if message.get("allow") is not True:
            self._refuse(flow, int(message.get("status", 403)), str(message["reason"]), str(message["text"]))
            return hook
        flow.metadata["began"] = self._owner.loop.now()
        if lost is not None and flow.server_conn is lost:
            text = f"{self._host} is allowed, but its certificate or TLS was not accepted ({lost.error})."
            text += f" {client_certificate_hint(self._host)}" if "alert" in str(lost.error) else ""
            self._refuse(flow, 502, "certificate", text)
        else:
            flow.request.stream = secret_flow.put(self._secrets, flow, self._passing(flow, "up"))
        return hook

    def _refuse(self, flow: Any, status: int, reason: str, text: str) -> None:
        flow.metadata["refused"] = True
        flow.response = refusal(flow.request, status, reason, text)
        flow.request.stream = True
        flow.request.headers.pop("expect", None)

    def respond(self, flow: Any) -> None:
        response = flow.response
        if flow.metadata.get("refused"):
            return
        check_response(flow)
        response.headers.pop("alt-svc", None)
        response.stream = self._passing(flow, "down") if response.status_code != 101 else False
        refused = secret_flow.mask(flow)
        if refused is not None:
            self.report(refused.reason, refused.detail)
        self._capture(flow, response, "down")  # without a value of a secret

    def _capture(self, flow: Any, message: Any, side: str) -> None:
        """Tell the head of a request or response, if there is a HAR file."""
        if self._owner.captured is not None:
            self._owner.tell({**captured.head_message(message, side), "id": self._number, "n": flow.metadata["n"]})

    def _passing(self, flow: Any, side: str) -> Any:
        """Passes a body on."""
        passing = counting(flow, side)
        if not self._owner.captured:
            return passing
        place = {"id": self._number, "n": flow.metadata["n"]}
        return captured.Copying(passing, side, self._owner.captured, lambda part: self._owner.tell({**part, **place}))

    def check_trailers(self, flow: Any) -> None:
        secret_flow.check_trailers(self._secrets, flow)

    def end(self, flow: Any) -> None:
        secret_flow.mask_trailers(flow)
        n, began = flow.metadata.get("n"), flow.metadata.get("began")
        if n is None or began is None or flow.metadata.get("ended"):
            return
        flow.metadata["ended"] = True
        status = flow.response.status_code if flow.response is not None else 0
        took = int((self._owner.loop.now() - began) * 1000)
        up, down = flow.metadata.get("up", 0), flow.metadata.get("down", 0)
        ended = {"kind": "request", "id": self._number, "n": n, "status": status, "up": up, "down": down, "ms": took}
        self._owner.tell(ended)
