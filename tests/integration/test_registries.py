"""Real installs from the registries that this machine's tools are set to, asked of the tools and never written down.

A machine without a way to its registry skips these and says so.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.rig.tools import Tools

pytestmark = pytest.mark.usefixtures("user_namespaces")

NPM_PACKAGE, PIP_PACKAGE = "is-number", "six"
TOOL_SETTINGS = ("npm_config_", "pip_", "node_extra_ca_certs", "ssl_cert_", "requests_ca_bundle", "curl_ca_bundle")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def tool_environment() -> dict[str, str]:
    """What the caller's environment tells the tools (certificates, mirrors); the rig's own is empty of it."""
    return {name: value for name, value in os.environ.items() if name.lower().startswith(TOOL_SETTINGS)}


def ask(*command: str, **environment: str) -> str:
    """The answer of a tool outside any session; empty when it fails."""
    settings = {**os.environ, **environment}
    done = subprocess.run(
        command, env=settings, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=120
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def origin(url: str) -> str:
    return "/".join(url.split("/")[:3])


def host(url: str) -> str:
    return origin(url).rpartition("/")[2].partition(":")[0]


@pytest.fixture(scope="module")
def npm_registry() -> str:
    if shutil.which("npm") is None:
        pytest.skip("npm is missing (package npm)")
    if not ask("npm", "view", NPM_PACKAGE, "version"):
        pytest.skip("the npm registry that is configured here does not answer")
    return ask("npm", "config", "get", "registry")


@pytest.mark.ordinary_user
def test_npm_installs_from_its_registry(netsandbox: Any, npm_registry: str) -> None:
    home = netsandbox.home()
    package = home.work / "package.json"
    package.write_text('{"name": "trial", "private": true}\n')
    os.chown(package, home.identity.uid, home.identity.gid)
    options = ("--allow-domain", npm_registry)
    install = ("npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", NPM_PACKAGE)
    run = netsandbox("run", *options, "--", *install, env=tool_environment(), timeout=120)
    assert run.returncode == 0, run.stderr
    assert (home.work / "node_modules" / NPM_PACKAGE / "package.json").exists()
    allowed = run.events("egress", verdict="allow")
    assert {record["host"] for record in allowed} == {host(npm_registry)}


@pytest.mark.ordinary_user
def test_npm_without_its_registry_installs_nothing(netsandbox: Any, npm_registry: str) -> None:
    """The twin: the same command, another allowed name. npm fails soon and the log names the registry as denied."""
    options = ("--no-detect", "--allow-domain", "allowed.test")  # the name npm selects its profile otherwise
    install = ("npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0", NPM_PACKAGE)
    run = netsandbox("run", *options, "--", *install, env=tool_environment(), timeout=120)
    assert run.returncode != 0
    assert not (netsandbox.home().work / "node_modules" / NPM_PACKAGE).exists()
    assert not run.events("egress", verdict="allow")
    assert {record["host"] for record in run.events("egress", verdict="deny")} == {host(npm_registry)}


def pip_default_index() -> str:
    found = re.search(r"\(default\s+(https?://[^\s)]+)\)", ask(*PIP, "install", "--help", COLUMNS="500"))
    return found.group(1) if found else ""


@pytest.fixture(scope="module")
def pip_places() -> tuple[str, str]:
    """(index, where its files are); further indexes and local folders are left out, they would hide the network."""
    index = ask(*PIP, "config", "get", "global.index-url") or pip_default_index()
    options = ("--dry-run", "--ignore-installed", "--no-deps", "-q", "--report", "-", "--index-url", index)
    report = ask(*PIP, "install", *options, PIP_PACKAGE, PIP_CONFIG_FILE=os.devnull, PIP_FIND_LINKS="")
    if not report:
        pytest.skip("the package index that pip is set to does not answer")
    return index, json.loads(report)["install"][0]["download_info"]["url"]


@pytest.mark.parametrize("options", [(), ("--no-proxy-env",)], ids=["proxied", "transparent"])
def test_pip_downloads_from_its_index(netsandbox: Any, pip_places: tuple[str, str], options: tuple[str, ...]) -> None:
    index, file = pip_places
    allow = [word for url in dict.fromkeys(map(origin, pip_places)) for word in ("--allow-domain", url)]
    fetch = (*PIP, "download", "-q", "--no-cache-dir", "--no-deps", "--index-url", index, "-d", "wheels", PIP_PACKAGE)
    settings = {**tool_environment(), "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    run = netsandbox("run", *options, *allow, "--", *fetch, env=settings, timeout=120)
    assert run.returncode == 0, run.stderr
    assert list((netsandbox.home().work / "wheels").glob(f"{PIP_PACKAGE}-*"))
    assert {record["host"] for record in run.events("egress", verdict="allow")} == {host(index), host(file)}


def test_pip_without_its_index_downloads_nothing(netsandbox: Any, pip_places: tuple[str, str]) -> None:
    index, _ = pip_places
    fetch = (*PIP, "download", "-q", "--no-cache-dir", "--retries=0", "--index-url", index, "-d", "wheels", PIP_PACKAGE)
    settings = {**tool_environment(), "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    run = netsandbox("run", "--allow-domain", "allowed.test", "--", *fetch, env=settings, timeout=120)
    assert run.returncode != 0
    assert not list((netsandbox.home().work / "wheels").glob(f"{PIP_PACKAGE}-*"))
    assert not run.events("egress", verdict="allow")
    assert {record["host"] for record in run.events("egress", verdict="deny")} == {host(index)}


def test_npm_installs_with_its_profile_alone(netsandbox: Any, npm_registry: str) -> None:
    (netsandbox.home().work / "package.json").write_text('{"name": "trial", "private": true}\n')
    install = ("npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", NPM_PACKAGE)
    run = netsandbox("run", "--", *install, env=tool_environment(), timeout=120)
    assert run.returncode == 0, run.stderr
    assert {record["host"] for record in run.events("egress", verdict="allow")} == {host(npm_registry)}


def test_pip_downloads_with_its_profile_alone(netsandbox: Any, pip_places: tuple[str, str]) -> None:
    """Where the index keeps its files is found out beside the index itself."""
    index, file = pip_places
    settings = {**tool_environment(), "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_INDEX_URL": index}
    fetch = (*PIP, "download", "-q", "--no-cache-dir", "--no-deps", "-d", "wheels", PIP_PACKAGE)
    run = netsandbox("run", "python", "--", *fetch, env=settings, timeout=120)
    assert run.returncode == 0, run.stderr
    assert {record["host"] for record in run.events("egress", verdict="allow")} == {host(index), host(file)}


@pytest.mark.ordinary_user
def test_what_pnpm_installed_by_links_is_trusted_by_the_command_that_is_advised(
    netsandbox: Any, npm_registry: str, tools: Tools
) -> None:
    """pnpm links its programs with its store, so they have a second name; no session could write either."""
    home = netsandbox.home()
    netsandbox("run", "--", "true")
    (home.work / "pnpm-lock.yaml").touch()
    top = home.path / ".local/share/pnpm"
    env = {"PNPM_HOME": str(top), "PATH": f"{top}:{home.identity.path}", **tool_environment()}
    pnpm = (f"{tools.of_npm('pnpm@9', home.identity)}/pnpm", "--config.prefer-symlinked-executables=true")
    words = [*pnpm, "--registry", npm_registry, "add", "-g", "pnpm@9"]
    home.plainly(["env", *(f"{name}={value}" for name, value in env.items()), *words])
    assert (top / "pnpm").resolve().stat().st_nlink > 1
    asked = netsandbox("run", "--", "pnpm", "--version", env=env)
    (advice,) = re.findall(r"until you run `netsandbox (trust [^`]+)`", asked.stderr)
    trusted = netsandbox(*advice.replace("~", str(home.path)).split(), "--yes", env=env)
    assert (trusted.returncode, trusted.stdout.splitlines()[-1][:32]) == (0, "~/.local/share/pnpm is trusted, ")
    after = netsandbox("run", "--", "pnpm", "--version", env=env)
    assert (after.returncode, after.stdout[:2], after.stderr) == (0, "9.", "")


@pytest.mark.ordinary_user
def test_a_folder_of_profiles_for_one_command_is_adopted_by_the_command_that_is_advised(netsandbox: Any) -> None:
    home = netsandbox.home()
    netsandbox("run", "--", "true")
    folder = home.path / "my profiles"
    folder.mkdir()
    (folder / "mine.toml").write_text("[network]\nallow_domains = ['a.test']\n")
    os.chown(folder, home.identity.uid, home.identity.gid)
    env = {"NETSANDBOX_PROFILE_DIR": str(folder)}
    refused = netsandbox("run", "mine", "--", "true", env=env)
    assert refused.returncode == 1
    (advice,) = re.findall(r"then run `([^`]+)`", refused.stderr)
    words = " ".join(map(shlex.quote, home.identity.command))
    adopted = home.plainly(["sh", "-c", f"{advice.replace('netsandbox trust', f'{words} trust --yes')}"])
    assert adopted.returncode == 0, adopted.stderr
    done = netsandbox("run", "mine", "--", "true", env=env)
    assert (done.returncode, done.stderr) == (0, "")
