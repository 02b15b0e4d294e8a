"""What may be asked of a session's localhost: what is not plainly that is an error that says what to write."""

from __future__ import annotations

import ipaddress
from typing import Any

import netsandbox_portmap
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap import DOOR_PORTS, localhost_settings
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings, check

from netsandbox.errors import UsageError

ORIGIN = "--option"
hostile = st.one_of(
    st.text(max_size=12),
    st.text("0123456789:+-_., \t\n\0xe٣²", max_size=8),
    st.integers(-70000, 700000).map(str),
)


def refused(error: pytest.ExceptionInfo[UsageError]) -> None:
    message = str(error.value)
    assert message.startswith(f"{ORIGIN}: ")
    assert "; " in message
    assert message.isprintable()
    assert message.isascii()


@given(hostile)
def test_a_number_is_plain_digits_in_its_bounds(text: str) -> None:
    plain = text.isascii() and text.isdigit() and 1 <= int(text) <= 65535 and len(text) <= 5
    if plain:
        assert localhost_settings.number(text, ORIGIN) == int(text)
    else:
        with pytest.raises(UsageError) as error:
            localhost_settings.number(text, ORIGIN)
        refused(error)


@pytest.mark.parametrize(
    "text", ["", " 80", "80 ", "+80", "-1", "8_0", "0x50", "8e1", "٣", "²", "80\n", "80\0", "000080", "9" * 9999]
)
def test_numbers_that_int_would_take_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        localhost_settings.number(text, ORIGIN)


@given(st.integers(0, 70000), st.integers(1, 100), st.integers(100, 65535))
def test_bounds_are_kept_to_the_number(value: int, low: int, high: int) -> None:
    if low <= value <= high:
        assert localhost_settings.number(str(value), ORIGIN, low, high) == value
    else:
        with pytest.raises(UsageError, match=f"from {low} to {high}"):
            localhost_settings.number(str(value), ORIGIN, low, high)


@given(hostile)
def test_a_publication_is_one_port_or_two(text: str) -> None:
    halves = text.split(":")
    plain = len(halves) <= 2 and all(
        half.isascii() and half.isdigit() and len(half) <= 5 and 1 <= int(half) <= 65535 for half in halves
    )
    if not plain:
        with pytest.raises(UsageError) as error:
            localhost_settings.publications([text], ORIGIN)
        refused(error)
        return
    expected = (int(halves[0]), int(halves[1]) if len(halves) == 2 else None)
    assert localhost_settings.publications([text], ORIGIN) == (expected,)


@given(st.lists(st.tuples(st.integers(1, 9), st.none() | st.integers(1, 9)), max_size=5))
def test_no_port_is_published_twice_and_no_host_port_has_two(pairs: list[tuple[int, int | None]]) -> None:
    texts = [f"{inner}" if outer is None else f"{inner}:{outer}" for inner, outer in pairs]
    outers = [outer for _, outer in pairs if outer is not None]
    twice = len({inner for inner, _ in pairs}) < len(pairs) or len(set(outers)) < len(outers)
    if twice:
        with pytest.raises(UsageError, match="named twice; leave one out"):
            localhost_settings.publications(texts, ORIGIN)
    else:
        assert localhost_settings.publications(texts, ORIGIN) == tuple(pairs)


@given(st.lists(hostile, max_size=4))
def test_host_ports_are_numbers_sorted_and_once(texts: list[str]) -> None:
    if all(text.isascii() and text.isdigit() and 1 <= int(text) <= 65535 and len(text) < 6 for text in texts):
        assert [door.inside for door in localhost_settings.host_ports(texts, ORIGIN)] == sorted(set(map(int, texts)))
        return
    with pytest.raises(UsageError) as error:
        localhost_settings.host_ports(texts, ORIGIN)
    refused(error)


doors = st.builds(
    lambda inside, port, session: HostPort(inside, None if port == inside else port, session),
    st.integers(1, 65535),
    st.none() | st.integers(1, 65535),
    st.none() | st.sampled_from(["db", "shop-2", "a1"]),
)


@given(doors)
def test_a_host_port_is_read_as_it_is_written(door: HostPort) -> None:
    assert localhost_settings.host_port(str(door), ORIGIN) == door


@pytest.mark.parametrize(
    ("text", "inside", "reached", "session"),
    [
        ("5432", 5432, 5432, None),
        ("5432:6432", 5432, 6432, None),
        ("5432:5432", 5432, 5432, None),
        ("db:5432", 5432, 5432, "db"),
        ("6432:db:5432", 6432, 5432, "db"),
    ],
)
def test_the_port_inside_comes_first_and_then_where_it_leads(
    text: str, inside: int, reached: int, session: str | None
) -> None:
    found = localhost_settings.host_port(text, ORIGIN)
    assert (found.inside, found.reached, found.session) == (inside, reached, session)


@given(st.text(alphabet="0159:-adbAB.\0\u00b2 ", max_size=14))
def test_any_text_is_a_host_port_of_one_spelling_or_one_line(text: str) -> None:
    """What is read can be written, and means the same; numbers of other scripts are none."""
    found, told = None, ""
    try:
        found = localhost_settings.host_port(text, ORIGIN)
    except UsageError as error:
        told = str(error)
    assert told.isprintable()
    assert (found is None) == ("; write " in told)
    if found is not None:
        assert localhost_settings.host_port(str(found), ORIGIN) == found
        assert 0 < found.inside < 65536
        assert 0 < found.reached < 65536


@pytest.mark.parametrize("text", ["db:", "db:0", "db:70000", ":5432", "db:x", "a:b:1", "1:2:3", "-db:1", "1:d:2:3", ""])
def test_a_malformed_host_port_is_one_line_with_advice(text: str) -> None:
    with pytest.raises(UsageError) as error:
        localhost_settings.host_port(text, ORIGIN)
    refused(error)


def test_a_port_inside_leads_to_one_place() -> None:
    with pytest.raises(UsageError, match="port 5432 is named twice; leave one out"):
        localhost_settings.host_ports(["5432", "5432:6432"], ORIGIN)
    assert localhost_settings.host_ports(["5432", "5432"], ORIGIN) == (HostPort(5432),)
    assert localhost_settings.joined([HostPort(5432), HostPort(1)], [HostPort(5432, 6432)]) == (
        HostPort(1),
        HostPort(5432, 6432),
    )


@given(st.one_of(st.text(max_size=20), st.ip_addresses().map(str), st.ip_addresses(network="127.0.0.0/8").map(str)))
def test_a_device_is_an_address_of_loopback_in_its_one_spelling(text: str) -> None:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        address = None
    network = ipaddress.IPv4Network("127.0.0.0/8")
    edges = (network.network_address, network.broadcast_address)
    good = address is not None and str(address) == text and address in network and address not in edges
    if good:
        assert localhost_settings.device(text, ORIGIN) == text
    else:
        with pytest.raises(UsageError) as error:
            localhost_settings.device(text, ORIGIN)
        refused(error)


@pytest.mark.parametrize(
    "text", ["127.1", "127.0.0.01", "0x7f.0.0.1", "2130706433", "::1", "localhost", "127.0.0.1\0", "\ud800"]
)
def test_other_spellings_of_loopback_are_no_device(text: str) -> None:
    with pytest.raises(UsageError):
        localhost_settings.device(text, ORIGIN)


@given(
    st.one_of(
        st.text(max_size=14),
        st.sampled_from([*localhost_settings.STRATEGIES, *localhost_settings.ENGINES, "Isolate", "fail "]),
    )
)
def test_words_are_known_ones(text: str) -> None:
    readers: tuple[Any, ...] = (
        (localhost_settings.strategy, localhost_settings.STRATEGIES),
        (localhost_settings.engine, localhost_settings.ENGINES),
    )
    for read, known in readers:
        if text in known:
            assert read(text, ORIGIN) == text
        else:
            with pytest.raises(UsageError) as error:
                read(text, ORIGIN)
            refused(error)


def test_what_nobody_asked_for() -> None:
    """Isolated, in the kernel, everything published, nothing of the host reached."""
    plain = check(LocalhostSettings())
    assert (plain.strategy, plain.engine, plain.connect_host, plain.publish) == ("isolate", "kernel", (), None)
    assert plain.publishes
    assert plain.has_window
    assert not plain.guarded


@pytest.mark.parametrize(
    ("asked", "publishes", "guarded", "has_window"),
    [
        ({}, True, False, True),
        ({"publish": ()}, False, False, False),
        ({"publish": ((3000, None),)}, True, False, True),
        ({"strategy": "fail"}, True, True, True),
        ({"strategy": "fail", "publish": ()}, False, True, True),
        ({"strategy": "rewire-device"}, True, False, True),
        ({"strategy": "rewire-device", "publish": ()}, False, False, True),
        ({"strategy": "rewire-port", "engine": "preload"}, True, True, True),
        ({"strategy": "rewire-device", "engine": "preload"}, True, True, True),
        ({"strategy": "fail", "engine": "preload", "publish": ()}, False, True, True),
    ],
)
def test_publishing_guard_and_window_follow_from_the_settings(
    asked: dict[str, Any], publishes: bool, guarded: bool, has_window: bool
) -> None:
    """INV-7: in `fail`, and wherever a library does the rewriting, the kernel guards."""
    made = check(LocalhostSettings(**asked))
    assert (made.publishes, made.guarded, made.has_window) == (publishes, guarded, has_window)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"engine": "preload"}, "isolate needs no rewriting"),
        ({"strategy": "rewire-port", "device": "127.0.0.2"}, "leave out --listening-loopback"),
        *(({"connect_host": (HostPort(port),)}, "a door of ours") for port in (53, 1008, 1009, 1010, 1011)),
        ({"connect_host": tuple(map(HostPort, range(2000, 2025)))}, "at most 24 ports"),
        ({"publish": ((3000, 9000), (4000, 9000))}, "port 9000 is named twice"),
    ],
)
def test_choices_that_do_not_go_together(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        check(LocalhostSettings(**asked))
    assert says in str(error.value)
    assert "; " in str(error.value)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"strategy": "isolated"}, "use one of isolate,"),
        ({"engine": ""}, "use one of kernel,"),
        ({"device": "192.0.2.1"}, "no address in 127.0.0.0/8"),
        ({"base": 80}, "from 1024 to 65535; write one, such as 20000"),
        ({"base": "20000"}, "no number"),
        ({"count": 0}, "from 1 to 4096; write one, such as 100"),
        ({"pool": (80, 29999)}, "no range of unprivileged ports"),
        ({"connect_host": (None,)}, "is not a HostPort"),
        ({"publish": ((None, 8000),)}, "no number"),
        ({"publish": ((3000, True),)}, "no number"),
    ],
)
def test_values_that_python_was_given_are_checked_too(asked: dict[str, Any], says: str) -> None:
    """INV-1: a strategy that nobody knows would be one without a guard."""
    with pytest.raises(UsageError) as error:
        check(LocalhostSettings(**asked))
    assert says in str(error.value)


def test_every_door_of_ours_is_known_here() -> None:
    """A new one must be refused as a port of the host too."""
    doors = {value for name, value in vars(netsandbox_portmap).items() if name.endswith("_PORT") and type(value) is int}
    assert set(DOOR_PORTS) == doors


def test_as_many_host_ports_as_fit_in_the_helpers_message() -> None:
    """Its record carries 64 descriptors: the doors of the network, the requests door, and two for each port."""
    from netsandbox.backends.linux.helper_process import MAX_DESCRIPTORS
    from netsandbox.backends.namespaces import plan

    most = plan.doors() + plan.localhost_doors(range(2000, 2000 + localhost_settings.MAX_HOST_PORTS), requests=True)
    assert len(most) <= MAX_DESCRIPTORS
    check(LocalhostSettings(connect_host=tuple(map(HostPort, range(2000, 2000 + localhost_settings.MAX_HOST_PORTS)))))


@pytest.mark.parametrize("port", [0, 80, 1023, 65536, "7878", True])
def test_a_gateway_port_is_one_that_a_user_may_bind(port: object) -> None:
    with pytest.raises(UsageError, match="gateway_port"):
        check(LocalhostSettings(gateway_port=port))  # type: ignore[arg-type]
    assert check(LocalhostSettings(gateway_port=1024)).gateway_port == 1024


def test_each_user_has_one_second_port_and_none_for_a_port_that_was_chosen() -> None:
    ports = {localhost_settings.second_port(localhost_settings.GATEWAY_PORT, user) for user in range(5000)}
    assert ports == set(localhost_settings.SECOND_PORTS)
    assert localhost_settings.second_port(8080, 1000) is None
