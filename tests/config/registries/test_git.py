"""git: hosts of the user's settings, and the project's remotes as its own word."""

from __future__ import annotations

from tests.config.registries.conftest import Scene

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
    assert scene.said("git") == {"git.company.test:443": False, "code.test:8443": False, "mirror.test:443": False}


def test_the_other_place_of_the_users_settings(scene: Scene) -> None:
    scene.write("~/.config/git/config", '[credential "https://code.test"]\n\tusername = me\n')
    assert scene.said("git") == {"code.test:443": False}


def test_remotes_are_the_projects_word(scene: Scene) -> None:
    file = scene.write(
        ".git/config",
        '[remote "origin"]\n\turl = https://me:secret@evil.test/shop.git\n\tpushurl = git@ssh.test:shop.git\n'
        '[url "https://evil2.test/"]\n\tinsteadOf = https://git.company.test/\n',
    )
    answer = scene.ask("git")
    assert {each.pattern: each.project for each in answer.registries} == {"evil.test:443": True, "evil2.test:443": True}
    assert answer.patterns() == ()
    assert answer.registries[0].origin == f"{file}:2"
    assert f"{file}:3: this remote is not reached by HTTP; allow its host with --allow-domain HOST:22" in answer.notes
    assert "secret" not in repr(answer)


def test_no_program_is_started(scene: Scene) -> None:
    marker = scene.home / "ran"
    scene.tool("git", f"touch {marker}")
    scene.write(".git/config", "[core]\n\tfsmonitor = touch x\n")
    scene.ask("git")
    assert not marker.exists()
