"""How Seatbelt compares names of files: second names, capitals, letters beyond ASCII, what the disk calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from netsandbox.backends.seatbelt.case_paths import true_path
from netsandbox.backends.seatbelt.profile.any_case import WITHIN, filters
from tests.rig.mac_questions import CREATE, LINK, READ
from tests.rig.seatbelt_trial import FREE, is_answer, on_a_mac, probe

pytestmark = on_a_mac
Answer = Callable[[str, str], None]


def test_hard_link(answer: Answer, folder: Path) -> None:
    closed = f'(deny file-read* file-write* (literal "{folder}/secret"))\n'
    first = probe(f"{FREE}{closed}", LINK, f"{folder}/secret", f"{folder}/second")
    second = probe(f"{FREE}(deny file-link)\n{closed}", LINK, f"{folder}/secret", f"{folder}/third")
    answer("hard-link", f"with the file closed {first}; with file-link denied too {second}")
    assert is_answer(first)


def test_case(answer: Answer, folder: Path) -> None:
    profile = f'{FREE}(deny file-write* (literal "{folder}/.vscode"))\n'
    plain = probe(profile, CREATE, f"{folder}/.vscode")
    said = probe(profile, CREATE, f"{folder}/.VSCODE")
    ignores = (folder / "NEAR").exists()
    answer("case", f"in its own letters {plain}, in capitals {said}; the disk {'ignores' if ignores else 'minds'} case")
    assert is_answer(plain, said)


def test_any_case(answer: Answer, folder: Path) -> None:
    """The second rule of a session's profile, for names that do not exist yet; the last must be made."""
    rule = "\n".join(filters(str(folder), (".vscode",), WITHIN))
    profile = f"{FREE}(deny file-write*\n{rule})\n"
    said = {name: probe(profile, CREATE, f"{folder}/{name}") for name in (".vscode", ".VSCODE", ".vscodex")}
    answer("any-case", ", ".join(f"{name} {what}" for name, what in said.items()))
    assert is_answer(*said.values())


def test_true_path(answer: Answer, folder: Path) -> None:
    """A deny that was configured as `camelcase`, of a file that the disk calls `CamelCase`."""
    configured = f"{folder}/camelcase"
    told = true_path(configured)
    said = probe(f'{FREE}(deny file-read-data (literal "{told}"))\n', READ, f"{folder}/CamelCase")
    answer("true-path", f"F_GETPATH says {told.rpartition('/')[2]}; with that closed, the file is {said}")
    assert is_answer(said)


def test_utf_8(answer: Answer, folder: Path) -> None:
    said = probe(f'{FREE}(deny file-read-data (literal "{folder}/caf\u00e9"))\n', READ, f"{folder}/caf\u00e9")
    answer("utf-8", f"a closed name with a letter beyond ASCII: {said}")
    assert is_answer(said)
