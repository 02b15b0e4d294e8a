"""The workflow for places that no test here reaches: it uses what exists, may change nothing, and its script works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rig.completing import needs

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
PLACES = ROOT / "scripts" / "places"
SMOKE = PLACES / "smoke"


def read_yaml(path: Path) -> dict[str, Any]:
    read = "require 'yaml'; require 'json'; puts JSON.dump(YAML.safe_load(STDIN.read))"
    with path.open() as file:
        done = subprocess.run([needs("ruby"), "-e", read], stdin=file, capture_output=True, text=True, check=True)
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    return read_yaml(WORKFLOWS / "places.yml")


@pytest.fixture(scope="module")
def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_it_reads_and_ends(workflow: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow["jobs"]) == {"wheel", "ubuntu", "docker", "kubernetes"}
    for name, job in workflow["jobs"].items():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 20
        assert job.get("needs") == (None if name == "wheel" else "wheel")
    assert "secrets." not in (WORKFLOWS / "places.yml").read_text()
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []


def test_it_uses_what_exists(steps: list[dict[str, Any]]) -> None:
    others = set(re.findall(r"uses: (\S+)", (WORKFLOWS / "ci.yml").read_text()))
    assert {step["uses"] for step in steps if "uses" in step} <= others
    commands = "\n".join(step.get("run", "") for step in steps)
    named = set(re.findall(r"scripts/[\w./]+", commands))
    assert named == {"scripts/install.sh", *(f"scripts/places/{name}" for name in ("smoke", "Dockerfile", "pod.yaml"))}
    assert all((ROOT / name).exists() for name in named)
    assert set(re.findall(r"doctor --fix (--\w+)", commands)) == {"--apply", "--remove"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= targets


def test_ubuntu_is_tried_as_it_is_shipped(workflow: dict[str, Any]) -> None:
    commands = "\n".join(step.get("run", "") for step in workflow["jobs"]["ubuntu"]["steps"])
    assert "sysctl" not in commands
    assert 'apparmor_restrict_unprivileged_userns)" = 1' in commands


def test_it_says_that_it_has_not_run() -> None:
    assert (WORKFLOWS / "places.yml").read_text().startswith("# NOT RUN YET.")
    page = (ROOT / "docs" / "containers.md").read_text()
    assert "`.github/workflows/places.yml` tries Ubuntu, Docker and Kubernetes; it has not run yet." in page


def test_the_pod_is_one_that_the_level_restricted_admits() -> None:
    """By the Pod Security Standards of Kubernetes."""
    spec = read_yaml(PLACES / "pod.yaml")["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & set(spec)
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = spec["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert "USER 1000" in (PLACES / "Dockerfile").read_text()


# The script


def run_smoke(folder: Path, *arguments: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": f"{first}:{path}" if first else path, "TMPDIR": str(folder)}
    return subprocess.run(
        [SMOKE, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_script_is_plain_sh() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    assert subprocess.run([shellcheck, SMOKE], capture_output=True, text=True, check=False).stdout == ""


@pytest.mark.usefixtures("user_namespaces", "private_home")
def test_the_script_passes_where_sessions_run(tmp_path: Path) -> None:
    done = run_smoke(tmp_path, "namespaces", "namespaces")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("smoke: sessions use namespaces\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("fake", "message"),
    [
        ("exit 1", ""),
        (
            '[ "$1" = doctor ] || { while [ "$1" != -- ]; do shift; done; shift; exec "$@"; }',
            "a server of the host was reached",
        ),
        ('[ "$1" = doctor ] || exit 1', "the allowed server was not reached"),
    ],
)
def test_the_script_fails_without_a_sandbox(tmp_path: Path, fake: str, message: str) -> None:
    """The twin of the test above: a program in our place that fails, confines nothing, or runs nothing."""
    program = tmp_path / "bin" / "netsandbox"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{fake}\n")
    program.chmod(0o755)
    done = run_smoke(tmp_path, "auto", "broker", first=program.parent)
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.usefixtures("user_namespaces", "private_home")
def test_the_script_fails_with_another_backend_than_expected(tmp_path: Path) -> None:
    done = run_smoke(tmp_path, "namespaces", "broker")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "smoke: expected broker")
