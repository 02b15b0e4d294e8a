"""The options about localhost: what the command line says, what a file said before, and what the two become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.localhost_settings import ENGINES, STRATEGIES, HostPort, LocalhostSettings

from netsandbox.cli.run import OPTIONS
from netsandbox.cli.run_options import LOCALHOST_OPTIONS, localhost_of
from netsandbox.config.file_settings import FileSettings
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import VALUE, parse


def read(*words: str, **file: Any) -> LocalhostSettings:
    """What these options become, with what the file says about localhost."""
    settings = FileSettings(localhost=LocalhostSettings(**file)) if file else None
    return localhost_of(parse(words, LOCALHOST_OPTIONS, "netsandbox run"), settings)


def test_nothing_said_is_the_default() -> None:
    assert read() == LocalhostSettings()
    assert localhost_of(parse([], OPTIONS, "x"), FileSettings()) == LocalhostSettings()


def test_everything_that_can_be_said() -> None:
    found = read(
        "--publish=3000",
        "--publish=8080:9000",
        "--connect-host=6379",
        "--connect-host=5432",
        "--gateway-port=8000",
        "--keep-host",
        "--network-strategy=fail",
        "--rewrite-engine=preload",
        "--listening-base-port=31000",
        "--listening-port-count=50",
        "--listening-loopback=127.0.0.2",
    )
    assert vars(found) == {
        "strategy": "fail",
        "chosen": True,
        "engine": "preload",
        "base": 31000,
        "count": 50,
        "device": "127.0.0.2",
        "pool": LocalhostSettings().pool,
        "publish": ((3000, None), (8080, 9000)),
        "connect_host": (HostPort(5432), HostPort(6379)),
        "gateway_port": 8000,
        "keep_host": True,
    }


def test_it_is_known_who_chose_the_strategy() -> None:
    """What the user chose is kept or refused; a default may give way to another."""
    assert not read("--publish=3000").chosen
    assert read("--network-strategy=isolate").chosen
    assert read("--publish=3000", strategy="fail", chosen=True).chosen


def test_every_option_is_one_of_run() -> None:
    assert set(LOCALHOST_OPTIONS) <= set(OPTIONS)


FILE: dict[str, Any] = {
    "strategy": "fail",
    "chosen": True,
    "engine": "preload",
    "base": 31000,
    "count": 50,
    "device": "127.0.0.2",
    "pool": (30000, 31999),
    "publish": ((3000, None), (8080, 9000)),
    "connect_host": (HostPort(5432),),
    "gateway_port": 7878,
    "keep_host": False,
}


def test_the_file_holds_where_the_line_says_nothing() -> None:
    assert vars(read(**FILE)) == FILE
    assert vars(read("--connect-host=5432", **FILE)) == FILE


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["--network-strategy=rewire-device"], {"strategy": "rewire-device"}),
        (["--rewrite-engine=kernel"], {"engine": "kernel"}),
        (["--listening-base-port=32000"], {"base": 32000}),
        (["--listening-port-count=1"], {"count": 1}),
        (["--listening-loopback=127.0.0.3"], {"device": "127.0.0.3"}),
        (["--no-publish"], {"publish": ()}),
        (["--publish=4000"], {"publish": ((3000, None), (8080, 9000), (4000, None))}),
        (["--publish=8080:9001"], {"publish": ((3000, None), (8080, 9001))}),
        (["--publish=8080"], {"publish": ((3000, None), (8080, None))}),
        (["--connect-host=80", "--connect-host=9"], {"connect_host": (HostPort(9), HostPort(80), HostPort(5432))}),
    ],
)
def test_the_line_wins_over_the_file_and_lists_add_up(words: list[str], changed: dict[str, Any]) -> None:
    assert vars(read(*words, **FILE)) == {**FILE, **changed}


def test_where_line_and_file_name_the_same_port_inside_the_line_wins() -> None:
    assert read("--connect-host=5432:6432", **FILE).connect_host == (HostPort(5432, 6432),)
    assert read("--connect-host=db:5432", **FILE).connect_host == (HostPort(5432, session="db"),)


def test_a_file_that_publishes_none_can_be_overruled_for_one() -> None:
    assert read("--publish=3000", publish=()).publish == ((3000, None),)
    assert read("--connect-host=9", publish=()).publish == ()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--publish=3000", "--no-publish"], "exclude each other"),
        (["--publish=3000", "--publish=3000"], "named twice"),
        (["--publish=3000:9000", "--publish=3001:9000"], "named twice"),
        (["--publish="], "--publish: ''"),
        (["--publish=all"], "no number"),
        (["--publish=3000:"], "no number"),
        (["--publish=:3000"], "no number"),
        (["--publish=127.0.0.1:3000"], "no number"),
        (["--publish=3000-3010"], "no number"),
        (["--connect-host=localhost:5432"], "no port to reach"),
        (["--connect-host=0"], "no number"),
        (["--connect-host=db:70000"], "no number"),
        (["--connect-host=5432:6432", "--connect-host=5432"], "named twice"),
        (["--connect-host=53:5353"], "write --connect-host PORT:5353"),
        (["--connect-host=53"], "a door of ours"),
        (["--network-strategy=none"], "use one of isolate, fail"),
        (["--rewrite-engine=ebpf"], "use one of kernel, preload"),
        (["--rewrite-engine=preload"], "isolate needs no rewriting"),
        (["--network-strategy=rewire-port", "--listening-loopback=127.0.0.2"], "use rewire-device"),
        (["--listening-base-port=80"], "from 1024 to 65535"),
        (["--listening-base-port=65500", "--listening-port-count=100"], "goes past 65535"),
        (["--listening-port-count=0"], "from 1 to 4096"),
        (["--listening-port-count=4097"], "from 1 to 4096"),
        (["--listening-loopback=::1"], "no address in 127.0.0.0/8"),
        (["--listening-loopback=192.0.2.1"], "no address in 127.0.0.0/8"),
        ([f"--connect-host={port}" for port in range(2000, 2025)], "at most 24"),
        (["--no-publish", "--listening-base-port=31000"], "no window"),
    ],
)
def test_a_slip_is_an_error_with_advice(words: list[str], says: str) -> None:
    with pytest.raises(UsageError) as error:
        read(*words)
    message = str(error.value)
    assert says in message
    assert "; " in message
    assert error.value.status == 2


def test_line_and_file_together_must_fit_too() -> None:
    """Each alone is fine."""
    for words, file in (
        (["--rewrite-engine=preload"], {"strategy": "isolate"}),
        (["--network-strategy=isolate"], {"strategy": "fail", "engine": "preload"}),
        (["--publish=4000:9000"], {"publish": ((3000, 9000),)}),
        (["--connect-host=9"], {"connect_host": tuple(map(HostPort, range(2000, 2024)))}),
    ):
        with pytest.raises(UsageError):
            read(*words, **file)


def test_a_file_whose_parts_do_not_fit_is_refused_without_an_option() -> None:
    with pytest.raises(UsageError):
        read(engine="preload")


@given(
    st.lists(
        st.tuples(
            st.sampled_from([option.name for option in LOCALHOST_OPTIONS if option.name != "no-publish"]),
            st.one_of(
                st.text(max_size=8),
                st.sampled_from(
                    [*STRATEGIES, *ENGINES, "127.0.0.2", "3000:9000", "db:3000", "1:db:3000", "3000:", "\0", "\ud800"]
                ),
                st.integers(-1, 70000).map(str),
            ),
        ),
        max_size=4,
    )
)
def test_any_values_become_settings_in_bounds_or_one_printable_line(said: list[tuple[str, str]]) -> None:
    message = ""
    try:
        found = read(*(f"--{name}={value}" for name, value in said))
    except UsageError as error:
        message = str(error)
        assert "; " in message or not said
    else:
        assert found.strategy in STRATEGIES
        assert found.base is None or 1024 <= found.base <= 65535
        assert all(0 < port < 65536 for door in found.connect_host for port in (door.inside, door.reached))
        assert all(0 < port < 65536 for pair in found.publish or () for port in pair if port is not None)
    assert message.isprintable()


def test_a_value_is_given_once_and_lists_are_lists() -> None:
    kinds = {option.name: option.kind for option in LOCALHOST_OPTIONS}
    assert [name for name, kind in kinds.items() if kind == VALUE] == [
        "gateway-port",
        "network-strategy",
        "rewrite-engine",
        "listening-base-port",
        "listening-port-count",
        "listening-loopback",
    ]
    assert read("--network-strategy=fail", "--network-strategy=fail").strategy == "fail"
    with pytest.raises(UsageError, match="given twice"):
        read("--network-strategy=fail", "--network-strategy=isolate")
