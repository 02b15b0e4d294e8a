"""The switches of a Mac's profile, from the command line and the files to the profile itself."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from netsandbox.cli import explain, run
from netsandbox.cli.run_options import mode_of, policy_of, read_config, settings_of
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import parse
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import file, lookup

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


@pytest.mark.parametrize("main", [run.main, explain.main])
def test_elsewhere_the_option_is_an_error_since_it_would_do_nothing(
    main: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netsandbox.cli.run_options.IS_MACOS", False)
    with pytest.raises(UsageError, match="--seatbelt-switch is about macOS; leave it out"):
        main(["--seatbelt-switch", "no-debug"])  # type: ignore[operator]


def test_on_a_mac_it_needs_no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.cli.run_options.IS_MACOS", True)
    assert switches("--seatbelt-switch", "trustd") == ("trustd",)


def test_a_word_that_is_no_switch_is_an_error() -> None:
    with pytest.raises(UsageError, match="--seatbelt-switch: there is no switch 'trust'; use one of"):
        switches("--backend", "seatbelt", "--seatbelt-switch", "trust")


def test_a_projects_own_file_closes_a_switch_and_opens_none_untrusted(project: Path) -> None:
    (project / ".netsandbox.toml").write_text('[seatbelt]\nswitches = ["no-debug"]\n')
    assert switches() == ("no-debug",)
    (project / ".netsandbox.toml").write_text('[seatbelt]\nswitches = ["trustd"]\n')
    assert switches() == ()


@pytest.mark.attack(229)
def test_a_project_names_its_sessions_only_when_it_is_trusted(project: Path) -> None:
    """H18: under the name of another project, its origin in browsers and its `stop` and `open` would be taken."""

    def name(*words: str) -> str | None:
        parsed = parse(list(words), run.OPTIONS, "netsandbox run")
        return settings_of(parsed, read_config(parsed)).name

    own = project / ".netsandbox.toml"
    own.write_text('[session]\nname = "bank"\n')
    assert name() is None
    assert name("--name", "shop") == "shop"
    assert name("--config", str(own)) == "bank"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--online", "--offline"], "--offline and --online exclude each other; choose one"),
        (["--profile", "online", "--offline"], "--offline and the profile online exclude each other; choose one"),
        (
            ["-p", "online", "-p", "localhost"],
            "the profile localhost and the profile online exclude each other; choose",
        ),
        (["-p", "offline", "--allow-domain", "a.test"], "the profile offline lets nothing out, so --allow-domain has"),
        (
            ["--offline", "--allow-address", "192.0.2.1"],
            "--offline lets nothing out, so --allow-address has no meaning",
        ),
        (["--filtered", "--online"], "--filtered and --online exclude each other"),
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
        "[approvals]\nask = true\n",
        '[approvals]\nask = true\n[network]\nmode = "offline"\n',
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--offline"],
        ["--localhost"],
        ["--filtered"],
        ["--online"],
        ["--allow-domain", "example.com"],
        ["--localhost", "--allow-domain", "example.com"],
        ["--allow-address", "192.0.2.7"],
        ["--deny-domain", "example.com"],
        ["--online", "--allow-domain", "example.com"],
        ["--profile", "online"],
        ["--allow-domain", "example.com", "--ask"],
    ],
)
def test_the_mode_that_the_command_is_told_is_that_of_the_policy(project: Path, words: list[str], text: str) -> None:
    said = project / "said.toml"
    said.write_text(text or "[session]\nname = 'x'\n")
    online = "--ask" in words and '"online"' in text  # which is an error, as below
    for given in (words,) if online else (words, [*words, "--config", str(said)]):
        parsed = parse(["--no-config", *given], run.OPTIONS, "netsandbox run")
        file = read_config(parsed)
        assert mode_of(parsed, file) == settings_of(parsed, file).mode == policy_of(parsed, file).mode


def asked(project: Path, words: list[str], text: str) -> tuple[int | None, str, list[str]]:
    """For how long is asked, the mode, and the rules that count."""
    said = project / "said.toml"
    said.write_text(text)
    parsed = parse(["--no-config", "--config", str(said), *words], run.OPTIONS, "netsandbox run")
    file = read_config(parsed)
    settings, policy = settings_of(parsed, file), policy_of(parsed, file)
    assert settings.mode == policy.mode
    return settings.ask, policy.mode, [rule.text for rule in (*policy.allow_domains, *policy.allow_addresses)]


RULES = "[network]\nallow_domains = ['a.test']\nallow_addresses = ['192.0.2.7']\n"
ASK = "[approvals]\nask = true\nwait = 5\n"


@pytest.mark.parametrize(
    ("words", "text", "outcome"),
    [
        ([], RULES, (None, "filtered", ["a.test", "192.0.2.7"])),
        (["--ask"], RULES, (60, "filtered", ["a.test", "192.0.2.7"])),
        (["--ask"], "[session]\nname = 'x'\n", (60, "filtered", [])),
        (["--ask", "--ask-wait", "7"], ASK, (7, "filtered", [])),
        (["--ask-wait", "7"], ASK, (7, "filtered", [])),
        ([], ASK, (5, "filtered", [])),
        ([], ASK + RULES, (5, "filtered", ["a.test", "192.0.2.7"])),
        # A closed mode: --ask asks about everything, whatever rules there are; a file's word does not open it.
        (["--ask", "--offline"], RULES, (60, "filtered", [])),
        (["--ask", "-p", "localhost"], RULES, (60, "filtered", [])),
        (["--ask"], RULES + "mode = 'offline'\n", (60, "filtered", [])),
        (["--offline"], ASK, (None, "offline", [])),
        ([], ASK + "[network]\nmode = 'offline'\n", (None, "offline", [])),
        (["--online"], ASK, (None, "online", [])),
        ([], ASK + "[network]\nmode = 'online'\n", (None, "online", [])),
    ],
)
def test_the_options_and_files_that_make_a_session_ask(
    project: Path, words: list[str], text: str, outcome: object
) -> None:
    assert asked(project, words, text) == outcome


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ask", "--online", "--files", "open"], "the session is online, so --ask has nothing to ask about"),
        (["--ask-wait", "5"], "--ask-wait has no meaning where nobody is asked; add --ask"),
        (["--ask", "--ask-wait", "0"], "--ask-wait: '0' is not a number of seconds from 1 to 3600"),
        (["--ask", "--ask-wait", "1h"], "--ask-wait: '1h' is not a number of seconds"),
        (["--ask", "--ask-wait", "-5"], "--ask-wait: '-5' is not a number of seconds"),
        (["--ask", "--ask-wait", "٣"], "--ask-wait: "),
    ],
)
def test_asking_that_makes_no_sense_is_an_error(project: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        asked(project, words, RULES)
    assert str(raised.value).startswith(said)


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


def test_the_named_backend_reaches_the_session() -> None:
    for arguments, backend in (["--backend", "namespaces"], "namespaces"), ([], None):
        parsed = parse(["--no-config", *arguments], run.OPTIONS, "netsandbox run")
        assert settings_of(parsed, None).backend == backend


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--allow-domain", "*"), ("--deny-domain", "*"), ("--allow-address", "0.0.0.0/0")),
        *(("--allow-query-type", "FOO"), ("--allow-unix-socket", "a")),
    ],
)
def test_a_mistake_of_the_command_line_names_its_option(option: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{option}: "):
        policy_of(parse([option, value], run.OPTIONS, "netsandbox run"), None)
