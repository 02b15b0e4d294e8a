"""Which files count, in which order, and how far."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.cli import run
from netsandbox.cli.run_options import read_config
from netsandbox.config.effective import effective_layers, merged_settings
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.paths import list_file, project_files, rules_file, user_file, user_files
from netsandbox.config.profiles.selection import ProfileRequest
from netsandbox.config.trust import trust
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import parse


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
    assert found().localhost.connect_host == (HostPort(5432),)
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


@pytest.fixture
def organisation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    path = tmp_path / "etc.toml"
    monkeypatch.setattr("netsandbox.config.paths.ORGANISATION_FILE", str(path))
    real = os.fstat

    def of_root(fd: int) -> os.stat_result:
        """Tests of ordinary users cannot make a file of root's."""
        found = real(fd)
        return found if found.st_uid == 0 else os.stat_result((*found[:4], 0, *found[5:]))

    monkeypatch.setattr("netsandbox.config.document.os.fstat", of_root)

    def write(text: str) -> Path:
        path.write_text(text)
        path.chmod(0o644)
        return path

    return write


@pytest.mark.usefixtures("project")
def test_the_organisations_file_is_the_lowest_and_nothing_leaves_it_out(
    organisation: Callable[[str], Path], says: Callable[..., None], project: Path
) -> None:
    path = organisation("[network]\nmode = 'filtered'\ndeny_domains = ['bad.test']\n[session]\nname = 'org'\n")
    own = "[network]\nmode = 'online'\n[session]\nname = 'mine'\n"
    says(user=own, project_file="[sandbox]\ninherit_global = false\n")
    assert found().name == "mine"
    assert found().kept[0] == str(path)
    trust(str(project / ".netsandbox.toml"), (project / ".netsandbox.toml").read_bytes())
    assert (found().name, found().mode) == ("org", "filtered"), "without the user's file"
    (project / ".netsandbox.toml").unlink()
    assert (found().mode, [rule.text for rule in found().deny_domains]) == ("filtered", ["bad.test"])
    assert found().narrowed == (
        f"{user_file()}:2: network.mode online is wider than {path}:2 allows, so filtered holds; leave it out",
    )
    for words in ([], ["--no-config"], ["--no-config", "--no-detect"]):
        file = read_config(parse(words, run.OPTIONS, "netsandbox run"))
        assert file is not None
        assert [rule.text for rule in file.deny_domains] == ["bad.test"]


@pytest.mark.usefixtures("project")
def test_an_organisations_file_that_others_could_have_written_is_an_error(
    organisation: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = organisation("[network]\nmode = 'filtered'\n")
    path.chmod(0o664)
    with pytest.raises(UsageError, match="users other than root can write it; as root, run chown root and chmod go-w"):
        found()
    path.chmod(0o644)
    assert found().mode == "filtered"
    foreign = os.stat_result((0o100644, 0, 0, 1, 1000, 0, 0, 0, 0, 0))
    monkeypatch.setattr("netsandbox.config.document.os.fstat", lambda fd: foreign)
    with pytest.raises(UsageError, match="users other than root can write it"):
        found()
    path.unlink()
    path.symlink_to("/nowhere")
    with pytest.raises(UsageError, match="cannot read the configuration"):
        found()
