"""Which files count, in which order, and how far."""

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
from netsandbox.config.effective import effective_layers, load, merged_settings
from netsandbox.config.file_settings import FileSettings, from_plain, to_plain
from netsandbox.config.paths import list_file, project_files, rules_file, user_file, user_files
from netsandbox.config.profiles.selection import ProfileRequest
from netsandbox.config.trust import distrust, trust
from netsandbox.errors import UsageError
from netsandbox.paths import config_home, home


def found(named: str | None = None) -> FileSettings:
    user = user_files()
    return merged_settings(effective_layers(user, project_files(), named), (*user, named), ProfileRequest(detect=False))


def allowed(settings: FileSettings) -> list[str]:
    return [rule.text for rule in settings.allow_domains]


def test_the_users_then_the_projects_then_the_named_one(says: Callable[..., None], project: Path) -> None:
    says(user="[network]\nallow_domains = ['u.test']\n", project_file="[network]\nallow_domains = ['p.test']\n")
    named = project / "named.toml"
    named.write_text("[network]\nallow_domains = ['n.test']\n")
    assert allowed(found(str(named))) == ["u.test", "n.test"]
    trust(str(project / ".netsandbox.toml"), (project / ".netsandbox.toml").read_bytes())
    assert allowed(found(str(named))) == ["u.test", "p.test", "n.test"]


@pytest.mark.attack(16)
def test_a_project_file_that_changed_is_not_trusted_any_more(says: Callable[..., None], project: Path) -> None:
    path = project / ".netsandbox.toml"
    says(project_file="[network]\nallow_domains = ['p.test']\n")
    trust(str(path), path.read_bytes())
    path.write_text("[network]\nallow_domains = ['p.test', 'evil.test']\n")
    assert allowed(found()) == []
    assert found().ignored == (("network.allow_domains", f"{path}:2"),)


@pytest.mark.attack(16)
@pytest.mark.parametrize("text", ["#" * 65537, "a" + ".a" * 100_000 + " = 1\n"], ids=["long", "parts"])
def test_a_project_file_that_would_keep_every_start_waiting_is_not_read_before_it_is_trusted(
    says: Callable[..., None], project: Path, text: str
) -> None:
    says(project_file=text)
    with pytest.raises(UsageError, match="too long to be read before it is trusted"):
        found()


def test_a_long_project_file_counts_once_it_is_trusted(says: Callable[..., None], project: Path) -> None:
    path = project / ".netsandbox.toml"
    says(project_file="[network]\nallow_domains = ['p.test']\n" + "#" * 65537)
    trust(str(path), path.read_bytes())
    assert allowed(found()) == ["p.test"]


@pytest.mark.parametrize("kind", ["fifo", "folder", "endless", "missing"])
def test_a_project_file_that_is_none_is_an_error_and_nobody_waits(project: Path, kind: str) -> None:
    path = project / ".netsandbox.toml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "endless" else "nowhere")
    with pytest.raises(UsageError, match=r"not a file; remove it|cannot read the configuration"):
        found()


def test_a_named_file_may_be_a_pipe(project: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"[network]\nallow_domains = ['n.test']\n")
    os.close(writing)
    try:
        assert allowed(found(f"/dev/fd/{reading}")) == ["n.test"]
        assert allowed(found(f"/dev/fd/{reading}")) == ["n.test"], "`explain` asks twice"
    finally:
        os.close(reading)


def test_a_trusted_project_may_leave_the_users_rules_out(says: Callable[..., None], project: Path) -> None:
    path = project / ".netsandbox.toml"
    says(user="[network]\ndeny_domains = ['u.test']\n", project_file="[sandbox]\ninherit_global = false\n")
    assert [rule.text for rule in found().deny_domains] == ["u.test"]
    assert found().ignored == (("sandbox.inherit_global", f"{path}:2"),)
    trust(str(path), path.read_bytes())
    assert found() == FileSettings(kept=(user_file() or "",))
    says(project_file="[sandbox]\ninherit_global = true\n")
    assert [rule.text for rule in found().deny_domains] == ["u.test"]


def test_other_spellings_are_the_same_key(says: Callable[..., None], homes: Path, project: Path) -> None:
    says(
        user="[network]\nmode = 'online'\n[sandbox]\nlog_file = '~/audit.jsonl'\nshell = '/bin/zsh'\n",
        project_file="[sandbox]\nnetwork = 'localhost'\n",
    )
    assert (found().mode, found().audit_log, found().shell) == ("localhost", f"{homes}/home/audit.jsonl", "/bin/zsh")


def test_the_files_of_a_project_are_laid_over_one_another_each_with_its_own_trust(project: Path) -> None:
    (project / ".claude-sandbox.json").write_text('{"network_ports": [5432],\n "environment": {"A": "json", "B": "b"}}')
    (project / ".sandbox.toml").write_text("[shell]\nset_env = { A = 'sx' }\n[network]\nmode = 'offline'\n")
    assert found().localhost.connect_host == ()
    assert {origin for _, origin in found().ignored} == {
        f"{project}/.claude-sandbox.json:1",
        f"{project}/.claude-sandbox.json:2",
        f"{project}/.sandbox.toml:2",
    }
    for name in (".claude-sandbox.json", ".sandbox.toml"):
        trust(str(project / name), (project / name).read_bytes())
    assert found().localhost.connect_host == (5432,)
    assert dict(found().set_env) == {"A": "sx", "B": "b"}
    assert found().mode == "offline"


def test_the_users_list_of_a_folder_lies_above_his_file_and_is_kept_from_commands(
    says: Callable[..., None], project: Path
) -> None:
    says(user="[filesystem]\nallow_write = ['/u']\n", project_file="[sandbox]\ninherit_global = false\n")
    path = Path(list_file() or "")
    path.parent.mkdir()
    path.write_text("# mine\n\n~/x/\n/y\n")
    home = os.environ["HOME"]
    rules = [("/u", f"{user_file()}:2"), (f"{home}/x", f"{path}:3"), ("/y", f"{path}:4")]
    assert [(rule.path, rule.origin) for rule in found().allow_write or ()] == rules
    assert found().kept == (user_file(), str(path))
    own = project / ".netsandbox.toml"
    trust(str(own), own.read_bytes())  # leaves the global file out, and that alone
    assert [(rule.path, rule.origin) for rule in found().allow_write or ()] == rules[1:]
    path.write_text("# nothing\n")
    assert found().allow_write == ()


def test_the_users_rules_of_a_folder_count_and_are_kept_from_commands(says: Callable[..., None], project: Path) -> None:
    says(user="[network]\nallow_domains = ['u.test']\n", project_file="[sandbox]\ninherit_global = false\n")
    path = Path(rules_file() or "")
    path.parent.mkdir()
    path.write_text("[network]\nallow_domains = ['folder.test:443']\n")
    assert [rule.text for rule in found().allow_domains] == ["u.test", "folder.test:443"]
    assert found().kept == (user_file(), str(path))
    own = project / ".netsandbox.toml"
    trust(str(own), own.read_bytes())  # leaves the global file out, and that alone
    assert [rule.text for rule in found().allow_domains] == ["folder.test:443"]


@pytest.mark.parametrize(("text", "ask", "wait"), [("ask = true", True, 60), ("ask = true\nwait = 5", True, 5)])
def test_a_projects_file_asks_only_once_it_is_trusted(
    says: Callable[..., None], project: Path, text: str, ask: bool, wait: int
) -> None:
    says(project_file=f"[approvals]\n{text}\n")
    assert (found().ask, found().ask_wait) == (False, 60)
    assert "approvals.ask" in [key for key, _ in found().ignored]
    own = project / ".netsandbox.toml"
    trust(str(own), own.read_bytes())
    assert (found().ask, found().ask_wait) == (ask, wait)


def test_a_projects_file_may_ask_for_no_asking(says: Callable[..., None], project: Path) -> None:
    says(user="[approvals]\nask = true\nwait = 5\n", project_file="[approvals]\nask = false\n")
    assert (found().ask, found().ask_wait, found().ignored) == (False, 5, ())


@pytest.mark.parametrize("wait", ["0", "-1", "3601", "1.5", "true", "'60'", "99999999999999999999"])
def test_a_wait_is_a_number_of_seconds(says: Callable[..., None], project: Path, wait: str) -> None:
    says(user=f"[approvals]\nwait = {wait}\n")
    with pytest.raises(UsageError, match=r"config\.toml:2"):
        found()


def test_a_list_that_cannot_be_read_is_an_error(project: Path) -> None:
    path = Path(list_file() or "")
    path.parent.mkdir(parents=True)
    path.write_text("/fine\nrelative\n")
    with pytest.raises(UsageError, match=rf"Failed to parse config file\. File: {path}\. Line 2: Invalid path format"):
        found()


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


@pytest.mark.attack(16)
def test_a_nearer_file_hides_no_narrowing_rule_above_it(
    says: Callable[..., None], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command may leave a file in any folder of the project."""
    (project / ".git").mkdir()
    says(project_file="[network]\nmode = 'offline'\ndeny_domains = ['secret.test']\n")
    (project / "below").mkdir()
    (project / "below" / ".netsandbox.toml").write_text("[network]\nmode = 'online'\ndeny_domains = ['other.test']\n")
    monkeypatch.chdir(project / "below")
    settings = found()
    assert {rule.text for rule in settings.deny_domains} == {"secret.test", "other.test"}
    assert settings.mode == "offline"
