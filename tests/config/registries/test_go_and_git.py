"""git: hosts of the user's settings, and the project's remotes as its own word."""

from __future__ import annotations

import subprocess

import pytest

from netsandbox.config.registries.discovery import Setting
from netsandbox.config.registries.go_and_git import database
from tests.config.registries.conftest import Scene
from tests.config.registries.test_node import Expected, Files, check

ENV = "~/.config/go/env"
DEFAULT = (
    'case "$2 $GOENV" in "GOPROXY off") echo https://default.example,direct;; "GOSUMDB off") echo sum.example;; esac'
)
GO: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"default": False, "sum": False}),
    ({}, {"GOPROXY": "https://a.example|https://b.example,direct"}, {"a": False, "b": False, "sum": False}),
    ({}, {"GOPROXY": "off", "GOSUMDB": "off"}, {}),
    ({}, {"GOPROXY": "direct"}, {"sum": False}),
    ({}, {"GONOSUMDB": "a.example,*"}, {"default": False}),
    ({}, {"GOPRIVATE": "*"}, {"default": False}),
    ({}, {"GOPRIVATE": "*", "GONOSUMDB": "a.example"}, {"default": False, "sum": False}),
    ({"own": "GONOSUMDB=*\n"}, {"GOENV": "own"}, {"default": False, "sum": False}),
    ({}, {"GOSUMDB": "key.example+1234+abc="}, {"default": False, "key": False}),
    ({}, {"GOSUMDB": "key.example+1234+abc= https://url.example/x"}, {"default": False, "url": False}),
    ({ENV: "GOPROXY=https://user.example\nGOSUMDB=off\n"}, {}, {"user": False}),
    ({ENV: "GOPROXY=https://user.example\n"}, {"GOPROXY": "https://env.example"}, {"env": False, "sum": False}),
    ({ENV: "GOPROXY=https://user.example\n"}, {"GOENV": "off"}, {"default": False, "sum": False}),
    ({"off": "GOPROXY=https://no.example\n"}, {"GOENV": "off"}, {"default": False, "sum": False}),
    ({"~/own": "GOPROXY=https://own.example\n"}, {"GOENV": "~/own"}, {"own": False, "sum": False}),
    ({"own": "GOPROXY=https://own.example\n"}, {"GOENV": "own"}, {"own": True, "default": False, "sum": False}),
    ({}, {"GOPROXY": "file:///srv/go,https://a.example"}, {"a": False, "sum": False}),
]


@pytest.mark.parametrize(("files", "variables", "wanted"), GO)
def test_go(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("go", DEFAULT)
    check(scene, "go", files, {key: value.replace("~", str(scene.home)) for key, value in variables.items()}, wanted)


def test_direct_is_a_note(scene: Scene) -> None:
    scene.environment["GOPROXY"] = "https://a.example,direct"
    assert any("own hosts" in note and "--allow-domain" in note for note in scene.discover("go").notes)
    scene.environment["GOPROXY"] = "https://a.example"
    assert not any("own hosts" in note for note in scene.discover("go").notes)
    scene.environment["GOPRIVATE"] = "b.example"
    assert any("own hosts" in note for note in scene.discover("go").notes)


def test_a_database_by_name_or_url() -> None:
    assert database(Setting("GOSUMDB", "a.example", "o", project=True)) == Setting(
        "GOSUMDB", "https://a.example", "o", project=True
    )


def test_the_real_go_names_its_defaults(scene: Scene) -> None:
    scene.real("go")
    environment = {"PATH": scene.environment["PATH"], "HOME": str(scene.home), "GOENV": "off", "GOTOOLCHAIN": "local"}
    run = subprocess.run(
        ["go", "env", "GOPROXY", "GOSUMDB"], cwd="/", env=environment, capture_output=True, text=True, check=True
    )
    proxies, sums = run.stdout.split()
    answer = scene.discover("go")
    hosts = [pattern.removesuffix(":443") for pattern in answer.patterns()]
    assert hosts == [*(each.removeprefix("https://") for each in proxies.split(",") if each != "direct"), sums]


def test_what_the_real_go_writes_is_read(scene: Scene) -> None:
    scene.real("go")
    environment = {"PATH": scene.environment["PATH"], "HOME": str(scene.home), "GOTOOLCHAIN": "local"}
    subprocess.run(
        ["go", "env", "-w", "GOPROXY=https://a.example", "GOSUMDB=off"], cwd="/", env=environment, check=True
    )
    assert scene.found("go") == {"a.example:443": False}


OWN = """\
[user]
\tname = me
[url "https://git.company.test/"]
\tinsteadOf = company:
[credential "https://code.test:8443"]
\thelper = store
[http "https://mirror.test/path"]
\tproxy = http://elsewhere.test:3128
[http]
\tproxy = http://elsewhere.test:3128
"""


def test_sections_that_are_named_by_a_url(scene: Scene) -> None:
    scene.write("~/.gitconfig", OWN)
    assert scene.found("git") == {"git.company.test:443": False, "code.test:8443": False, "mirror.test:443": False}


def test_the_other_place_of_the_users_settings(scene: Scene) -> None:
    scene.write("~/.config/git/config", '[credential "https://code.test"]\n\tusername = me\n')
    assert scene.found("git") == {"code.test:443": False}


def test_remotes_are_settings_of_the_project(scene: Scene) -> None:
    file = scene.write(
        ".git/config",
        '[remote "origin"]\n\turl = https://me:secret@evil.test/shop.git\n\tpushurl = git@ssh.test:shop.git\n'
        '[url "https://evil2.test/"]\n\tinsteadOf = https://git.company.test/\n',
    )
    answer = scene.discover("git")
    assert {each.pattern: each.project for each in answer.registries} == {"evil.test:443": True, "evil2.test:443": True}
    assert answer.patterns() == ()
    assert answer.registries[0].origin == f"{file}:2"
    assert f"{file}:3: this remote is not reached by HTTP; allow its host with --allow-domain HOST:22" in answer.notes
    assert "secret" not in repr(answer)


def test_no_program_is_started(scene: Scene) -> None:
    scene.tool("git", scene.trace.command)
    scene.write(".git/config", "[core]\n\tfsmonitor = touch x\n")
    scene.discover("git")
    assert scene.trace.lines() == []
