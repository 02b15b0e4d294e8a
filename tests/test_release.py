"""What is made for a release beside its wheels: the notes, the formula, the checksums, and the workflow that does it.

`make release` lets the same tests check the folder that it made.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netsandbox import __version__
from tests.rig.completing import needs

ROOT = Path(__file__).resolve().parents[1]
RELEASE = os.environ.get("NETSANDBOX_RELEASE")
WORKFLOWS = ROOT / ".github" / "workflows"
URL = "https://example.com/owner/netsandbox/releases/download/v1"
PLATFORMS = (
    *("macosx_11_0_universal2", "manylinux_2_17_x86_64", "manylinux_2_17_aarch64"),
    *("musllinux_1_2_x86_64", "musllinux_1_2_aarch64"),
)
SUMS = {f"netsandbox-1-cp311-abi3-{platform}.whl": f"{number:064x}" for number, platform in enumerate(PLATFORMS)}
CHANGELOG = f"""\
# Changelog

## Next version, unreleased
- next

## {__version__}, 2026-01-02
First.
- one ([cli.md](cli.md#run), [web](https://example.com/a.md))

## 0.0.1
- old
"""


@pytest.fixture(scope="module")
def release() -> Any:
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notes_are_the_versions_part_of_the_changelog(release: Any) -> None:
    assert release.notes(CHANGELOG, f"v{__version__}", URL) == (
        f"First.\n- one ([cli.md](https://example.com/owner/netsandbox/blob/v{__version__}/docs/cli.md#run), "
        "[web](https://example.com/a.md))\n"
    )
    assert release.notes(CHANGELOG, "", URL) == "- next\n"
    assert release.notes((ROOT / "docs" / "changelog.md").read_text("utf-8"), "", URL).startswith("Files are closed")


@pytest.mark.parametrize(
    ("changelog", "tag", "advice"),
    [
        (CHANGELOG, "v9.9.9", "the tag is v9.9.9, the version"),
        (CHANGELOG.replace(", 2026-01-02", ", unreleased"), f"v{__version__}", "has no heading"),
        ("# Changelog\n", f"v{__version__}", "has no heading"),
    ],
)
def test_a_release_without_notes_or_of_another_version_is_not_made(
    release: Any, changelog: str, tag: str, advice: str
) -> None:
    with pytest.raises(SystemExit, match=advice):
        release.notes(changelog, tag, URL)


def test_the_formula_has_the_place_and_the_checksum_of_each_wheel(release: Any, tmp_path: Path) -> None:
    template = (ROOT / "scripts" / "netsandbox.rb.in").read_text("utf-8")
    text = release.formula(template, URL, SUMS)
    assert "@" not in text.replace("python@3.13", "")
    assert 'homepage "https://example.com/owner/netsandbox"' in text
    pairs = re.findall(r'url "(.*)/(.*)", using: :nounzip\n\s+sha256 "(.*)"', text)
    assert pairs == [(URL, wheel, digest) for wheel, digest in list(SUMS.items())[:3]]
    check_ruby(text, tmp_path)


def check_ruby(text: str, folder: Path) -> None:
    (folder / "netsandbox.rb").write_text(text)
    done = subprocess.run([needs("ruby"), "-wc", folder / "netsandbox.rb"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("Syntax OK\n", "")


if RELEASE:  # no skip: nothing is missing where a release is not made

    def test_the_checksums_are_those_of_the_files(tmp_path: Path) -> None:
        folder = Path(RELEASE)
        sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
        archives = {path.name for path in folder.glob("netsandbox-*")}
        assert set(sums) == archives | {"install.sh"}
        assert len(archives) == len(PLATFORMS) + 1
        for name, digest in sums.items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        formula = (folder / "netsandbox.rb").read_text()
        named = re.findall(r'sha256 "(.*)"', formula)
        assert len(named) == 3
        assert set(named) < set(sums.values())
        check_ruby(formula, tmp_path)


# The workflow


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    read = "require 'yaml'; require 'json'; puts JSON.dump(YAML.safe_load(STDIN.read))"
    with (WORKFLOWS / "release.yml").open() as file:
        done = subprocess.run([needs("ruby"), "-e", read], stdin=file, capture_output=True, text=True, check=True)
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_only_the_jobs_that_publish_may_write_and_only_after_all_trials(workflow: dict[str, Any]) -> None:
    assert workflow["true"] == {"push": {"tags": ["v*"]}}  # YAML takes `on` for a boolean
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    rights = {name: job["permissions"] for name, job in jobs.items() if "permissions" in job}
    assert rights == {"publish": {"contents": "write"}, "index": {"id-token": "write"}}
    assert jobs["publish"]["needs"] == ["linux", "macos"]
    assert jobs["linux"]["needs"] == jobs["macos"]["needs"] == "build"
    assert jobs["index"]["needs"] == "publish"
    assert all(job["timeout-minutes"] <= 20 for job in jobs.values())


def test_no_step_has_a_secret_or_runs_text_of_the_event(workflow: dict[str, Any]) -> None:
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text()
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []


def test_the_steps_use_what_exists(workflow: dict[str, Any]) -> None:
    """The same versions of actions as the other workflow, targets of the Makefile, files of a release."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    others = set(re.findall(r"uses: (\S+)", (WORKFLOWS / "ci.yml").read_text()))
    used = {step["uses"] for step in steps if "uses" in step}
    assert used - others == {"pypa/gh-action-pypi-publish@release/v1"}
    commands = "\n".join(step.get("run", "") for step in steps)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) == {"release"} <= targets
    made = {"install.sh", "NOTES.md", "netsandbox.rb"}
    assert set(re.findall(r"dist/([\w.]+\.(?:sh|md|rb))", commands)) == made
