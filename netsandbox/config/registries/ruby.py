"""gem and bundle. A Gemfile is a program: only lines that plainly name a source are read, and nothing is run."""

from __future__ import annotations

import os

from netsandbox.config.registries.setting import Setting, believed, settle
from netsandbox.config.registries.yaml import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.config.registries.discovery import Discovery

SOURCES = "sources"
_ALL = "BUNDLE_MIRROR__ALL"
_MIRROR = "BUNDLE_MIRROR__"
_SOURCE_WORDS = (
    (":source => ", False),
    ("source: ", False),
    ("source(", True),
    ("source ", True),
)  # True: begins a line


def gem(inquiry: Discovery) -> list[Setting]:
    said = list(_gemrc(inquiry))
    return said if believed(said, SOURCES) else [*said, *_default(inquiry)]


def bundle(inquiry: Discovery) -> list[Setting]:
    """Mirrors stand for sources; a mirror for everything leaves no other."""
    said = settle(_mirrors(inquiry))
    own = [] if believed(said, _ALL) else [*_gemfile(inquiry), *gem(inquiry)]
    return [*said, *own]


def _gemrc(inquiry: Discovery) -> Iterator[Setting]:
    """The first file with a list of sources counts."""
    named = [path for path in (inquiry.variable("GEMRC") or "").split(":")[:10] if path]
    for path in (
        *named,
        inquiry.config_home("gem", "gemrc"),
        os.path.join(inquiry.home, ".gemrc"),
        inquiry.system("gemrc"),
    ):
        text = inquiry.text(path)
        said = [
            text.said(SOURCES, leaf.value, leaf.number)
            for leaf in (leaves(text.text) if text else ())
            if text and leaf.path in ((":sources",), (SOURCES,))
        ]
        yield from said
        if any(not each.project for each in said):
            return


def _mirrors(inquiry: Discovery) -> Iterator[Setting]:
    """Settings of the project come before variables; both before the user's."""
    for folder in inquiry.upward():
        yield from _bundle_config(inquiry, os.path.join(folder, ".bundle", "config"), project=True)
    for name, value in inquiry.variables(_MIRROR.lower()).items():
        if value and not name.endswith("__FALLBACK_TIMEOUT"):
            yield Setting(name, value, name.partition("://")[0], project=False)
    user = inquiry.variable("BUNDLE_USER_CONFIG") or os.path.join(inquiry.home, ".bundle", "config")
    yield from _bundle_config(inquiry, user, project=False)


def _bundle_config(inquiry: Discovery, path: str, *, project: bool) -> Iterator[Setting]:
    text = inquiry.text(path, project=project)
    for leaf in leaves(text.text) if text else ():
        key = leaf.path[0]
        if text and len(leaf.path) == 1 and key.startswith(_MIRROR) and not key.endswith("FALLBACK_TIMEOUT/"):
            yield text.said(key, leaf.value, leaf.number)


def _gemfile(inquiry: Discovery) -> Iterator[Setting]:
    for folder in inquiry.upward():
        for name in ("Gemfile", "gems.rb"):
            text = inquiry.text(os.path.join(folder, name), project=True)
            for number, line in enumerate(text.text.split("\n") if text else (), 1):
                url = source_in(line)
                if text and url:
                    yield text.said(f"{text.path}:{number}", url, number)


def source_in(line: str) -> str:
    """The URL in `source "https://…"` and in an option `source: "https://…"` (pure); none with anything computed."""
    for word, alone in _SOURCE_WORDS:
        before, found, after = line.partition(word)
        quote = after.lstrip()[:1]
        if found and quote in ("'", '"') and "#" not in before and not (alone and before.strip()):
            url = after.lstrip()[1:].partition(quote)[0]
            return "" if "#{" in url else url
    return ""


def _default(inquiry: Discovery) -> list[Setting]:
    lines = inquiry.ask("gem", "sources", "--list", "--norc").split("\n")
    return [Setting(SOURCES, line, "gem sources", project=False) for line in lines if line.startswith("https://")]
