"""A file becomes a profile, or an error that names file and line."""

from __future__ import annotations

import pytest

from netsandbox.config.document import parsed
from netsandbox.config.profiles.profile import Profile, profile_of
from netsandbox.errors import UsageError


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
        ("[profile]\ndetect = ['/etc/passwd']\n", "shop.toml:2: '/etc/passwd' is no file of a project"),
        ("[profile]\ndetect = ['../x']\n", "shop.toml:2: '../x' is no file of a project"),
        ("[profile]\ndetect = ['*.js']\n", "shop.toml:2: '*.js' is no file of a project"),
        ("[profile]\ndetect = ['']\n", "shop.toml:2: '' is no file of a project"),
        ("[network]\nallow_domains = ['*']\n", "shop.toml:2: "),
        ("[sandbox]\nprofiles = ['node']\n", "shop.toml:2: unknown key 'profiles'"),
        ("[sandbox]\ninherit_global = false\n", "shop.toml:2: unknown key 'inherit_global'"),
        ("[profiles]\nauto_detect = true\n", "shop.toml:1: unknown table 'profiles'; did you mean profile?"),
        ("", "shop.toml: the file says nothing"),
    ],
)
def test_a_mistake_is_an_error_with_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(text)
    assert str(raised.value).startswith(said)
