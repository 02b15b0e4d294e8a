"""git: the hosts that the user's own settings speak of, and those of the project's remotes."""

from __future__ import annotations

import os

from netsandbox.config.registries.ini import npm_lines
from netsandbox.config.registries.setting import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.config.registries.discovery import Discovery, Text

_ABOUT_URLS = ("url", "credential", "http")  # sections that are named by a URL
_REMOTE = ("url", "pushurl")


def git(inquiry: Discovery) -> Iterator[Setting]:
    """Nothing is asked of git: it has no host of its own."""
    for path in (os.path.join(inquiry.home, ".gitconfig"), inquiry.config_home("git", "config")):
        text = inquiry.text(path)
        if text is not None:
            yield from _hosts(inquiry, text)
    for folder in inquiry.upward():
        text = inquiry.text(os.path.join(folder, ".git", "config"), project=True)
        if text is not None:
            yield from _hosts(inquiry, text)
            return


def _hosts(inquiry: Discovery, text: Text) -> Iterator[Setting]:
    for line in npm_lines(text.text):
        kind, _, quoted = line.section.partition(" ")
        name = quoted.strip().strip('"')
        if kind.lower() in _ABOUT_URLS and name:
            url = name
        elif kind.lower() == "remote" and line.key.lower() in _REMOTE:
            url = line.value
        else:
            continue
        said = text.said(url, url, line.number)
        if url.lower().startswith(("http://", "https://")):
            yield said
        elif kind.lower() == "remote":
            inquiry.note(
                f"{said.origin}: this remote is not reached by HTTP; allow its host with --allow-domain HOST:22"
            )
