"""An answer is remembered while everything it rests on is as it was, and not a moment longer."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config import answer_cache, answer_inputs
from netsandbox.config.answer_cache import Question, decode, encode, holds, recall
from netsandbox.config.answer_inputs import remembered
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.paths import project_files, user_files
from netsandbox.config.trust import distrust, trust
from netsandbox.paths import config_home, home

USER = (
    "[network]\nallow_domains = ['u.test:8443']\ndeny_domains = ['*.bad.test']\nallow_addresses = ['192.0.2.0/24:53']\n"
)
PROJECT = "[network]\nallow_domains = ['p.test']\n[shell]\ndeny_env = ['X*']\n[filesystem]\ndeny_read = ['~/x']\n"


def question(*names: str, named: str | None = None, detect: bool = True) -> Question:
    return Question(os.getcwd(), home(), config_home(), user_files(), project_files(), named, names, detect, None)


@pytest.fixture
def known(says: Callable[..., None]) -> FileSettings:
    says(user=USER, project_file=PROJECT)
    found = remembered(question())
    assert found is not None
    return found


def told(settings: FileSettings | None) -> object:
    """What can be compared: rules are bare objects."""
    return None if settings is None else encode(settings)


def test_the_same_question_is_answered_from_memory(known: FileSettings) -> None:
    answer = recall(question())
    assert answer is not None
    assert told(answer.settings) == told(known)
    assert [rule.text for rule in known.allow_domains] == ["u.test:8443"]


def test_nothing_said_is_remembered_too(project: Path) -> None:
    assert remembered(question()) is None
    answer = recall(question())
    assert answer is not None
    assert answer.settings is None
    (project / "package.json").write_text("{}")
    assert recall(question()) is None


@pytest.mark.parametrize("other", [{"named": "x.toml"}, {"detect": False}, {}])
def test_another_question_has_no_answer(known: FileSettings, other: dict[str, object]) -> None:
    names = () if other else ("online",)
    assert recall(question(*names, **other)) is None  # type: ignore[arg-type]


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "the user's file": lambda home, project: (home / "config/netsandbox/config.toml").write_text(USER + "# more\n"),
    "the project's file": lambda home, project: (project / ".netsandbox.toml").write_text(PROJECT + "\n"),
    "its trust": lambda home, project: trust(
        str(project / ".netsandbox.toml"), (project / ".netsandbox.toml").read_bytes()
    ),
    "a file by which a profile is detected": lambda home, project: (project / "Cargo.toml").write_text(""),
    "a profile of the user": lambda home, project: _write(home / "config/netsandbox/profiles/own.toml", "[network]\n"),
    "where the repository begins": lambda home, project: (home / ".git").mkdir(),
    "the folder of sockets": lambda home, project: os.environ.update(XDG_RUNTIME_DIR=str(home / "elsewhere")),
    "the agent": lambda home, project: os.environ.update(SSH_AUTH_SOCK=str(home / "elsewhere")),
    "a profile of the project": lambda home, project: _write(project / ".sandbox/profiles/own.toml", "[network]\n"),
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_anything_it_rests_on_ends_it(
    known: FileSettings, homes: Path, project: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    for variable in ("XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(variable, os.environ.get(variable, ""))  # put back afterwards
    remembered(asked := question())
    assert recall(asked) is not None
    CHANGES[what](homes, project)
    assert recall(asked) is None


def test_a_project_file_with_its_old_times_is_still_another_one(known: FileSettings, project: Path) -> None:
    path, asked = project / ".netsandbox.toml", question()
    before = path.stat()
    path.write_text(PROJECT.replace("p.test", "q.test"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert recall(asked) is None


def test_trust_that_is_taken_back_is_not_remembered(says: Callable[..., None], project: Path) -> None:
    path = project / ".netsandbox.toml"
    says(project_file=PROJECT)
    trust(str(path), path.read_bytes())
    found = remembered(question())
    assert found is not None
    assert [rule.text for rule in found.allow_domains] == ["p.test"]
    distrust(str(path))
    assert recall(question()) is None


@pytest.mark.parametrize("damage", ["cut", "noise", "version", "old", "writable", "link", "folder", "unknown field"])
def test_what_is_not_just_as_we_wrote_it_is_no_answer(
    known: FileSettings, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    place = Path(question().place)
    data = place.read_bytes()
    mark, until, basis, settings = marshal.loads(data)
    if damage in ("cut", "noise"):
        place.write_bytes(data[:-20] if damage == "cut" else b"\xff" + data[1:])
    elif damage in ("version", "old", "unknown field"):
        mark = ("other", 0) if damage == "version" else mark
        until = 1.0 if damage == "old" else until
        settings = {**settings, "extra": 1} if damage == "unknown field" else settings
        place.write_bytes(marshal.dumps((mark, until, basis, settings)))
    elif damage == "writable":
        place.chmod(0o622)
    else:
        place.rename(place.with_name("moved"))
        place.symlink_to("moved") if damage == "link" else place.mkdir()
    assert recall(question()) is None


def test_a_file_that_changes_meanwhile_makes_no_memory(
    says: Callable[..., None], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(project_file=PROJECT)
    path, real = project / ".netsandbox.toml", answer_inputs._answer

    def slow(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        path.write_text("[network]\ndeny_domains = ['late.test']\n")
        return found

    monkeypatch.setattr(answer_inputs, "_answer", slow)
    assert remembered(question()) is not None
    assert recall(question()) is None


def test_a_pipe_is_left_to_whoever_reads_it(project: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"[network]\nallow_domains = ['n.test']\n")
    os.close(writing)
    try:
        asked = question(named=f"/dev/fd/{reading}")
        assert recall(asked) is None
        found = remembered(asked)
    finally:
        os.close(reading)
    assert found is not None
    assert [rule.text for rule in found.allow_domains] == ["n.test"]
    assert not os.path.exists(asked.place)


def test_a_state_home_that_cannot_be_written_only_costs_time(
    says: Callable[..., None], homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(user=USER)
    (homes / "taken").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(homes / "taken"))
    assert remembered(question()) is not None
    assert recall(question()) is None


def test_there_is_never_much_of_it(known: FileSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_inputs, "MAX_FILES", 3)
    for name in ("offline", "localhost", "online"):
        remembered(question(name))
    assert len(os.listdir(answer_cache.memory_folder())) <= 3


def test_memory_is_the_users_alone(known: FileSettings) -> None:
    place = Path(question().place)
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)


TEXT = st.text(max_size=8)


@given(st.lists(st.tuples(TEXT, TEXT)), TEXT, st.booleans())
def test_settings_survive_being_written(pairs: list[tuple[str, str]], name: str, indicator: object) -> None:
    made = FileSettings(set_env=tuple(pairs), name=name, prompt_indicator=bool(indicator), allow_write=())
    assert decode(marshal.loads(marshal.dumps(encode(made)))) == made


def test_a_basis_holds_only_if_every_part_does(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    there = (answer_cache.THERE, str(tmp_path / "a"), True)
    assert holds(())
    assert holds((there,))
    assert not holds((there, (answer_cache.THERE, str(tmp_path / "b"), True)))


def test_a_remembered_answer_is_had_without_reading_toml(known: FileSettings, project: Path) -> None:
    code = (
        "import os, sys\n"
        "from netsandbox.cli.run_options import POLICY_OPTIONS, read_config\n"
        "from netsandbox.runtime.option_parser import parse\n"
        "assert read_config(parse([], POLICY_OPTIONS, 'x')) is not None\n"
        "print(*sorted(set(sys.modules) & {'tomllib', 're', 'json', 'subprocess', 'dataclasses', 'difflib',"
        " 'netsandbox.config.keys', 'netsandbox.config.document', 'netsandbox.config.profiles.selection'}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
