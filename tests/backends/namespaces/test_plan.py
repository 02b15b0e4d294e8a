"""The plan, read back by a reader that knows only the format of netsandbox/backends/namespaces/native/plan.h."""

from __future__ import annotations

import os
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap import DATAGRAM_PORT, DNS_PORT, MIXED_PORT, REQUESTS_PORT, TRANSPARENT_PORT

from netsandbox.backends.namespaces import plan

BIND, READ_ONLY, OPTIONAL = 1, 2, 4
paths = st.lists(
    st.binary(min_size=1, max_size=20)
    .filter(lambda name: b"\0" not in name)
    .map(lambda name: os.fsdecode(b"/" + name)),
    max_size=5,
).map(tuple)


def read(data: bytes) -> list[tuple[str, bytes]]:
    steps = []
    while data:
        operation, length = struct.unpack_from("=cI", data)
        assert length <= len(data) - 5
        steps.append((operation.decode(), data[5 : 5 + length]))
        data = data[5 + length :]
    return steps


def mounts(steps: list[tuple[str, bytes]]) -> list[tuple[int, bytes, bytes, bytes, bytes]]:
    found = []
    for operation, payload in steps:
        if operation == "M":
            source, target, kind, options, rest = payload[4:].split(b"\0")
            assert rest == b""
            found.append((int.from_bytes(payload[:4], "little"), source, target, kind, options))
    return found


def view(**changes: Any) -> plan.View:
    return plan.View(**{"uid": 1000, "gid": 1001, "files": (), "hidden": (), "read_only": (), **changes})


def test_the_order_is_identity_mounts_network_doors_filter() -> None:
    operations = "".join(operation for operation, _ in read(plan.build(view(), b"F" * 8)))
    assert operations.startswith("IM")
    assert operations.strip("IM").startswith("KKD")
    assert operations.endswith("BF")
    assert operations.count("D") == operations.count("B") == len(plan.doors())


def test_who_the_session_is_and_its_filter_are_carried_unchanged() -> None:
    steps = read(plan.build(view(), bytes(range(64))))
    assert steps[0] == ("I", struct.pack("=II", 1000, 1001))
    assert steps[-1] == ("F", bytes(range(64)))


def test_proc_is_private_and_the_kernels_switches_are_read_only() -> None:
    """124: /proc/sys with core_pattern, sysrq-trigger and /sys; INV-8 for what the view names."""
    found = mounts(read(plan.build(view(), b"")))
    assert found[0] == (READ_ONLY, b"proc", b"/proc", b"proc", b"")
    read_only = {target for flags, source, target, *_ in found if flags & READ_ONLY and source == target}
    assert b"/sys" in read_only
    assert (OPTIONAL, b"tmpfs", b"/dev/shm", b"tmpfs", b"mode=1777") in found


@given(read_only=paths, hidden=paths, files=paths)
def test_any_path_a_file_system_can_have_arrives_byte_for_byte(
    read_only: tuple[str, ...], hidden: tuple[str, ...], files: tuple[str, ...]
) -> None:
    pairs = tuple((path, path + "2") for path in files)
    found = mounts(read(plan.build(view(read_only=read_only, hidden=hidden, files=pairs), b"")))
    for path in read_only:
        assert (BIND | READ_ONLY, os.fsencode(path), os.fsencode(path), b"", b"") in found
    for path in hidden:
        assert (READ_ONLY, b"tmpfs", os.fsencode(path), b"tmpfs", b"mode=0555,size=4k") in found
    for ours, theirs in pairs:
        assert (BIND | READ_ONLY | OPTIONAL, os.fsencode(ours), os.fsencode(theirs), b"", b"") in found


@given(covered=paths, writable=paths)
def test_what_is_hidden_and_where_is_written_arrive_byte_for_byte(
    covered: tuple[str, ...], writable: tuple[str, ...]
) -> None:
    pairs = tuple(("/nothing", path) for path in covered)
    steps = read(plan.build(view(covered=pairs, writable=writable), b""))
    for path in covered:
        assert (BIND | READ_ONLY, b"/nothing", os.fsencode(path), b"", b"") in mounts(steps)
    assert [payload for operation, payload in steps if operation == "W"] == [
        b"".join(os.fsencode(path) + b"\0" for path in writable)
    ]


def test_writing_is_confined_after_every_mount_and_only_if_it_is_to_be() -> None:
    """What is read-only or hidden by then is copied as it is."""
    operations = "".join(operation for operation, _ in read(plan.build(view(writable=()), b"")))
    assert operations.lstrip("IM").startswith("WK")
    assert "W" not in "".join(operation for operation, _ in read(plan.build(view(), b"")))


def test_folders_are_pinned_before_anything_is_laid_over_them() -> None:
    found = mounts(read(plan.build(view(pinned=("/a", "/a/b"), hidden=("/a/b/c",)), b"")))
    assert [target for _, _, target, *_ in found][:3] == [b"/a", b"/a/b", b"/proc"]


def test_what_protects_our_own_files_may_not_be_skipped() -> None:
    """INV-1, INV-8: a state folder or a log that cannot be covered stops the session."""
    found = mounts(read(plan.build(view(hidden=("/state",), read_only=("/log",)), b"")))
    assert all(not flags & OPTIONAL for flags, _, target, *_ in found if target in (b"/state", b"/log"))


def test_the_network_is_configured_before_the_doors_open() -> None:
    network = [payload for operation, payload in read(plan.build(view(), b"")) if operation == "K"]
    assert network == [
        struct.pack("=II", 0, plan.ROUTE_ACKNOWLEDGEMENTS) + plan.ROUTE,
        struct.pack("=II", 12, plan.FILTER_ACKNOWLEDGEMENTS) + plan.FILTER,
    ]


def test_doors_stand_where_the_rules_send_to_and_only_the_proxy_port_is_on_loopback_alone() -> None:
    doors = [struct.unpack("=5I", payload) for operation, payload in read(plan.build(view(), b"")) if operation == "D"]
    assert {port for _, _, port, _, _ in doors} == {
        MIXED_PORT,
        TRANSPARENT_PORT,
        DATAGRAM_PORT,
        DNS_PORT,
    }
    for family in (2, 10):
        assert sum(door[0] == family for door in doors) == len(doors) / 2
    for _, kind, port, loopback, backlog in doors:
        assert loopback == (port == MIXED_PORT)
        assert (backlog > 0) == (kind == 1)
        assert port < 1024  # the workload, without capabilities, can neither bind nor be given one


def test_transparent_doors_are_transparent_in_both_families() -> None:
    transparent = {2: (0, 19), 10: (41, 75)}
    for door in plan.doors():
        options = dict(door.options)
        assert (transparent[door.family] in options) == (door.port in (TRANSPARENT_PORT, DATAGRAM_PORT))
        assert ((41, 26) in options) == (door.family == 10)


def test_multicast_name_services_are_heard_in_both_families() -> None:
    options = {door.name: [value for (_, name), value in door.options if name in (35, 20)] for door in plan.doors()}
    assert bytes([224, 0, 0, 251, 127, 0, 0, 1]) in options["udp"]
    assert bytes.fromhex("ff0200000000000000000000000000fb") + struct.pack("=I", 1) in options["udp6"]


def doors_in(data: bytes) -> list[tuple[int, ...]]:
    return [struct.unpack("=5I", payload) for operation, payload in read(data) if operation == "D"]


@given(st.lists(st.integers(1, 65535), unique=True, max_size=24), st.booleans())
def test_ports_of_the_host_stand_on_both_loopbacks_and_nowhere_else(host_ports: list[int], requests: bool) -> None:
    """Nothing of the session's own addresses but 127.0.0.1 and ::1 leads to the host."""
    extra = plan.localhost_doors(host_ports, requests=requests)
    found = doors_in(plan.build(view(), b"", extra))[len(plan.doors()) :]
    expected = [(2, REQUESTS_PORT)] if requests else []
    expected += [(family, port) for port in host_ports for family in (2, 10)]
    assert [(family, port) for family, _, port, _, _ in found] == expected
    assert all(kind == 1 and loopback == 1 and backlog > 0 for _, kind, _, loopback, backlog in found)


def test_doors_of_localhost_have_names_that_nobody_else_has() -> None:
    extra = plan.localhost_doors(range(2000, 2024), requests=True)
    names = [door.name for door in plan.doors() + extra]
    assert len(set(names)) == len(names)
    assert extra[0].name == "requests"


def test_an_ipv6_door_of_localhost_is_ipv6_alone() -> None:
    """Otherwise it would take the number of its IPv4 twin, or be taken by it."""
    for door in plan.localhost_doors((5432,), requests=True):
        assert ((41, 26) in dict(door.options)) == (door.family == 10)


def test_further_doors_come_behind_those_of_the_network() -> None:
    """The supervisor tells descriptors apart by their order."""
    extra = plan.localhost_doors((5432,), requests=True)
    plain, more = doors_in(plan.build(view(), b"")), doors_in(plan.build(view(), b"", extra))
    assert more[: len(plain)] == plain
    assert len(more) == len(plain) + 3
    assert read(plan.build(view(), b"F", extra))[-1] == ("F", b"F")
