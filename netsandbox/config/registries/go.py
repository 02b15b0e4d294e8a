"""Go: module proxies and the checksum database."""

from __future__ import annotations

import os

from netsandbox.config.registries.setting import Setting, believed, settle, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.config.registries.discovery import Discovery

_PROXY, _DATABASE = "GOPROXY", "GOSUMDB"
_UNCHECKED = ("GONOSUMDB", "GOPRIVATE")  # the second stands for the first where that is not set
_NAMES = (_PROXY, _DATABASE, *_UNCHECKED)


def go(inquiry: Discovery) -> list[Setting]:
    said = settle([*(each for name in _NAMES for each in inquiry.said(name, name)), *_written(inquiry)])
    for name in (_PROXY, _DATABASE):
        if not believed(said, name):
            answer = inquiry.ask("go", "env", name, GOENV="off")
            said += [Setting(name, answer, f"go env {name}", project=False)] if answer else []
    proxies = split((each for each in said if each.key == _PROXY), ",|")
    if any(each.text == "direct" for each in proxies) or any(each.key == "GOPRIVATE" for each in said):
        inquiry.note("modules that no proxy has come from their own hosts; name these with --allow-domain")
    return [each for each in proxies if each.text not in ("direct", "off")] + _databases(said)


def _databases(said: list[Setting]) -> list[Setting]:
    """Where checksums are looked up, unless nothing is checked."""
    unchecked = [each for name in _UNCHECKED for each in said if each.key == name and not each.project]
    if unchecked and "*" in unchecked[0].text.split(","):
        return []
    return [database(each) for each in said if each.key == _DATABASE and each.text.strip() not in ("off", "")]


def database(said: Setting) -> Setting:
    """The checksum database's URL: given after its key, or by its name (pure)."""
    words = said.text.split()
    url = words[1] if len(words) > 1 else f"https://{words[0].partition('+')[0]}"
    return Setting(said.key, url, said.origin, said.project)


def _written(inquiry: Discovery) -> Iterator[Setting]:
    """What `go env -w` keeps."""
    named = inquiry.variable("GOENV")
    if named == "off":
        return
    mac = os.path.join(inquiry.home, "Library", "Application Support", "go", "env")
    for path in [named] if named else [inquiry.config_home("go", "env"), mac]:
        text = inquiry.text(path)
        for number, line in enumerate(text.text.split("\n") if text else (), 1):
            name, _, value = line.strip().partition("=")
            if text and name in _NAMES and value:
                yield text.said(name, value, number)
