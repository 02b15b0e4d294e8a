"""The call to systemd, as bytes. What systemd makes of it was tried in a virtual machine."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.systemd_scope import check_reply, reply_length, scope_call, start_scope

LIMITS = {"memory": 2 << 30, "processes": 500, "cpu": 150}


class Reader:
    """Reads values as the specification of D-Bus says, independently of the writer."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def value(self, signature: str) -> object:
        kind = signature[0]
        if kind == "y":
            self.at += 1
            return self.data[self.at - 1]
        if kind in "ut":
            size = 4 if kind == "u" else 8
            self.align(size)
            self.at += size
            return int.from_bytes(self.data[self.at - size : self.at], "little")
        if kind in "so":
            length = self.value("u")
            assert isinstance(length, int)
            self.at += length + 1
            assert self.data[self.at - 1] == 0
            return self.data[self.at - 1 - length : self.at - 1].decode()
        if kind == "g":
            length = self.data[self.at]
            self.at += length + 2
            return self.data[self.at - 1 - length : self.at - 1].decode()
        if kind == "v":
            inner = self.value("g")
            assert isinstance(inner, str)
            return self.value(inner)
        assert kind == "a", signature
        length = self.value("u")
        assert isinstance(length, int)
        item = signature[1:]
        self.align(8 if item[0] == "(" else {"u": 4}[item[0]])
        end, found = self.at + length, []
        while self.at < end:
            found.append(self.struct(item) if item[0] == "(" else self.value(item))
        assert self.at == end
        return found

    def struct(self, signature: str) -> tuple[object, ...]:
        self.align(8)
        return tuple(self.value(each) for each in {"(sv)": ["s", "v"], "(yv)": ["y", "v"]}[signature])

    def align(self, size: int) -> None:
        self.at += -self.at % size


def read(call: bytes) -> tuple[dict[object, object], str, str, dict[object, object]]:
    assert call[:4] == b"l\1\0\1"
    fields = Reader(call, 12)
    header = dict(fields.value("a(yv)"))  # type: ignore[call-overload]
    fields.align(8)
    body = Reader(call[fields.at :])
    assert len(body.data) == int.from_bytes(call[4:8], "little") == len(call) - fields.at
    unit, mode = body.value("s"), body.value("s")
    properties = dict(body.value("a(sv)"))  # type: ignore[call-overload]
    assert body.value("a(sa(sv))") == []
    assert body.at == len(body.data)
    return header, str(unit), str(mode), properties


def test_the_call_has_the_limits_as_properties() -> None:
    header, unit, mode, properties = read(scope_call("netsandbox-x.scope", 4711, LIMITS))
    assert header == {
        1: "/org/freedesktop/systemd1",
        2: "org.freedesktop.systemd1.Manager",
        3: "StartTransientUnit",
        6: "org.freedesktop.systemd1",
        8: "ssa(sv)a(sa(sv))",
    }
    assert (unit, mode) == ("netsandbox-x.scope", "fail")
    assert properties == {
        "MemoryMax": 2 << 30,
        "MemorySwapMax": 0,
        "TasksMax": 502,
        "CPUQuotaPerSecUSec": 1_500_000,
        "CollectMode": "inactive-or-failed",
        "PIDs": [4711],
    }


@given(
    st.text("abc-", min_size=1, max_size=40),
    st.integers(1, 2**31),
    st.dictionaries(st.sampled_from(sorted(LIMITS)), st.integers(1, 2**50)),
)
def test_every_call_reads_back(name: str, pid: int, limits: dict[str, int]) -> None:
    _, unit, _, properties = read(scope_call(f"{name}.scope", pid, limits))
    assert unit == f"{name}.scope"
    assert properties["PIDs"] == [pid]
    assert ("MemoryMax" in properties) == ("memory" in limits)


def reply(kind: int, text: str = "") -> bytes:
    body = len(text.encode()).to_bytes(4, "little") + text.encode() + b"\0" if text else b""
    return b"l" + bytes([kind, 0, 1]) + len(body).to_bytes(4, "little") + bytes(4) + bytes(4) + body


def test_an_error_of_systemd_is_told() -> None:
    check_reply(reply(2))
    with pytest.raises(OSError, match="Access denied"):
        check_reply(reply(3, "Access denied"))
    with pytest.raises(OSError, match="no answer"):
        check_reply(reply(9))


@given(st.binary(max_size=64))
def test_any_bytes_are_a_reply_or_an_error(data: bytes) -> None:
    try:
        length = reply_length(data)
        if length is not None and length <= len(data):
            check_reply(data[:length])
    except OSError:
        pass


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ((b"OK 00\r\n", reply(2)), None),
        ((b"OK 00\r\n", reply(4, "news") + reply(4) + reply(2)), None),
        ((b"OK 00\r\n", reply(4, "news") + reply(3, "no")), "says 'no'"),
        ((b"REJECTED EXTERNAL\r\n",), "refused us"),
        ((b"OK 00\r\n", reply(3, "no")), "says 'no'"),
        ((b"OK 00\r\n", b"l\2\0"), "closed the connection"),
        ((b"OK 00\r\n", b"HTTP/1.1 200 OK\r\n"), "something else"),
    ],
)
def test_a_manager_that_answers(tmp_path: Path, answers: tuple[bytes, ...], error: str | None) -> None:
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "private"))
        listener.listen()

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                for answer in answers:
                    heard.append(peer.recv(65536))
                    peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            if error is None:
                start_scope(str(tmp_path / "private"), "u.scope", 1, {})
            else:
                with pytest.raises(OSError, match=error):
                    start_scope(str(tmp_path / "private"), "u.scope", 1, {})
        finally:
            thread.join()
    assert heard[0] == b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n"
