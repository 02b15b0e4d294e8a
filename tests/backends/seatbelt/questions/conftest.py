"""What the questions share: where an answer is told, and what they are asked about.

With NETSANDBOX_ANSWERS=FILE each answer is added to that file as one JSON object a line.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rig.mac_questions import BY_KEY, FOLDER, OPEN, OTHERS, SHUT

Answer = Callable[[str, str], None]


@pytest.fixture(scope="session")
def answers() -> dict[str, str]:
    """What has been answered so far, by key."""
    return {}


@pytest.fixture
def answer(answers: dict[str, str]) -> Answer:
    """Tell what was measured: on the terminal, and in the file of answers."""

    def tell(key: str, said: str) -> None:
        answers[key] = said
        asks = BY_KEY[key].asks if key in BY_KEY else OTHERS.get(key, key)
        version = platform.mac_ver()[0]
        print(f"\nANSWER {key}: {said}\n       {asks} (macOS {version}, {platform.machine()})")
        if place := os.environ.get("NETSANDBOX_ANSWERS"):
            record = {"key": key, "asks": asks, "answer": said, "macos": version, "machine": platform.machine()}
            with Path(place).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    return tell


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the files of the questions are, by the name that the profiles have."""
    place = Path(FOLDER)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    for name in ("near", "linked", "secret", "caf\u00e9", "CamelCase"):
        (place / name).write_text("text")
    yield place.resolve()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def listeners() -> Iterator[None]:
    """Somebody answers on every address and both ports, so that a refusal is the kernel's."""
    opened = []
    for port in (OPEN, SHUT):
        sock = socket.socket(socket.AF_INET6)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", port))
        sock.listen()
        opened.append(sock)
    yield
    for sock in opened:
        sock.close()
