"""A listener inside is reachable on the host where the strategy puts it, and nowhere else, while it listens."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest
from netsandbox_portmap import acceptor
from netsandbox_portmap.published import Wanted

from tests.rig.publishing import COUNT, forbid, found, refused, talks

# Where


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:0.0.0.0"])
def test_isolate_offers_a_port_of_the_window_and_the_port_itself_on_a_device_that_was_given(
    rig: Any, make: Any, address: str
) -> None:
    server = rig.server()
    publisher, place = make(device_given=True)
    one = found(rig, publisher, address, server.port)
    assert one.host_address == "127.0.0.1"
    assert place.base <= one.host_port < place.base + COUNT - 1
    assert one.device == (place.device, server.port)
    for face in ("127.0.0.1", "::1"):
        assert talks(rig, face, one.host_port)
    assert talks(rig, place.device, server.port)


def test_listening_returns_what_is_newly_published(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, _ = make()

    def tell() -> Any:
        return publisher.listening("127.0.0.1", server.port, requested=server.port, pid=42, exe="/usr/bin/node")

    new = rig.run(tell)
    assert (new.port, new.host_address) == (server.port, "127.0.0.1")
    assert rig.run(tell) is None


def test_a_port_that_the_command_chose_stays_free_for_the_host(rig: Any, make: Any) -> None:
    """One loopback address would take it from every program that binds all addresses."""
    server = rig.server()
    publisher, place = make()
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert one.device_address is None
    assert refused(place.device, server.port)


@pytest.mark.parametrize("address", ["::1", "::"])
def test_an_ipv6_listener_is_found_by_ipv4_too(rig: Any, make: Any, address: str) -> None:
    server = rig.server(address="::1")
    publisher, _ = make()
    one = found(rig, publisher, address, server.port)
    assert talks(rig, "127.0.0.1", one.host_port)
    assert talks(rig, "::1", one.host_port)


def test_rewire_port_offers_only_the_window(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, place = make("rewire-port")
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert one.device_address is None
    assert refused(place.device, server.port)
    assert talks(rig, "::1", one.host_port)


def test_rewire_device_offers_only_the_device(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, place = make("rewire-device")
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert (one.host_address, one.host_port) == (place.device, server.port)
    assert one.device == (place.device, server.port)
    assert talks(rig, place.device, server.port)


def test_fail_offers_the_same_number(rig: Any, make: Any, speak: Any) -> None:
    server = rig.server(address="127.0.0.9", port=speak.free_range(1))  # stands for the session's own 127.0.0.1
    publisher, _ = make("fail", by_name_port=None)
    one = found(rig, publisher, "127.0.0.9", server.port)
    assert (one.host_address, one.host_port) == ("127.0.0.1", server.port)
    assert one.url == f"http://127.0.0.1:{server.port}/"
    assert talks(rig, "127.0.0.1", server.port)
    assert talks(rig, "::1", server.port)


def test_fail_with_a_device_offers_the_device(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, place = make("fail", device_given=True)
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert (one.host_address, one.host_port) == (place.device, server.port)


def test_the_host_binds_loopback_only(rig: Any, make: Any) -> None:
    """INV-7"""
    server = rig.server()
    publisher, _ = make(device_given=True)
    before = set(listeners())
    found(rig, publisher, "0.0.0.0", server.port)
    opened = set(listeners()) - before
    assert len(opened) == 3
    assert all(address.startswith("127.") or address == "::1" for address, _ in opened)


def listeners() -> list[tuple[str, int]]:
    """The listening sockets of this process."""
    result = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                continue
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
        with socket.socket(fileno=os.dup(int(fd))) as sock:
            if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.getsockopt(
                socket.SOL_SOCKET, socket.SO_ACCEPTCONN
            ):
                result.append(sock.getsockname()[:2])
    return result


# What


@pytest.mark.parametrize("address", ["192.0.2.1", "fe80::1", "::ffff:192.0.2.1", "2001:db8::1"])
def test_what_is_not_for_loopback_is_not_published(rig: Any, make: Any, address: str) -> None:
    publisher, _ = make()
    assert found(rig, publisher, address, 3000) is None
    assert rig.notes == []


def test_our_own_doors_are_not_published(rig: Any, make: Any) -> None:
    publisher, _ = make(ours={1011})
    assert found(rig, publisher, "127.0.0.1", 1011) is None


def test_once_there_is_a_list_only_the_list_is_published(rig: Any, make: Any) -> None:
    server, other = rig.server(), rig.server()
    publisher, place = make(wanted=Wanted(automatic=False, fixed={server.port: None}))
    assert found(rig, publisher, "127.0.0.1", other.port) is None
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert place.base <= one.host_port < place.base + COUNT


def test_without_publishing_nothing_is(rig: Any, make: Any) -> None:
    publisher, _ = make(wanted=Wanted(automatic=False))
    assert found(rig, publisher, "127.0.0.1", rig.server().port) is None


def test_the_asked_port_names_it_and_the_real_one_is_reached(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, place = make("rewire-port")
    one = found(rig, publisher, "127.0.0.1", server.port, requested=3000)
    assert one.host_port == place.base + 3000 % COUNT
    assert (one.port, one.inside_port) == (3000, server.port)
    assert talks(rig, "127.0.0.1", one.host_port)


# Conflicts


def test_a_privileged_face_is_left_out_and_the_window_stays(
    rig: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = rig.server()
    publisher, place = make()
    monkeypatch.setattr(acceptor, "bind", forbid(acceptor.bind, lambda address, port: address == place.device))
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert one.device_address is None
    assert talks(rig, "127.0.0.1", one.host_port)


def test_a_host_without_ipv6_has_the_other_face(rig: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = rig.server()
    real = acceptor.bind

    def attempt(address: str, port: int) -> Any:
        if ":" in address:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return real(address, port)

    monkeypatch.setattr(acceptor, "bind", attempt)
    publisher, _ = make("rewire-port")
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert talks(rig, "127.0.0.1", one.host_port)


@pytest.mark.parametrize("face", ["127.0.0.1", "::1"])
def test_a_port_taken_on_the_host_is_passed_over(rig: Any, make: Any, face: str) -> None:
    server = rig.server()
    publisher, place = make()
    preferred = place.base + server.port % COUNT
    if preferred == place.base + COUNT - 1:
        preferred = place.base
    assert publisher._assignment.assign(server.port) == preferred
    rig.server(address=face, port=preferred)  # between the assignment and the listener
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert one.host_port != preferred
    assert talks(rig, "127.0.0.1", one.host_port)


def test_a_full_window_is_recorded_once_and_the_others_stay(rig: Any, make: Any) -> None:
    servers = [rig.server() for _ in range(COUNT)]
    publisher, place = make("rewire-port")
    published = [found(rig, publisher, "127.0.0.1", server.port) for server in servers]
    assert published[-1] is None
    assert {one.host_port for one in published[:-1]} == set(range(place.base, place.base + COUNT - 1))
    found(rig, publisher, "127.0.0.1", servers[-1].port)
    denials = [note for note in rig.notes if note["verdict"] == "deny"]
    assert [(note["reason"], note["port"]) for note in denials] == [("window-full", servers[-1].port)]
    assert talks(rig, "127.0.0.1", published[0].host_port)


def test_numbers_of_those_that_are_gone_are_used_again(rig: Any, make: Any) -> None:
    """A test suite opens and closes more servers than the window has ports."""
    publisher, place = make("rewire-port")
    seen = []
    for _ in range(3 * COUNT):
        server = rig.server()
        one = found(rig, publisher, "127.0.0.1", server.port)
        seen.append(one.host_port)
        rig.run(lambda: publisher.check(set))
    assert set(seen) == set(range(place.base, place.base + COUNT - 1))


def test_without_a_record_nothing_is_offered(rig: Any, make: Any) -> None:
    """INV-5"""
    server = rig.server()
    publisher, place = make("rewire-device", note=lambda *args, **fields: False)
    assert found(rig, publisher, "127.0.0.1", server.port) is None
    assert refused(place.device, server.port)


def test_without_descriptors_it_is_refused_and_no_port_is_lost(
    rig: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = rig.server()
    publisher, _ = make("rewire-port")
    real = acceptor.bind

    def exhausted(address: str, port: int) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(acceptor, "bind", exhausted)
    assert found(rig, publisher, "127.0.0.1", server.port) is None
    number = publisher._assignment.port_of(server.port)
    monkeypatch.setattr(acceptor, "bind", real)
    assert found(rig, publisher, "127.0.0.1", server.port).host_port == number


def test_a_url_says_https_once_a_connection_has_shown_it(rig: Any, make: Any) -> None:
    """And http again for a server that gave TLS up, or that listens anew."""
    server = rig.server()
    publisher, _ = make()
    learned: list[int] = []
    publisher.on_tls = learned.append
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert one.url.startswith("http://shop.localhost:")
    for _ in range(2):
        publisher.learn_tls(server.port, speaks=True)
    assert publisher.url(server.port) == one.url.replace("http", "https", 1)
    assert (learned, publisher.speaks_tls(server.port)) == ([server.port], True)
    publisher.learn_tls(server.port, speaks=False)
    assert publisher.url(server.port) == one.url
    publisher.learn_tls(1, speaks=True)
    assert not publisher.speaks_tls(1)
