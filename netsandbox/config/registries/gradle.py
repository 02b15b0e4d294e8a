"""Gradle: what the user's init scripts and the project's scripts declare in plain words, and where the wrapper fetches.

Gradle's own repositories (`mavenCentral()` and the like) have no address in any file. Maven's default is packed with
Maven; the others must be named by the user.
"""

from __future__ import annotations

import os

from netsandbox.config.registries.groovy import repositories
from netsandbox.config.registries.java import default
from netsandbox.config.registries.setting import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.config.registries.discovery import Discovery, Text

_SCRIPTS = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts")
_ENDINGS = (".gradle", ".gradle.kts")
_WRAPPER = os.path.join("gradle", "wrapper", "gradle-wrapper.properties")
_CENTRAL = "mavenCentral"
_MAX_SCRIPTS = 32


def gradle(inquiry: Discovery) -> list[Setting]:
    said: list[Setting] = []
    wanted: dict[str, str] = {}
    for path, project in _scripts(inquiry):
        text = inquiry.text(path, project=project)
        if text is None:
            continue
        for found in repositories(text.text):
            if found.url:
                said.append(text.said(found.url, found.url, found.number))
            else:
                wanted.setdefault(found.name, text.said("", "", found.number).origin)
    said += _wrapper(inquiry)
    central = default(inquiry) if _CENTRAL in wanted else []
    for name, origin in wanted.items():
        if name != _CENTRAL or not central:
            inquiry.note(f"{origin}: {name}() is built into Gradle; allow its host with --allow-domain")
    return [*said, *central]


def _scripts(inquiry: Discovery) -> Iterator[tuple[str, bool]]:
    """Each with whether it is the project's."""
    for folder in inquiry.upward():
        for name in _SCRIPTS:
            yield os.path.join(folder, name), True
    own = inquiry.variable("GRADLE_USER_HOME") or os.path.join(inquiry.home, ".gradle")
    for name in ("init.gradle", "init.gradle.kts"):
        yield os.path.join(own, name), False
    for name in inquiry.names(os.path.join(own, "init.d"))[:_MAX_SCRIPTS]:
        if name.endswith(_ENDINGS):
            yield os.path.join(own, "init.d", name), False


def _wrapper(inquiry: Discovery) -> Iterator[Setting]:
    """Where `gradlew` fetches Gradle itself."""
    for folder in inquiry.upward():
        text = inquiry.text(os.path.join(folder, _WRAPPER), project=True)
        if text is not None:
            yield from _distribution(text)
            return


def _distribution(text: Text) -> Iterator[Setting]:
    for number, line in enumerate(text.text.split("\n"), 1):
        key, _, value = line.strip().partition("=")
        url = value.strip().replace("\\:", ":")
        if key.strip() == "distributionUrl" and url.startswith("https://") and "\\" not in url:
            yield text.said(url, url, number)
