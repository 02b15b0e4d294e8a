"""A terminal that somebody looks at: a program in tmux, what is typed to it, and what stands on its screen."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.rig.localhost import eventually
from tests.rig.patience import WaitedInVain

PATIENCE = 30.0


class Screen:
    """COMMAND on a screen of its own, by a tmux of its own whose socket is in FOLDER."""

    def __init__(self, command: Sequence[str], folder: Path, cwd: Path, environment: Mapping[str, str]) -> None:
        self._socket = folder / "tmux"
        self._environment = dict(environment)
        options = ["-f", "/dev/null", "new-session", "-d", "-s", "it", "-x", "110", "-y", "40", "-c", str(cwd)]
        named = [f"{name}={value}" for name, value in {**environment, "TERM": "screen-256color"}.items()]
        self._tmux(*options, "env", "-i", *named, *command)
        self._tmux("set-option", "-g", "remain-on-exit", "on")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words],
            env={**self._environment, "TERM": "xterm-256color"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    def type(self, text: str) -> None:
        """As it is; a newline is Enter, a tab is Tab."""
        self._tmux("send-keys", "-t", "it", "-l", "--", text)

    def press(self, key: str) -> None:
        """By its name: `Tab`, `C-u`, `Enter`."""
        self._tmux("send-keys", "-t", "it", key)

    def shown(self) -> str:
        """The text of the screen."""
        return self._tmux("capture-pane", "-p", "-t", "it")

    def painted(self) -> str:
        """The same, with the colours as escape sequences."""
        return self._tmux("capture-pane", "-p", "-e", "-t", "it")

    def title(self) -> str:
        return self._tmux("display-message", "-p", "-t", "it", "#{pane_title}").strip()

    def see(self, text: str) -> str:
        """The screen once TEXT stands on it. What is typed stands there too."""
        try:
            eventually(lambda: text in self.shown(), PATIENCE)
        except WaitedInVain:
            raise WaitedInVain(f"{text!r} was not seen; on the screen:\n{self.shown()}") from None
        return self.shown()

    def close(self) -> None:
        """Ends this tmux and, by hanging up, what runs in it."""
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False, timeout=60)
