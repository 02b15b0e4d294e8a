"""fish completes by the table, and takes no word for more than a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.completing import HOSTILE, Desk, needs


class Fish(Desk):
    def complete(self, line: str) -> list[str]:
        """Words without what is told of them."""
        told = self.run(needs("fish"), "--no-config", "-c", "source ./script; complete -C $argv[1]", "--", line)
        return sorted(word.partition("\t")[0] for word in told)


@pytest.fixture
def desk(tmp_path: Path) -> Fish:
    return Fish(tmp_path, "fish")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("netsandbox ", ["audit", "run", "stop"]),
        ("netsandbox --v", ["--version"]),
        ("netsandbox run --q", ["--quiet"]),
        ("netsandbox run --backend ", ["namespaces", "seatbelt"]),
        ("netsandbox run -b sea", ["seatbelt"]),
        ("netsandbox run --backend=sea", ["--backend=seatbelt"]),
        ("netsandbox run --name ", []),
        ("netsandbox run --config scr", ["script"]),
        ("netsandbox run --pass-env SHO", ["SHOWN"]),
        ("netsandbox run --allow-domain ", ["example.com"]),
        ("netsandbox run no", ["node"]),
        ("netsandbox run --quiet node on", ["online"]),
        ("nso no", ["node"]),
        ("netsandbox stop ", ["shop"]),
        ("netsandbox audit ", ["show", "verify"]),
        ("netsandbox audit show 2026", ["20260101T000000000-0123456789abcdef"]),
        ("netsandbox audit verify ", []),
        ("netsandbox run -- netsandb", ["netsandbox"]),
        ("netsandbox run -- 'netsandbox' run --q", ["--quiet"]),
        ("netsandbox stop -- netsandb", []),
    ],
)
def test_it_offers_what_can_stand_there(desk: Fish, line: str, offered: list[str]) -> None:
    desk.words("profiles", "node", "online")
    desk.words("sessions", "shop")
    desk.words("domains", "example.com")
    desk.words("logs", "20260101T000000000-0123456789abcdef")
    assert desk.complete(line) == offered


def test_what_fish_reads_in_manual_pages_is_not_offered(desk: Fish, tmp_path: Path) -> None:
    generated = tmp_path / "data" / "fish" / "generated_completions" / "netsandbox.fish"
    generated.parent.mkdir(parents=True)
    generated.write_text("complete -c netsandbox -l quite -d 'of the manual'\n")
    there, question = f"set -g fish_complete_path {generated.parent}", "complete -C 'netsandbox run --qui'"
    shell = (needs("fish"), "--no-config", "-c")
    assert desk.run(*shell, f"{there}; {question}") == ["--quite\tof the manual"], "the twin: without our script it is"
    assert desk.run(*shell, f"{there}; source ./script; {question}") == ["--quiet\tsay nothing"]


def test_options_are_told_with_their_help(desk: Fish) -> None:
    told = desk.run(needs("fish"), "--no-config", "-c", "source ./script; complete -C 'netsandbox run --allow'")
    assert told == ["--allow-domain\tlet `this` $(through): [now]"]


@pytest.mark.parametrize(
    ("kind", "line"), [("profiles", "run "), ("sessions", "stop "), ("domains", "run --allow-domain ")]
)
def test_hostile_words_are_not_offered_and_not_run(desk: Fish, kind: str, line: str) -> None:
    desk.words(kind, *HOSTILE, "plain")
    assert desk.complete(f"netsandbox {line}") == ["plain"]
    assert not desk.fired
