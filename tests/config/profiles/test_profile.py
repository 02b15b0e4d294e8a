"""A file becomes a profile, or an error that names file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.config import cache
from netsandbox.config.document import parsed
from netsandbox.config.profiles import profile as module
from netsandbox.config.profiles.profile import Library, Profile, profile_of
from netsandbox.errors import UsageError
from tests.config.profiles.conftest import Scene


def read(text: str, *, trusted: bool = True) -> Profile:
    return profile_of("shop", "shop.toml", *parsed("shop.toml", text.encode()), trusted=trusted)


def test_what_it_says_of_itself_is_no_part_of_its_layer() -> None:
    profile = read(
        '[profile]\nabout = "the shop"\nregistries = ["npm", "pip"]\ndetect = ["shop.yaml", "a/b"]\n'
        '[network]\nallow_domains = ["a.test"]\n'
    )
    assert (profile.name, profile.about) == ("shop", "the shop")
    assert (profile.registries, profile.detect) == (("npm", "pip"), ("shop.yaml", "a/b"))
    assert list(profile.layer.values) == [("network", "allow_domains")]
    assert profile.layer.trusted


def test_it_may_say_nothing_of_itself() -> None:
    profile = read('[network]\nmode = "online"\n', trusted=False)
    assert (profile.about, profile.registries, profile.detect) == ("", (), ())
    assert not profile.layer.trusted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[profile]\nabut = 'x'\n", "shop.toml:2: unknown key 'abut'; did you mean about?"),
        ("[profil]\nabout = 'x'\n", "shop.toml:1: unknown table 'profil'; did you mean profile?"),
        ("[profile]\nabout = 3\n", "shop.toml:2: about has a value of the wrong type"),
        ("[profile]\n\nregistries = ['npn']\n", "shop.toml:3: no registry is known for 'npn'; use one of npm, "),
        ("[profile]\nregistries = 'npm'\n", "shop.toml:2: registries has a value of the wrong type"),
        ("[profile]\ndetect = ['/etc/passwd']\n", "shop.toml:2: '/etc/passwd' is not a file of a project"),
        ("[profile]\ndetect = ['../x']\n", "shop.toml:2: '../x' is not a file of a project"),
        ("[profile]\ndetect = ['*.js']\n", "shop.toml:2: '*.js' is not a file of a project"),
        ("[profile]\ndetect = ['']\n", "shop.toml:2: '' is not a file of a project"),
        ("[network]\nallow_domains = ['*']\n", "shop.toml:2: "),
        ("[sandbox]\nprofiles = ['node']\n", "shop.toml:2: unknown key 'profiles'"),
        ("[sandbox]\ninherit_global = false\n", "shop.toml:2: unknown key 'inherit_global'"),
        ("[profiles]\nauto_detect = true\n", "shop.toml:1: unknown table 'profiles'; did you mean profile?"),
        ("", "shop.toml: the file sets nothing"),
    ],
)
def test_a_mistake_is_an_error_with_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(text)
    assert str(raised.value).startswith(said)


TEXT = '[network]\nallow_domains = ["a.test"]\n'


def allowed_domains(path: str, monkeypatch: pytest.MonkeyPatch | None = None) -> list[str]:
    """What the profile allows; with *monkeypatch* nothing may be parsed."""
    if monkeypatch is not None:
        monkeypatch.setattr(module, "_read", lambda *_: pytest.fail("the file was read again"))
    library = Library()
    allowed: list[str] = library.tables("shop", path)[0]["network"]["allow_domains"]
    library.close()
    return allowed


def test_a_file_is_parsed_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(scene.profile("shop", TEXT))
    assert allowed_domains(path) == ["a.test"]
    assert allowed_domains(path, monkeypatch) == ["a.test"]
    assert os.stat(cache.path_of("profiles", ())).st_mode & 0o777 == 0o600


def test_a_file_that_changed_is_read_again(scene: Scene) -> None:
    path = scene.profile("shop", TEXT)
    assert allowed_domains(str(path)) == ["a.test"]
    other = scene.own / "other"
    other.write_text(TEXT.replace("a.test", "b.test"))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    while other.stat().st_ctime_ns <= path.stat().st_ctime_ns:  # until the kernel's clock ticks
        os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert allowed_domains(str(path)) == ["b.test"]


def test_a_damaged_cache_is_not_used(scene: Scene) -> None:
    path = str(scene.profile("shop", TEXT))
    allowed_domains(path)
    file = Path(cache.path_of("profiles", ()))
    file.write_bytes(file.read_bytes().replace(b"a.test", b"e.test"))
    assert allowed_domains(path) == ["a.test"]


def test_what_is_no_profile_is_never_kept(scene: Scene) -> None:
    path = str(scene.profile("shop", "[network]\nallow_domain = []\n"))
    for _ in range(2):
        with pytest.raises(UsageError, match="unknown key 'allow_domain'"):
            allowed_domains(path)


def test_without_a_state_folder_it_works_all_the_same(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/nowhere")
    assert allowed_domains(str(scene.profile("shop", TEXT))) == ["a.test"]


def test_profiles_that_are_gone_are_forgotten(scene: Scene) -> None:
    first, second = scene.profile("one", TEXT), scene.profile("two", TEXT)
    allowed_domains(str(first))
    first.unlink()
    allowed_domains(str(second))
    assert list(cache.recall("profiles", ())) == [str(second)]


def test_a_pipe_or_a_missing_file_is_an_error_and_nobody_waits(scene: Scene) -> None:
    os.mkfifo(scene.own / "shop.toml")
    for path in (scene.own / "shop.toml", scene.own / "missing.toml"):
        with pytest.raises(UsageError, match=r"not a file; remove it|cannot read the configuration"):
            allowed_domains(str(path))
