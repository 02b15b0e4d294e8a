#!/usr/bin/env python3
"""Builds a release: scripts/release.py FOLDER [--url URL] [--tag TAG]

A wheel for each platform that needs no compiler, the source archive, the install script, and what is made from these:
SHA256SUMS, NOTES.md (the version's part of docs/changelog.md) and netsandbox.rb, a Homebrew formula. URL is the folder
on the web where the files will be; by default it is FOLDER itself. The same sources give the same files.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from netsandbox import __version__

sys.path.append(str(Path(__file__).resolve().parents[1] / "interpose"))

import hatch_build

ROOT = Path(__file__).resolve().parents[1]

PLATFORMS = (hatch_build.MACOS, *hatch_build.RELEASES)
SUMS, NOTES, FORMULA = "SHA256SUMS", "NOTES.md", "netsandbox.rb"
UNRELEASED = "Next version"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Build a release.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", default="")
    parser.add_argument("--tag", default="")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    url = given.url or folder.as_uri()
    text = notes((ROOT / "docs" / "changelog.md").read_text("utf-8"), given.tag, url)  # before anything takes time
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("netsandbox-*"):
        old.unlink()
    for platform in PLATFORMS:
        build("wheel", folder, platform)
    build("sdist", folder)
    made = [Path(shutil.copy(ROOT / "scripts" / "install.sh", folder)), *sorted(folder.glob("netsandbox-*"))]
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    template = (ROOT / "scripts" / f"{FORMULA}.in").read_text("utf-8")
    (folder / FORMULA).write_text(formula(template, url, sums), "utf-8")
    (folder / NOTES).write_text(text, "utf-8")
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()), "utf-8")


def build(kind: str, folder: Path, platform: str = "") -> None:
    """One archive in *folder*, by hatchling itself, not pip: what it needs is in the environment already."""
    environment = {**os.environ, hatch_build.BUILD_FOR: platform}
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def notes(changelog: str, tag: str, url: str) -> str:
    """What changed: in the version of *tag*, or without one in the next version. Links lead to the pages of the tag."""
    if tag and tag != f"v{__version__}":
        raise SystemExit(f"netsandbox: the tag is {tag}, the version {__version__}; change netsandbox/__init__.py")
    wanted = __version__ if tag else UNRELEASED
    found = re.search(rf"^## {re.escape(wanted)}\b(.*)\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    if found is None or (tag and "unreleased" in found.group(1)):
        raise SystemExit(
            f"netsandbox: docs/changelog.md has no heading `## {wanted}, DATE`; write it before the release"
        )
    return (
        re.sub(r"\]\((?=[\w-]+\.md)", f"]({_homepage(url)}/blob/{tag or 'main'}/docs/", found.group(2).strip()) + "\n"
    )


def formula(template: str, url: str, sums: dict[str, str]) -> str:
    """The Homebrew formula, with the place and the checksum of each wheel."""

    def filled(mark: re.Match[str]) -> str:
        what, _, platform = mark.group(1).partition(" ")
        if what in ("HOMEPAGE", "VERSION"):
            return __version__ if what == "VERSION" else _homepage(url)
        (wheel,) = (name for name in sums if name.endswith(f"-{platform}.whl"))
        return sums[wheel] if what == "SHA256" else f"{url}/{wheel}"

    return re.sub(r"@([A-Z0-9]+(?: \w+)?)@", filled, template)


def _homepage(url: str) -> str:
    """Of the repository that has the files of a release at *url*."""
    return url.partition("/releases/")[0]


if __name__ == "__main__":
    main(sys.argv[1:])
