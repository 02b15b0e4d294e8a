"""Operations hang in one tree, and a rule on one speaks for all below it."""

from __future__ import annotations

import pytest

from netsandbox.backends.seatbelt.profile.operations import (
    ALIASES,
    DEFAULT,
    KNOWN,
    PARENTS,
    canonical,
    covers,
    family,
    lineage,
    nearest,
)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_operation_leads_up_to_default(name: str) -> None:
    line = lineage(name)
    assert line[0] == canonical(name)
    assert line[-1] == DEFAULT
    assert len(set(line)) == len(line) <= 6


def test_a_parent_ends_in_a_star_but_for_the_disputed_one() -> None:
    assert {parent for parent in PARENTS.values() if not parent.endswith("*")} == {DEFAULT, "network-inbound"}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("file-read-data", ("file-read-data", "file-read*", "file*", "default")),
        ("file-write-create", ("file-write-create", "file-write*", "file*", "default")),
        ("process-exec", ("process-exec*", "process*", "default")),
        ("network-outbound", ("network-outbound", "network*", "default")),
        ("ipc-posix-shm", ("ipc-posix-shm*", "ipc-posix*", "ipc*", "default")),
        ("signal", ("signal", "default")),
    ],
)
def test_each_operation_has_its_chain_of_defaults(name: str, line: tuple[str, ...]) -> None:
    assert lineage(name) == line


def test_where_bind_hangs_depends_on_the_model() -> None:
    assert lineage("network-bind") == ("network-bind", "network-inbound", "network*", "default")
    assert lineage("network-bind", bind_under_inbound=False) == ("network-bind", "network*", "default")
    assert lineage("network-inbound", bind_under_inbound=False) == lineage("network-inbound")


def test_two_names_of_one_operation_cover_each_other() -> None:
    for alias, name in ALIASES.items():
        assert covers(alias, name)
        assert covers(name, alias)


def test_each_operation_belongs_to_its_family() -> None:
    assert [family(name) for name in ("file-read-data", "mach-lookup", "signal", "default")] == [
        "file*", "mach*", "signal", "default"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("file-execute", "process-exec*"),
        ("file-read-write*", "file-read* file-write*"),
        ("network-outbond", "network-outbound"),
        ("file-read", "file-read*"),
        ("frobnicate", ""),
        ("", ""),
    ],
)
def test_a_misspelled_operation_is_guessed_only_when_it_is_near(wrong: str, meant: str) -> None:
    assert nearest(wrong) == meant
