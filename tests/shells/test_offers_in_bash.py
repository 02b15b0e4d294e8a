"""bash completes by the table, and takes no word for more than a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.completing import HOSTILE, Desk, needs

ASK = 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _netsandbox; printf "%s\\n" "${COMPREPLY[@]}"'


class Bash(Desk):
    def complete(self, *words: str) -> list[str]:
        return [line for line in self.run(needs("bash"), "-c", ASK, "bash", "netsandbox", *words) if line]


@pytest.fixture
def desk(tmp_path: Path) -> Bash:
    return Bash(tmp_path, "bash")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("",), ["run", "stop", "audit"]),
        (("-",), ["--help", "--version"]),
        (("s",), ["stop"]),
        (("run", "--"), ["--allow-domain", "--backend", "--config", "--name", "--pass-env", "--quiet"]),
        (("run", "--q"), ["--quiet"]),
        (("run", "--backend", ""), ["namespaces", "seatbelt"]),
        (("run", "-b", "sea"), ["seatbelt"]),
        (("run", "--backend", "=", "sea"), ["seatbelt"]),
        (("run", "--backend", "="), ["namespaces", "seatbelt"]),
        (("run", "--backend", "seatbelt", "--q"), ["--quiet"]),
        (("run", "--name", ""), []),
        (("run", "--config", ""), []),
        (("run", "--pass-env", "SHO"), ["SHOWN"]),
        (("run", "--allow-domain", ""), ["example.com"]),
        (("run", "no"), ["node"]),
        (("run", "--quiet", "node", "on"), ["online"]),
        (("stop", ""), ["shop"]),
        (("audit", ""), ["show", "verify"]),
        (("audit", "show", ""), ["20260101T000000000-0123456789abcdef"]),
        (("audit", "verify", ""), []),
        (("run", "--", "netsandb"), ["netsandbox"]),
        (("run", "--", "x", "--q"), []),
        (("stop", "--", "netsandb"), []),
    ],
)
def test_it_offers_what_can_stand_there(desk: Bash, words: tuple[str, ...], offered: list[str]) -> None:
    desk.words("profiles", "node", "online")
    desk.words("sessions", "shop")
    desk.words("domains", "example.com")
    desk.words("logs", "20260101T000000000-0123456789abcdef")
    assert desk.complete(*words) == offered


@pytest.mark.parametrize("kind", ["profiles", "sessions", "domains"])
def test_hostile_words_are_not_offered_and_not_run(desk: Bash, kind: str) -> None:
    desk.words(kind, *HOSTILE, "plain")
    asked = {"profiles": ("run", ""), "sessions": ("stop", ""), "domains": ("run", "--allow-domain", "")}
    assert desk.complete(*asked[kind]) == ["plain"]
    assert not desk.fired


def test_a_word_that_is_being_typed_is_not_run(desk: Bash) -> None:
    for word in HOSTILE:
        assert desk.complete("run", "--backend", word) == []
    assert not desk.fired


def test_an_alias_completes_like_what_it_stands_for(desk: Bash) -> None:
    desk.words("profiles", "node", "online")
    ask = ASK.replace("_netsandbox;", "_netsandbox_alias;")
    assert desk.run(needs("bash"), "-c", ask, "bash", "nso", "no") == ["node"]
    assert desk.run(needs("bash"), "-c", "source ./script; alias nso")[0] == "alias nso='netsandbox run online'"
