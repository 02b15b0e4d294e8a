"""zsh completes by the table, and takes no word for more than a word. Its completion works on a screen only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.completing import HOSTILE, Desk, needs
from tests.rig.screen import Screen

RC = "PROMPT='at> '; autoload -Uz compinit; compinit -u -D; source $HOME/script; unsetopt automenu\n"


class Zsh(Desk):
    """Asks on a screen that is cleared each time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "zsh")
        (folder / ".zshrc").write_text(RC)
        self.screen = Screen([needs("zsh"), "-d"], folder, folder, {**self.environment, "SHOWN": "x"})
        self.screen.see("at>")

    def completed(self, typed: str, wanted: str) -> None:
        """The line becomes WANTED, or a list that has WANTED appears below it."""
        self.screen.type(typed)
        self.screen.press("Tab")
        self.screen.see(wanted)
        self.screen.press("C-u")
        self.screen.press("C-l")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Zsh]:
    needs("tmux")
    desk = Zsh(tmp_path)
    desk.words("profiles", "node", "online")
    desk.words("sessions", "shop")
    desk.words("domains", "example.com")
    desk.words("logs", "20260101T000000000-0123456789abcdef")
    yield desk
    desk.screen.close()


def test_it_offers_what_can_stand_there(desk: Zsh) -> None:
    for typed, wanted in (
        ("netsandbox ", "stop   -- end it"),
        ("netsandbox ", "run    -- it's run: [here]"),
        ("netsandbox st", "netsandbox stop"),
        ("netsandbox run --q", "netsandbox run --quiet"),
        ("netsandbox run --", "--allow-domain  -- let `this` $(through): [now]"),
        ("netsandbox run --backend sea", "netsandbox run --backend seatbelt"),
        ("netsandbox run --backend=na", "netsandbox run --backend=namespaces"),
        ("netsandbox run -c scr", "netsandbox run -c script"),
        ("netsandbox run --pass-env SHO", "netsandbox run --pass-env SHOWN"),
        ("netsandbox run --allow-domain ex", "netsandbox run --allow-domain example.com"),
        ("netsandbox run --quiet node on", "netsandbox run --quiet node online"),
        ("nso no", "nso node"),
        ("netsandbox stop s", "netsandbox stop shop"),
        ("netsandbox audit ve", "netsandbox audit verify"),
        ("netsandbox audit show 2", "netsandbox audit show 20260101T000000000-0123456789abcdef"),
        ("netsandbox run -- netsandb", "netsandbox run -- netsandbox"),
        ("netsandbox run -- netsandbox run --q", "netsandbox run -- netsandbox run --quiet"),
    ):
        desk.completed(typed, wanted)


@pytest.mark.parametrize("kind", ["profiles", "sessions", "domains"])
def test_hostile_words_are_not_offered_and_not_run(desk: Zsh, kind: str) -> None:
    desk.words(kind, *HOSTILE, "plain")
    asked = {"profiles": "run ", "sessions": "stop ", "domains": "run --allow-domain "}[kind]
    desk.completed(f"netsandbox {asked}", f"netsandbox {asked}plain")  # the only one, so it is taken
    assert not desk.fired
