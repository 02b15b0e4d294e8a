"""Tables fit the terminal, show hostile text tamely and keep whole what people copy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.session_table import (
    PORTS_TITLES,
    PORTS_YIELDING,
    PS_TITLES,
    PS_YIELDING,
    address_text,
    age,
    memory_text,
    pending_entries,
    pending_rows,
    port_entries,
    port_rows,
    ps_rows,
    short_ids,
)
from netsandbox.text import columns
from tests.rig.live import port, question, status_of

ID = "20250101T000000000-00000000000000aa"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (7200, "2h"), (86400 * 3, "3d")],
)
def test_ages_are_short(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_a_row_of_ps_says_what_runs() -> None:
    status = status_of(ID, started=1000, ports=[port(n) for n in (5173, 3000, 1, 2, 4)])
    assert ps_rows([status], 1125.0) == [
        (
            "shop",
            "2m",
            "filtered",
            "7",
            "2",
            "4K",
            "5173 http://5173.shop.localhost:20099/, 3000, 1, 2, +1",
            "npm run dev",
        )
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0K"), (4096, "4K"), (1023 << 10, "1.0M"), (24 << 20, "24M"), (1500 << 20, "1.5G"), (1 << 50, "1024T")],
)
def test_memory_has_three_digits(count: int, text: str) -> None:
    assert memory_text(count) == text


def test_a_row_of_ps_says_how_many_questions_wait() -> None:
    assert ps_rows([status_of(ID, pending=[question(1001), question(1002)])], 0.0)[0][2] == "filtered, 2 waiting"


def test_what_waits_is_one_row_a_question_the_first_to_be_due_first() -> None:
    later, sooner = question(1001, until=90), question(1002, "b.test", until=70, exe="/opt/x/")
    sessions = [status_of(ID, pending=[later]), status_of("other", name="farm", pending=[sooner])]
    assert pending_rows(pending_entries(sessions), 60.0) == [
        ("1002", "b.test:443", "x", "10s", "farm", "other"),
        ("1001", "asked.test:443", "node", "30s", "shop", ID[:18]),
    ]
    assert pending_rows(pending_entries(sessions), 80.0)[0][3] == "0s"


@given(st.text(), st.text(), st.text())
def test_what_waits_is_shown_tamely(host: str, exe: str, name: str) -> None:
    status = status_of(ID, name=name, pending=[question(1001, host, exe=exe)])
    for cell in pending_rows(pending_entries([status]), 0.0)[0]:
        assert cell.isascii()
        assert cell.isprintable()


def test_what_is_not_known_is_a_dash() -> None:
    status = status_of(ID, mode=None, allowed=None, denied=None, memory_bytes=None, ports=[], command=[])
    assert ps_rows([status], 0.0)[0][2:7] == ("-",) * 5
    assert port_rows(port_entries([status_of(ID, ports=[port(address=None)])]))[0][1] == "3000"


def test_a_port_shows_its_program_by_name_and_ipv6_in_brackets() -> None:
    status = status_of(
        ID, ports=[port(host_address="::1", exe="/opt/node/bin/node"), port(80, address="::", exe=None, pid=None)]
    )
    assert port_rows(port_entries([status])) == [
        ("shop", "[::]:80", "127.0.0.1:20000", "http://80.shop.localhost:20099/", "-", "-"),
        ("shop", "127.0.0.1:3000", "[::1]:20000", "http://3000.shop.localhost:20099/", "4711", "node"),
    ]
    assert address_text("127.0.0.1", 80) == "127.0.0.1:80"


def test_ids_are_shown_as_long_as_they_must_be() -> None:
    twins = [ID, ID[:-1] + "b", "20250102T000000000-0000000000000000"]
    assert [len(text) for text in short_ids(twins).values()] == [35, 35, 35]
    assert short_ids([ID]) == {ID: "20250101T000000000"}
    assert short_ids([]) == {}


@pytest.mark.attack(172)
def test_a_hostile_command_is_one_printable_cell() -> None:
    status = status_of(ID, name="\x1b[2Jx", command=["sh", "-c", "\n\x1b]0;title\x07\u202e\udcff", "x" * 10_000])
    for line in columns([PS_TITLES, *ps_rows([status], 0.0)], width=None, yielding=PS_YIELDING):
        assert line.isascii()
        assert line.isprintable()
        assert len(line) < 3000


def test_a_command_reads_as_it_would_be_typed() -> None:
    assert ps_rows([status_of(ID, command=["sh", "-c", "a b"])], 0.0)[0][-1] == "sh -c 'a b'"


@given(st.lists(st.tuples(*[st.text("abc", max_size=60)] * len(PS_TITLES)), max_size=4), st.integers(1, 200))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, ...]], width: int) -> None:
    lines = columns([PS_TITLES, *rows], width=width, yielding=PS_YIELDING)
    assert len(lines) == len(rows) + 1
    assert all(len(line) <= width for line in lines)


def test_on_eighty_columns_everything_that_is_shown_can_be_used() -> None:
    """What is left out is left out whole: a stub of an id or a URL would be copied in vain."""
    status = status_of(ID, name="a-shop-with-a-long-name", command=["npm", "run", "dev", "--", "--host"] * 5)
    url = "http://3000.shop.localhost:20099/"
    lines = columns([PORTS_TITLES, *port_rows(port_entries([status]))], width=80, yielding=PORTS_YIELDING)
    assert lines[0].split() == ["NAME", "INSIDE", "HOST", "ADDRESS", "URL"]
    assert lines[1].endswith(f"  127.0.0.1:3000  127.0.0.1:20000  {url}")
    lines = columns([PS_TITLES, *ps_rows([status], 0.0)], width=80, yielding=PS_YIELDING)
    assert lines[0].split() == ["NAME", "AGE", "PORTS", "COMMAND"]
    assert lines[1].startswith("a-shop-with-a-long-name ")
    assert lines[1].endswith("...")
