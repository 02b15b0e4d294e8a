"""Go: module proxies and the checksum database."""

from __future__ import annotations

import os

from netsandbox.registries.said import Said, settle, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.registries.inquiry import Inquiry

_NAMES = ("GOPROXY", "GOSUMDB")


def go(inquiry: Inquiry) -> list[Said]:
    said = settle([*(each for name in _NAMES for each in inquiry.said(name, name)), *_written(inquiry)])
    missing = [name for name in _NAMES if not any(each.key == name and not each.project for each in said)]
    for name in missing:
        answer = inquiry.ask("go", "env", name, GOENV="off")
        said += [Said(name, answer, f"go env {name}", project=False)] if answer else []
    proxies = [each for each in split((each for each in said if each.key == "GOPROXY"), ",|") if each.text != "off"]
    if any(each.text == "direct" for each in proxies):
        inquiry.note("GOPROXY says direct: modules that no proxy has come from their own hosts; use --allow-domain")
    return [
        *(each for each in proxies if each.text != "direct"),
        *(database(each) for each in said if each.key == "GOSUMDB" and each.text.strip() not in ("off", "")),
    ]


def database(said: Said) -> Said:
    """The checksum database's URL: given after its key, or by its name (pure)."""
    words = said.text.split()
    url = words[1] if len(words) > 1 else f"https://{words[0].partition('+')[0]}"
    return Said(said.key, url, said.origin, said.project)


def _written(inquiry: Inquiry) -> Iterator[Said]:
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
