"""Paths are resolved before they go into a profile, by the function that is given, and links are followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.backends.seatbelt.profile.profile_settings import NetworkSettings, OwnPaths, ProfileSettings, resolve
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.errors import UsageError
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import file

HOME = "/Users/me"


def followed(links: dict[str, str], settings: ProfileSettings) -> ProfileSettings:
    """Resolved on a disk where *links* are the only links."""

    def realpath(path: str) -> str:
        for link, target in links.items():
            if path == link or path.startswith(f"{link}/"):
                return target + path[len(link) :]
        return path

    return resolve(settings, realpath, lambda path: True)


@pytest.mark.attack(141)
def test_every_path_is_resolved() -> None:
    given = ProfileSettings(
        working="/tmp/app",
        home="/home/me",
        temporary=("/var/folders/T/",),
        read=("/etc/x",),
        write=("/tmp/w",),
        deny=("/tmp/d",),
        protect=("/tmp/p",),
        executables=("/tmp/e",),
        own=OwnPaths(hidden=("/tmp/h",), sealed=("/tmp/s",), port_map="/tmp/h/m"),
        network=NetworkSettings(unix_sockets=("/var/run/x",)),
    )
    found = followed({"/home": "/System/home"}, given)
    assert (found.working, found.home) == ("/private/tmp/app", "/System/home/me")
    assert found.temporary == ("/private/var/folders/T",)
    assert found.read[0] == "/private/etc/x"
    assert (found.write[0], found.deny[0], found.protect[0]) == ("/private/tmp/w", "/private/tmp/d", "/private/tmp/p")
    assert found.executables == ("/private/tmp/e",)
    assert found.own == OwnPaths(("/private/tmp/h",), ("/private/tmp/s",), "/private/tmp/h/m")
    assert found.network.unix_sockets == ("/private/var/run/x",)
    assert found.links == ("/home",)
    assert session_profile(found)


def test_links_are_noted_under_the_names_they_are_met_by() -> None:
    links = {"/private/tmp/to-data": "/Volumes/data", "/Volumes/data/now": "/Volumes/data/2", "/tmp": "/private/tmp"}
    links |= {"/private/tmp/to-data/now/x": "/Volumes/data/2/x", "/tmp/to-data/now/x": "/Volumes/data/2/x"}
    found = followed(
        dict(reversed(links.items())), ProfileSettings("/Users/me/app", HOME, read=("/tmp/to-data/now/x",))
    )
    assert found.read == ("/Volumes/data/2/x",)
    assert found.links == ("/Volumes/data/now", "/private/tmp/to-data")


def test_resolving_twice_changes_nothing() -> None:
    once = followed({}, ProfileSettings("/tmp/app", HOME, read=("/Users/me/../me/x",)))
    assert followed({}, once) == once


def test_a_secret_that_is_kept_elsewhere_is_a_secret_there() -> None:
    """INV-6."""
    settings = ProfileSettings(f"{HOME}/dotfiles", HOME)
    links = {f"{HOME}/.ssh": f"{HOME}/dotfiles/ssh", f"{HOME}/.zshrc": f"{HOME}/dotfiles/zshrc"}
    judged = load(session_profile(followed(links, settings)))
    assert denied_under_all(judged, file("file-read-data", f"{HOME}/dotfiles/ssh/id"))
    assert denied_under_all(judged, file("file-write-data", f"{HOME}/dotfiles/zshrc"))
    assert allowed_under_all(judged, file("file-write-data", f"{HOME}/dotfiles/other"))


def test_a_toolchain_that_is_kept_elsewhere_is_read_there_and_its_link_can_be_followed() -> None:
    links = {f"{HOME}/.nvm": "/Volumes/tools/nvm", f"{HOME}/.npm": "/Volumes/cache/npm"}
    judged = load(session_profile(followed(links, ProfileSettings(f"{HOME}/app", HOME))))
    assert allowed_under_all(judged, file("file-read-data", "/Volumes/tools/nvm/x"))
    assert denied_under_all(judged, file("file-write-data", "/Volumes/tools/nvm/x"))
    assert allowed_under_all(judged, file("file-write-data", "/Volumes/cache/npm/x"))
    assert allowed_under_all(judged, file("file-read-metadata", f"{HOME}/.nvm"))


def test_a_missing_working_directory_is_an_error(tmp_path: Path) -> None:
    missing = ProfileSettings(str(tmp_path / "gone"), HOME)
    with pytest.raises(UsageError, match="does not exist; change to one that does"):
        resolve(missing, lambda path: path, lambda path: Path(path).is_dir())


def test_a_file_is_no_working_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="does not exist"):
        resolve(ProfileSettings(str(tmp_path / "file"), HOME), lambda path: path, lambda path: Path(path).is_dir())
