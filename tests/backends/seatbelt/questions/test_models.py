"""Which models of Seatbelt a Mac leaves: each question on which they differ, and what the answers come to."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.rig.mac_questions import ALLOWED, BY_KEY, DENIED, PROGRAMS, left_by
from tests.rig.seatbelt_trial import on_a_mac, probe, verdict
from tests.seatbelt_model.models import all_models

pytestmark = on_a_mac
Answer = Callable[[str, str], None]
LISTENING = [key for key in BY_KEY if "bind" in key or "listen" in key]


def own_address() -> str:
    """Chosen by the kernel for a way out; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this Mac has no network, and so no address but loopback")
        return str(sock.getsockname()[0])


@pytest.mark.parametrize("key", [key for key in BY_KEY if key not in LISTENING])
@pytest.mark.usefixtures("listeners", "folder")
def test_a_question_of_the_models(answer: Answer, key: str) -> None:
    name, *arguments = BY_KEY[key].act
    given = [own_address() if each == "own" else each for each in arguments]
    said = verdict(probe(BY_KEY[key].profile, PROGRAMS[name], *given))
    answer(key, said)
    assert said in (ALLOWED, DENIED)


@pytest.mark.parametrize("key", LISTENING)
def test_a_question_of_the_models_about_listening(answer: Answer, key: str) -> None:
    name, *arguments = BY_KEY[key].act
    said = verdict(probe(BY_KEY[key].profile, PROGRAMS[name], *arguments))
    answer(key, said)
    assert said in (ALLOWED, DENIED)


def test_which_models_are_left(answer: Answer, answers: dict[str, str]) -> None:
    """Last: what the answers above leave of the 256 models. If nothing is left, something is in no model."""
    if not set(BY_KEY) <= set(answers):
        pytest.skip("run the whole file: the answers of the other tests are needed")
    left = left_by(answers)
    told = " | ".join(model.name for model in left[:8])
    answer("models", f"{len(left)} of {len(list(all_models()))} models are left: {told}")
    assert left
