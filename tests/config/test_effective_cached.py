"""Settings are recalled while nothing that they rest on has changed."""

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

from netsandbox.config import cache
from netsandbox.config import effective as module
from netsandbox.config.cache import ConfigSources, recall_settings
from netsandbox.config.effective import load
from netsandbox.config.file_settings import FileSettings, from_plain, to_plain
from netsandbox.config.paths import project_files, user_files
from netsandbox.config.trust import distrust, trust
from netsandbox.paths import config_home, home

USER = (
    "[network]\nallow_domains = ['u.test:8443']\ndeny_domains = ['*.bad.test']\nallow_addresses = ['192.0.2.0/24:53']\n"
)
PROJECT = "[network]\nallow_domains = ['p.test']\n[shell]\ndeny_env = ['X*']\n[filesystem]\ndeny_read = ['~/x']\n"


def sources(*names: str, named: str | None = None, detect: bool = True) -> ConfigSources:
    return ConfigSources(os.getcwd(), home(), config_home(), user_files(), project_files(), named, names, detect, None)


@pytest.fixture
def known(says: Callable[..., None]) -> FileSettings:
    says(user=USER, project_file=PROJECT)
    found = load(sources())
    assert found is not None
    return found


def comparable(settings: FileSettings | None) -> object:
    """What can be compared: rules are bare objects."""
    return None if settings is None else to_plain(settings)


def test_the_same_sources_are_answered_from_the_cache(known: FileSettings) -> None:
    answer = recall_settings(sources())
    assert answer is not None
    assert comparable(answer[0]) == comparable(known)
    assert [rule.text for rule in known.allow_domains] == ["u.test:8443"]


def test_no_settings_are_cached_too(project: Path) -> None:
    assert load(sources()) is None
    answer = recall_settings(sources())
    assert answer is not None
    assert answer[0] is None
    (project / "package.json").write_text("{}")
    assert recall_settings(sources()) is None


@pytest.mark.parametrize("other", [{"named": "x.toml"}, {"detect": False}, {}])
def test_other_sources_have_no_answer(known: FileSettings, other: dict[str, object]) -> None:
    names = () if other else ("online",)
    assert recall_settings(sources(*names, **other)) is None  # type: ignore[arg-type]


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
    load(wanted := sources())
    assert recall_settings(wanted) is not None
    CHANGES[what](homes, project)
    assert recall_settings(wanted) is None


def test_a_project_file_with_its_old_times_is_still_another_one(known: FileSettings, project: Path) -> None:
    path, wanted = project / ".netsandbox.toml", sources()
    before = path.stat()
    path.write_text(PROJECT.replace("p.test", "q.test"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert recall_settings(wanted) is None


def test_trust_that_is_taken_back_is_not_load(says: Callable[..., None], project: Path) -> None:
    path = project / ".netsandbox.toml"
    says(project_file=PROJECT)
    trust(str(path), path.read_bytes())
    found = load(sources())
    assert found is not None
    assert [rule.text for rule in found.allow_domains] == ["p.test"]
    distrust(str(path))
    assert recall_settings(sources()) is None


def test_an_unknown_field_or_damage_is_no_answer(known: FileSettings) -> None:
    wanted = sources()
    cache.store(cache.CONFIGURATION, wanted.key, ({**to_plain(known), "extra": 1},), (), 100)
    assert recall_settings(wanted) is None
    load(wanted)
    path = Path(cache.path_of(cache.CONFIGURATION, wanted.key))
    path.write_bytes(path.read_bytes()[:-20])
    assert recall_settings(wanted) is None


def test_a_file_that_changes_meanwhile_is_not_cached(
    says: Callable[..., None], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(project_file=PROJECT)
    path, real = project / ".netsandbox.toml", module._settings

    def slow(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        path.write_text("[network]\ndeny_domains = ['late.test']\n")
        return found

    monkeypatch.setattr(module, "_settings", slow)
    assert load(sources()) is not None
    assert recall_settings(sources()) is None


def test_a_pipe_is_left_to_whoever_reads_it(project: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"[network]\nallow_domains = ['n.test']\n")
    os.close(writing)
    try:
        wanted = sources(named=f"/dev/fd/{reading}")
        assert recall_settings(wanted) is None
        found = load(wanted)
    finally:
        os.close(reading)
    assert found is not None
    assert [rule.text for rule in found.allow_domains] == ["n.test"]
    assert not os.path.exists(cache.path_of(cache.CONFIGURATION, wanted.key))


def test_a_state_home_that_cannot_be_written_only_costs_time(
    says: Callable[..., None], homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(user=USER)
    (homes / "taken").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(homes / "taken"))
    assert load(sources()) is not None
    assert recall_settings(sources()) is None


def test_the_cache_is_bounded(known: FileSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_FILES", 3)
    for name in ("offline", "localhost", "online"):
        load(sources(name))
    assert len(os.listdir(cache.folder())) <= 3


TEXT = st.text(max_size=8)


@given(st.lists(st.tuples(TEXT, TEXT)), TEXT, st.booleans())
def test_settings_survive_being_written(pairs: list[tuple[str, str]], name: str, indicator: object) -> None:
    made = FileSettings(set_env=tuple(pairs), name=name, prompt_indicator=bool(indicator), allow_write=())
    assert from_plain(marshal.loads(marshal.dumps(to_plain(made)))) == made


def test_cached_settings_are_read_without_parsing_toml(known: FileSettings, project: Path) -> None:
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
