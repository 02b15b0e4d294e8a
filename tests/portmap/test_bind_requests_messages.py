"""One request and one reply, as C writes and reads them; anything else is rejected with a reason."""

from __future__ import annotations

import errno
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose import _native
from netsandbox_portmap import bind_requests
from netsandbox_portmap.bind_requests import Request, parse_request, reply

from tests.rig.bind_requests import GOOD, TOKEN, WRONG, request

ffi, lib = _native.ffi, _native.lib


def fields(name):
    return {field: (about.offset, ffi.sizeof(about.type)) for field, about in ffi.typeof(f"struct {name}").fields}


def test_the_messages_are_those_of_the_header():
    assert bind_requests.REQUEST.size == ffi.sizeof("struct ns_request")
    assert bind_requests.REPLY.size == ffi.sizeof("struct ns_reply")
    assert (bind_requests.MAGIC, bind_requests.REQUEST_BIND) == (lib.NS_MAP_MAGIC, lib.NS_REQUEST_BIND)
    assert fields("ns_request") == {
        "magic": (0, 4), "operation": (4, 2), "port": (6, 2), "address": (8, 4), "protocol": (12, 4), "token": (16, 16)
    }  # fmt: skip
    assert fields("ns_reply") == {"magic": (0, 4), "error": (4, 4), "port": (8, 2), "reserved": (10, 2)}


def test_a_request_as_c_writes_it_is_understood():
    made = ffi.new("struct ns_request *")
    made.magic, made.operation, made.port, made.protocol = lib.NS_MAP_MAGIC, lib.NS_REQUEST_BIND, 3000, 17
    made.address, made.token = [127, 0, 0, 1], list(TOKEN)
    understood = parse_request(bytes(ffi.buffer(made)), TOKEN)
    assert isinstance(understood, Request)
    assert (understood.address, understood.port, understood.protocol) == ("127.0.0.1", 3000, 17)


@pytest.mark.parametrize(("error", "port"), [(0, 20000), (0, 65535), (errno.EACCES, 0), (errno.EADDRNOTAVAIL, 0)])
def test_a_reply_is_read_by_c_as_it_was_meant(error, port):
    read = ffi.from_buffer("struct ns_reply *", bytearray(reply(error, port)))
    assert (read.magic, read.error, read.port, read.reserved) == (lib.NS_MAP_MAGIC, error, port, 0)


@given(st.integers(0, 65535), st.binary(min_size=4, max_size=4), st.sampled_from([6, 17]))
def test_whatever_is_asked_comes_through(port, address, protocol):
    understood = parse_request(request(port, socket.inet_ntoa(address), protocol), TOKEN)
    assert isinstance(understood, Request)
    assert (understood.port, socket.inet_aton(understood.address), understood.protocol) == (port, address, protocol)


@pytest.mark.parametrize("word", WRONG)
def test_what_is_wrong_has_a_word(word):
    assert parse_request(WRONG[word], TOKEN) == word


def test_every_shorter_and_every_longer_frame_is_of_the_wrong_length():
    for size in range(100):
        if size != len(GOOD):
            assert parse_request((GOOD * 4)[:size], TOKEN) == "length"


def test_nothing_is_told_apart_before_the_token_is_right():
    assert parse_request(request(operation=9, protocol=9, token=bytes(16)), TOKEN) == "token"


@pytest.mark.attack(185)
@given(st.binary(max_size=64) | st.binary(min_size=32, max_size=32))
def test_no_bytes_upset_the_parser(data):
    """Attack 185: without the token nothing is a request."""
    assert parse_request(data, TOKEN) in ("length", "magic", "token")


@pytest.mark.attack(184)
@given(st.integers(0, 127))
def test_a_token_with_one_bit_wrong_is_wrong(bit):
    """Attack 184."""
    wrong = (int.from_bytes(TOKEN, "big") ^ 1 << bit).to_bytes(16, "big")
    assert parse_request(request(token=wrong), TOKEN) == "token"


@pytest.mark.attack(184)
def test_tokens_are_compared_in_constant_time(monkeypatch):
    """Attack 184: only the interpreter's own comparison is used."""
    compared = []
    monkeypatch.setattr(bind_requests, "compare_digest", lambda *both: compared.append(both))
    assert parse_request(request(), TOKEN) == "token"
    assert compared == [(TOKEN, TOKEN)]
