"""The switches of a Mac's profile, from the command line and the files to the profile itself."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from netsandbox.cli import explain, run
from netsandbox.cli.options import parse
from netsandbox.cli.policy_options import mode_of, policy_of, read_config, settings_of
from netsandbox.errors import UsageError
from netsandbox.seatbelt.evaluator import allowed_under_all, denied_under_all
from netsandbox.seatbelt.profile import load
from netsandbox.seatbelt.request import file, lookup

DRY = ["--backend", "seatbelt", "--dry-run"]
TRUSTD = lookup("com.apple.trustd.agent")


@pytest.fixture(autouse=True)
def project(mac_project: Path) -> Path:
    return mac_project


def switches(*words: str) -> tuple[str, ...]:
    parsed = parse(words, run.OPTIONS, "netsandbox run")
    return settings_of(parsed, read_config(parsed)).switches


def test_words_of_the_file_come_before_those_of_the_command_line(project: Path) -> None:
    file_ = project / "rules.toml"
    file_.write_text('[seatbelt]\nswitches = ["trustd", "no-debug"]\n')
    assert switches("--config", str(file_)) == ("trustd", "no-debug")
    words = ("--backend", "seatbelt", "--config", str(file_), "--seatbelt-switch", "no-trustd")
    assert switches(*words) == ("trustd", "no-debug", "no-trustd")


def test_a_switch_is_in_the_profile_that_is_printed_and_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([*DRY, "--seatbelt-switch", "trustd", "--seatbelt-switch=no-tool-caches", "--", "true"]) == 0
    judged = load(capsys.readouterr().out)
    assert allowed_under_all(judged, TRUSTD)
    assert denied_under_all(judged, file("file-write-create", "/Users/me/.npm/x"))
    assert run.main([*DRY, "--", "true"]) == 0
    judged = load(capsys.readouterr().out)
    assert denied_under_all(judged, TRUSTD)
    assert allowed_under_all(judged, file("file-write-create", "/Users/me/.npm/x"))


def test_explain_asks_the_profile_with_the_switch() -> None:
    asked = ["--backend", "seatbelt", "mach:com.apple.trustd.agent"]
    assert explain.main(asked) == 1
    assert explain.main([*asked, "--seatbelt-switch", "trustd"]) == 0


@pytest.mark.parametrize("main", [run.main, explain.main])
@pytest.mark.parametrize("system", ["linux", "freebsd"])
def test_elsewhere_the_option_is_an_error_since_it_would_do_nothing(
    main: object, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", system)
    with pytest.raises(UsageError, match="--seatbelt-switch is about macOS; leave it out"):
        main(["--seatbelt-switch", "no-debug"])  # type: ignore[operator]


def test_on_a_mac_it_needs_no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert switches("--seatbelt-switch", "trustd") == ("trustd",)


def test_a_word_that_is_no_switch_is_an_error() -> None:
    with pytest.raises(UsageError, match="--seatbelt-switch: there is no switch 'trust'; use one of"):
        switches("--backend", "seatbelt", "--seatbelt-switch", "trust")


def test_a_projects_own_file_closes_a_switch_and_opens_none_untrusted(project: Path) -> None:
    (project / ".netsandbox.toml").write_text('[seatbelt]\nswitches = ["no-debug"]\n')
    assert switches() == ("no-debug",)
    (project / ".netsandbox.toml").write_text('[seatbelt]\nswitches = ["trustd"]\n')
    assert switches() == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--online", "--offline"], "--offline and --online exclude each other; choose one"),
        (["--profile", "online", "--offline"], "--offline and online exclude each other; choose one"),
        (["-p", "online", "-p", "localhost"], "localhost and online exclude each other; choose one"),
        (["-p", "offline", "--allow-domain", "a.test"], "offline lets nothing out, so --allow-… has no meaning"),
        (["--localhost", "--allow-address", "192.0.2.1"], "--localhost lets nothing out, so --allow-… has no meaning"),
    ],
)
def test_modes_exclude_one_another_as_options_and_as_profiles(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        policy_of(parsed := parse(words, run.OPTIONS, "netsandbox run"), read_config(parsed))
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("words", [["--online", "-p", "online"], ["-p", "online", "-p", "online"], ["-p", "online"]])
def test_the_same_mode_twice_is_no_contradiction(words: list[str]) -> None:
    parsed = parse(words, run.OPTIONS, "netsandbox run")
    assert policy_of(parsed, read_config(parsed)).mode == "online"


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[network]\nmode = "online"\n',
        '[network]\nmode = "localhost"\n',
        '[network]\nallow_domains = ["example.com"]\n',
        '[network]\nallow_addresses = ["192.0.2.7"]\n',
        '[network]\ndeny_domains = ["example.com"]\n',
        '[network]\nmode = "offline"\nallow_domains = ["example.com"]\n',
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--offline"],
        ["--localhost"],
        ["--online"],
        ["--allow-domain", "example.com"],
        ["--allow-address", "192.0.2.7"],
        ["--deny-domain", "example.com"],
        ["--online", "--allow-domain", "example.com"],
        ["--profile", "online"],
    ],
)
def test_the_mode_that_the_command_is_told_is_that_of_the_policy(project: Path, words: list[str], text: str) -> None:
    said = project / "said.toml"
    said.write_text(text or "[session]\nname = 'x'\n")
    for given in (words, [*words, "--config", str(said)]):
        parsed = parse(["--no-config", *given], run.OPTIONS, "netsandbox run")
        file = read_config(parsed)
        assert mode_of(parsed, file) == settings_of(parsed, file).mode == policy_of(parsed, file).mode


def protected(name: str) -> tuple[str, ...]:
    parsed = parse(["--no-config", "--config", name], run.OPTIONS, "netsandbox run")
    return settings_of(parsed, read_config(parsed)).configs


def test_a_file_of_settings_is_protected_by_its_name_and_a_descriptor_by_where_it_leads(project: Path) -> None:
    rules, link = project / "rules.toml", project / "link.toml"
    rules.write_text("[network]\nmode = 'offline'\n")
    link.symlink_to(rules)
    assert protected("rules.toml") == (str(rules),)
    assert protected("link.toml") == (str(link),), "were it exchanged, the next run would read something else"
    with link.open("rb") as file:
        assert protected(f"/dev/fd/{file.fileno()}") == (str(rules),)
        rules.unlink()
        assert protected(f"/dev/fd/{file.fileno()}") == (), "as a shell's here-document"


def test_a_named_pipe_is_protected_as_files_are_and_one_without_a_name_needs_it_not(project: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"[network]\nmode = 'offline'\n")
    os.close(writing)
    try:
        assert protected(f"/dev/fd/{reading}") == ()
    finally:
        os.close(reading)
    pipe = project / "rules"
    os.mkfifo(pipe)
    Thread(target=pipe.write_text, args=("[network]\nmode = 'offline'\n",), daemon=True).start()
    assert protected(str(pipe)) == (str(pipe),)
