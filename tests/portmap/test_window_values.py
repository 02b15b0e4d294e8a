"""Valid windows, pools and devices, and the refusals with their advice."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.window import (
    Window,
    WindowError,
    check_device,
    check_pool,
    check_window,
    device_of,
)

from tests.rig.advice import helpful

ports = st.integers(-5, 70000) | st.integers(1020, 1030) | st.integers(65430, 65540)
counts = st.integers(-5, 5000) | st.integers(4090, 4100) | st.integers(0, 2)


def accepted(check, *values):
    try:
        check(*values)
    except WindowError as problem:
        return not str(problem).partition(";")[2]  # an error must have advice
    return True


@given(st.integers(1024, 65535), st.integers(1, 4096), st.integers(0, 70000))
def test_a_window_contains_its_ports_and_no_others(base, count, port):
    window = Window(base, count, device_of(base))
    assert (port in window) is (base <= port < base + count)
    assert base in window
    assert window.last in window
    assert window.last + 1 not in window
    assert list(window.ports) == list(range(base, base + count))
    assert str(window) == f"{base}-{window.last}"


def test_a_window_is_written_as_it_is_read():
    assert str(Window(20000, 100, "127.78.32.1")) == "20000-20099"
    assert "20000" not in Window(20000, 100, "127.78.32.1")


@given(ports, counts)
def test_a_window_lies_between_the_privileged_ports_and_the_last(base, count):
    good = 1 <= count <= 4096 and base >= 1024 and base + count <= 65536
    assert accepted(check_window, base, count) is good


@given(ports, ports)
def test_a_pool_is_a_range_of_unprivileged_ports(first, last):
    assert accepted(check_pool, first, last) is (1024 <= first <= last <= 65535)


quads = st.tuples(*[st.integers(0, 255)] * 4) | st.tuples(st.just(127), *[st.sampled_from((0, 1, 255))] * 3)
spellings = st.sampled_from(
    ("{}.{}.{}.{}", "{}.{}.{}.0{}", "{}.{}.{}.{} ", "{}.{}.{}", "{}.{}.{}.{}.0", "{}.{}.{}.{:#x}")
)
texts = st.text(max_size=20) | st.builds(lambda form, quad: form.format(*quad), spellings, quads)


@given(texts | st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str))
def test_a_device_is_one_address_of_127_in_its_one_spelling(text):
    try:
        good = str(ipaddress.IPv4Address(text)) == text and text.startswith("127.")
    except ValueError:
        good = False
    assert accepted(check_device, text) is (good and text not in ("127.0.0.0", "127.255.255.255"))


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.1", "0.0.0.0", "::1", "localhost", "127.1", "127.0.0.01", "127.0.0.256", "127.0.0.1\0", "127.0.0.1\n",
     "127.0.0.0", "127.255.255.255", "\ud800", "१२७.0.0.1", "2130706433", "::ffff:127.0.0.1"],
)  # fmt: skip
def test_what_is_no_loopback_device_is_refused_with_advice(text, take):
    with pytest.raises(WindowError) as problem:
        take(device=text)
    assert helpful(problem)
    assert str(problem.value).isascii()
    assert str(problem.value).isprintable()


def test_every_window_has_a_device_of_its_own():
    devices = {device_of(base) for base in range(1024, 65536)}
    assert len(devices) == 65536 - 1024
    assert all(accepted(check_device, device) for device in devices)
    assert "127.0.0.1" not in devices
    assert device_of(20000) == "127.78.32.1"
