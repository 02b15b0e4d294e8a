"""A WebSocket client for the tests (RFC 6455): text both ways, in frames of at most 64 KiB."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
from types import TracebackType

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, FINAL, MASKED = 1, 0x80, 0x80


class WebSocket:
    """Connects to ADDRESS:PORT and asks for HOST, as a browser that shows a page of HOST does."""

    def __init__(
        self, address: str, port: int, host: str, path: str = "/", protocol: str | None = None, timeout: float = 20
    ) -> None:
        self._socket = socket.create_connection((address, port), timeout)
        self._reader = self._socket.makefile("rb")
        key = base64.b64encode(os.urandom(16))
        fields = [f"Host: {host}", f"Origin: http://{host}", "Upgrade: websocket", "Connection: Upgrade"]
        fields += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key.decode()}"]
        fields += [f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []
        self._socket.sendall("\r\n".join([f"GET {path} HTTP/1.1", *fields, "", ""]).encode())
        self._check(self._head(), base64.b64encode(hashlib.sha1(key + GUID).digest()))

    def __enter__(self) -> WebSocket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()
        self._socket.close()

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        assert len(data) < 126
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self._socket.sendall(bytes([FINAL | TEXT, MASKED | len(data)]) + mask + masked)

    def receive(self) -> str:
        """The next text; other frames are passed over."""
        for _ in range(100):
            kind, size = self._reader.read(2)
            if size == 126:
                size = int.from_bytes(self._reader.read(2), "big")
            data = self._reader.read(size)
            if kind == FINAL | TEXT:
                return data.decode()
        raise AssertionError("a hundred frames and no text")

    def _head(self) -> list[bytes]:
        lines = []
        while line := self._reader.readline().strip():
            lines.append(line)
        return lines

    @staticmethod
    def _check(lines: list[bytes], proof: bytes) -> None:
        assert lines, "hung up"
        assert lines[0].startswith(b"HTTP/1.1 101 "), lines
        assert any(line.lower().startswith(b"sec-websocket-accept:") and line.endswith(proof) for line in lines), lines
