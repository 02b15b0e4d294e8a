"""One inspected connection: its sockets on one side, mitmproxy's layers on the other.

The layers get events (bytes, a close, the completion of a command) and give commands. Rules:

1. A request waits for the supervisor's decision before anything of it goes on; bytes behind it wait in the kernel.
2. Each direction holds a bounded number of bytes. Beyond that the other side is not read. A side whose own window is
   shut is read on, since only it can open the window (attack: a client that never does).
3. Any exception in a layer closes both sides; the peer sees a reset rather than the end of a message (INV-1).
4. `OpenConnection` for anything but the decided host is an error.
5. With a budget, no byte goes to the server or is taken from it before the supervisor has counted it.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from mitmproxy.connection import Connection, ConnectionState, Server
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers import http, tls
from mitmproxy.proxy.layers.http import _http1, _http2

from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.stream import Stream
from netsandbox_proxy.inspect import layers
from netsandbox_proxy.inspect.allowance import Allowance
from netsandbox_proxy.inspect.connection_requests import ConnectionRequests
from netsandbox_proxy.inspect.request_check import MAX_HEAD, Refused
from netsandbox_proxy.inspect.secret_places import HostSecrets
from netsandbox_proxy.inspect.side import MAX_WAITING, Side
from netsandbox_proxy.inspect.strict_http import Fault
from netsandbox_proxy.inspect.tls_contexts import HTTP1, HTTP2, TlsContexts

MAX_PARSING = MAX_HEAD  # bytes of one side that no layer could use yet


class Inspected:
    """*owner* is the worker: it passes messages to the supervisor."""

    def __init__(
        self,
        owner: Any,
        number: int,
        target: tuple[str, int],
        streams: tuple[Stream, Stream],
        secrets: HostSecrets | None,
        *,
        metered: bool,
    ) -> None:
        self._owner = owner
        self.number = number
        self.host, self.port = target
        self._contexts: TlsContexts = owner.contexts
        self.context, self._top = layers.stack(self.host, self.port)
        self._sides: dict[Connection, Side] = {}
        self._http: http.HttpLayer | None = None
        self._protocol: bytes | None = None  # the client's, as chosen from its offers
        self._numbers = count(1)  # of requests and dials
        self._requests = ConnectionRequests(owner, number, target, secrets, self._numbers)
        self._dials: dict[int, commands.OpenConnection] = {}
        self._events: list[events.Event] = []  # the first is being handled
        self._up = 0  # bytes to the server, and from it
        self._down = 0
        self._allowance = Allowance(self._spend) if metered else None
        self._has_more = False  # the client has sent more while a decision is awaited
        self.closed = False
        self.used = owner.loop.now()
        self._add(streams[0], self.context.client)
        self._add(streams[1], self.context.server)

    def begin(self, hello: bytes) -> None:
        self.feed(events.Start())
        if hello and not self.closed:
            self.feed(events.DataReceived(self.context.client, hello))
        self._settle()

    def _add(self, stream: Stream, connection: Connection) -> Side:
        limit = None if connection is self.context.client else self._allowance
        side = self._sides[connection] = Side(stream, connection, limit)
        stream.on_ready = lambda ready: self._on_ready(side, ready)
        stream.on_failure = lambda: self._fail(side)
        return side

    # From the layers

    def feed(self, event: events.Event) -> None:
        """Pass an event to the layers and carry out their commands. Events that come of that follow in their order."""
        self._events.append(event)
        if len(self._events) > 1:
            return
        try:
            while self._events and not self.closed:
                for command in self._top.handle_event(self._events[0]):
                    self._obey(command)
                self._events.pop(0)
        except Exception as error:  # a fault of a layer, or a message it cannot take
            self._owner.fault(self, error)
            self.abort()

    def _obey(self, command: commands.Command) -> None:
        if isinstance(command, commands.SendData):
            side = self._sides.get(command.connection)
            if side is not None and not side.stream.closed:
                side.waiting += command.data
        elif isinstance(command, commands.CloseConnection):
            half = isinstance(command, commands.CloseTcpConnection) and command.half_close
            self._close_side(command.connection, half=half)
        elif isinstance(command, commands.OpenConnection):
            self._dial(command)
        elif isinstance(command, commands.StartHook):
            self._hook(command)
        elif isinstance(command, Fault):
            self._requests.report("malformed", command.text)
        elif isinstance(command, commands.RequestWakeup):
            self._owner.loop.call_later(command.delay, lambda: self._wake(command))

    def _wake(self, command: commands.RequestWakeup) -> None:
        if not self.closed:
            self.feed(events.Wakeup(command))
            self._settle()

    def _dial(self, command: commands.OpenConnection) -> None:
        if command.connection.address != (self.host, self.port):
            raise Refused(502, "internal", "a connection to another host")
        n = next(self._numbers)
        self._dials[n] = command
        self._owner.tell({"kind": "dial", "id": self.number, "n": n})

    def dialled(self, n: int, stream: Stream | None) -> None:
        """The supervisor's answer to a `dial`."""
        command = self._dials.pop(n, None)
        if command is None or self.closed:
            if stream is not None:
                stream.close()
            return
        if stream is None:
            command.connection.error = "the server could not be reached"
            self.feed(events.OpenConnectionCompleted(command, command.connection.error))
        else:
            layers.mark_open(command.connection)
            self._add(stream, command.connection)
            self.feed(events.OpenConnectionCompleted(command, None))
        self._settle()

    # Hooks

    def _hook(self, hook: commands.StartHook) -> None:
        if isinstance(hook, http.HttpRequestHeadersHook):
            if self._requests.begin(hook):
                return
        elif isinstance(hook, tls.TlsClienthelloHook):
            self._on_hello(hook.data)
        elif isinstance(hook, tls.TlsStartClientHook):
            hook.data.ssl_conn = self._contexts.to_client(self.host, self._protocol)
        elif isinstance(hook, tls.TlsStartServerHook):
            hook.data.ssl_conn = self._contexts.to_server(self.host, self._protocol or HTTP1)
        elif isinstance(hook, tls.TlsFailedClientHook):
            self._requests.report("client-tls", str(self.context.client.error))
        elif isinstance(hook, tls.TlsFailedServerHook):
            self._requests.report("certificate", str(hook.data.conn.error))
        elif isinstance(hook, layer.NextLayerHook):
            self._http = http.HttpLayer(hook.data.context, http.HTTPMode.transparent)
            hook.data.layer = self._http
        elif isinstance(hook, http.HttpResponseHeadersHook):
            self._requests.respond(hook.flow)
        elif isinstance(hook, http.HttpRequestHook):
            self._requests.check_trailers(hook.flow)
        elif isinstance(hook, http.HttpResponseHook | http.HttpErrorHook):
            self._requests.end(hook.flow)
        if hook.blocking:
            self.feed(events.HookCompleted(hook))

    def _on_hello(self, hello: Any) -> None:
        hello.establish_server_tls_first = True
        offers = hello.client_hello.alpn_protocols
        self._protocol = HTTP1 if HTTP1 in offers or HTTP2 not in offers else HTTP2
        if (hello.client_hello.sni or self.host).lower().removesuffix(".") != self.host:
            raise Refused(421, "sni-mismatch", "a second hello names another host")

    def judged(self, n: int, message: dict[str, Any]) -> None:
        """The supervisor's decision on request *n*."""
        hook = None if self.closed else self._requests.judged(n, message, self._lost_server())
        if hook is not None:
            self.feed(events.HookCompleted(hook))
            self._settle()

    def _lost_server(self) -> Server | None:
        """The server of the connection, if it failed and there is no other one."""
        server, made = self.context.server, self._http
        if not server.error or made is None:
            return None
        return None if any(isinstance(each, Server) and each.connected for each in made.connections) else server

    # From the sockets

    def _on_ready(self, side: Side, ready: int) -> None:
        self.used = self._owner.loop.now()
        if ready & OUT:
            self._send(side)
        if ready & ~OUT and not side.stream.closed and side.stream.events & IN:
            if side.connection is self.context.client and self._is_busy():
                self._has_more = True
            else:
                self._read(side)
        self._settle()

    def _is_busy(self) -> bool:
        """Whether something must be decided or connected before the client is read on."""
        return bool(self._requests.waiting or self._dials or (self._http and self._http.waiting_for_establishment))

    def _read(self, side: Side) -> None:
        data = side.read()
        if data is None:
            return
        if data:
            if side.connection is not self.context.client:
                self._down += len(data)
            side.unchecked += len(data)
            self.feed(events.DataReceived(side.connection, data))
            if side.unchecked > MAX_HEAD:
                self._bound(side)
            return
        side.has_ended = True
        side.connection.state &= ~ConnectionState.CAN_READ
        self.feed(events.ConnectionClosed(side.connection))

    def _spend(self, up: int, down: int) -> None:
        passed = {"sent": self._up, "read": self._down}
        self._owner.tell({"kind": "spend", "id": self.number, "up": up, "down": down, **passed})

    def allowed(self, up: int, down: int) -> None:
        """The supervisor's answer to a `spend`."""
        if self._allowance is not None and not self.closed:
            self._allowance.up.add(up)
            self._allowance.down.add(down)
            self._settle()

    def _bound(self, side: Side) -> None:
        """Close what sends bytes that no layer can use: a head, or the size of a chunk, without an end."""
        side.unchecked = 0
        parser = self._parser(side.connection)
        if isinstance(parser, _http1.Http1Connection) and len(parser.buf) > MAX_PARSING:
            self._requests.report("malformed", "a head without an end")
            self.abort()

    def _parser(self, connection: Connection) -> Any:
        found = None if self._http is None else self._http.connections.get(connection)
        return found.context.layers[-1] if isinstance(found, tls.TLSLayer | http.HttpClient) else found

    def _send(self, side: Side) -> None:
        if side.waiting and not side.stream.closed:
            sent = side.send()
            if side.connection is not self.context.client:
                self._up += sent
        if not side.waiting and side.is_ending:
            side.finish()

    def _close_side(self, connection: Connection, *, half: bool) -> None:
        side = self._sides.get(connection)
        connection.state &= ~(ConnectionState.CAN_WRITE if half else ConnectionState.OPEN)
        if side is None:
            return
        side.is_ending = True
        if not half:
            side.has_ended = True
        if not side.waiting:
            side.finish()

    def _settle(self) -> None:
        """Send, watch what must be watched, and end if the client is gone."""
        if self.closed:
            return None
        for side in tuple(self._sides.values()):
            try:
                self._send(side)
            except OSError:
                return self._fail(side)
        client = self._sides[self.context.client]
        if client.stream.closed:
            return self.end("http")
        held = self._held(client.connection)
        # A client that waits for its answer is not read either way, so it is watched on, which saves two system calls
        # of each request. One that sends more meanwhile is not.
        self._has_more = self._has_more and self._is_busy()
        up = max((len(s.waiting) + self._held(c) for c, s in self._sides.items() if s is not client), default=0)
        client.watch(reads=not self._has_more and up < MAX_WAITING)
        for side in tuple(self._sides.values()):
            if not side.stream.closed and side is not client:
                side.watch(reads=len(client.waiting) + held < MAX_WAITING)
            elif side.stream.closed and side.connection is not self.context.server:
                del self._sides[side.connection]
        return None

    def _held(self, connection: Connection) -> int:
        """Bytes that wait for the window of an HTTP/2 peer."""
        if self._protocol != HTTP2:
            return 0
        parser = self._parser(connection)
        if not isinstance(parser, _http2.Http2Connection):
            return 0
        return sum(len(each.data) for queue in parser.h2_conn.stream_buffers.values() for each in queue)

    def _fail(self, side: Side) -> None:
        """A socket is broken. A server's counts as closed, since there may be another one; the client's is the end."""
        if side.connection is self.context.client:
            return self.abort()
        side.waiting.clear()
        side.is_ending = True
        was_open, side.has_ended = not side.has_ended, True
        side.close()
        side.connection.state = ConnectionState.CLOSED
        if was_open and not self.closed:
            self.feed(events.ConnectionClosed(side.connection))
        return self._settle()

    # The end

    def abort(self) -> None:
        self.end("reset")

    def end(self, outcome: str) -> None:
        if self.closed:
            return
        self.closed = True
        for side in self._sides.values():
            if outcome == "http":
                side.close()
            else:
                side.stream.close()  # the supervisor resets its copy
        self._sides.clear()
        self._owner.ended(self, self._up, self._down, outcome)
