"""Real tools reach their registries by their profile alone: no rule names a host, the user's own settings do.

The registries are on loopback under names that only the test's resolver knows. The address guard is lifted for them,
and for the stranger's too, so that a denial is the name's alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_git_and_ssh import repository, smart_http  # noqa: F401 (a fixture)
from tests.rig import registries
from tests.rig.command import Run
from tests.rig.git_server import git
from tests.rig.ports import free_port
from tests.rig.registries import MODULE, PACKAGE, VERSION, Handler
from tests.rig.tools import Tools
from tests.rig.world import ALLOWED, DENIED, World, need

pytestmark = [pytest.mark.broker_as_root, pytest.mark.usefixtures("user_namespaces")]

INSTALL = ("npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0", PACKAGE)


class Shop:
    """A project whose tool has a registry that is allowed by nothing but the user's own settings."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.home = world.netsandbox.home()

    def serve(self, make: Callable[[str], Handler]) -> str:
        """Start the registry whose handler *make* makes from its URL; the URL."""
        port = free_port()
        url = f"http://{ALLOWED}:{port}"
        self.server = self.world.canary.http(port=port, handler=make(url))
        return url

    def write(self, name: str, text: str) -> Path:
        """A file of the project, or (`~/…`) of the home, as its user would have it."""
        path = self.home.path / name[2:] if name.startswith("~/") else self.home.work / name
        for folder in (*reversed(path.parents), path):
            if folder.is_relative_to(self.home.path) and not folder.exists():
                folder.touch() if folder == path else folder.mkdir()
                os.chown(folder, self.home.identity.uid, self.home.identity.gid)
        path.write_text(text)
        return path

    def run(self, *words: str, **more: Any) -> Run:
        names = ("--upstream-dns", self.world.authority.address)
        guard = ("--allow-address", self.server.address, "--allow-address", self.world.forbidden.address)
        run: Run = self.world.netsandbox("run", *names, *guard, *words, timeout=180, **more)
        return run

    def assert_only_the_registry(self, run: Run) -> None:
        assert {record["host"] for record in run.events("egress", verdict="allow")} == {ALLOWED}
        assert self.world.forbidden.accepts == 0


@pytest.fixture
def shop(world: World) -> Shop:
    return Shop(world)


@pytest.mark.ordinary_user
def test_npm_installs_from_the_users_registry_and_nothing_else_is_reached(shop: Shop) -> None:
    need("npm", "npm")
    url = shop.serve(registries.npm)
    shop.write("~/.npmrc", f"registry={url}/\n")
    shop.write("package.json", '{"name": "shop", "private": true}\n')
    script = f'"$@"; echo "npm=$?"; curl -sS -m 20 http://{DENIED}:{shop.world.forbidden.port}/ || echo refused'
    run = shop.run("-v", "--", "sh", "-c", script, "sh", *INSTALL)
    assert "npm=0" in run.stdout, (run.stdout, run.stderr)
    assert "refused" in run.stdout
    assert "netsandbox: profile node: detected by package.json\n" in run.stderr
    assert (shop.home.work / "node_modules" / PACKAGE / "package.json").exists()
    shop.assert_only_the_registry(run)
    without = shop.run("--no-detect", "--", *INSTALL)
    assert without.returncode != 0, "the twin: without the profile nothing is allowed"
    assert not without.events("egress", verdict="allow")


def test_npm_is_known_by_its_name_in_an_empty_folder(shop: Shop) -> None:
    need("npm", "npm")
    url = shop.serve(registries.npm)
    shop.write("~/.npmrc", f"registry={url}/\n")
    unguessed = shop.run("--", "sh", "-c", '"$@"', "sh", *INSTALL)
    assert unguessed.returncode != 0, "the twin: what a shell runs selects nothing"
    assert not unguessed.events("egress", verdict="allow")
    run = shop.run("-v", "--", *INSTALL)
    assert run.returncode == 0, run.stderr
    assert "netsandbox: profile node: detected by the command npm\n" in run.stderr
    shop.assert_only_the_registry(run)


@pytest.mark.ordinary_user
def test_a_projects_registry_is_not_reached_until_its_file_is_trusted(shop: Shop) -> None:
    """What a clone brings along: npm would send it the names of packages, and run what it answers."""
    need("npm", "npm")
    shop.serve(registries.npm)
    evil = shop.world.forbidden
    shop.write("~/.npmrc", f"registry=http://{ALLOWED}:{shop.server.port}/\n")
    shop.write("package.json", '{"name": "shop", "private": true}\n')
    cloned = shop.write(".npmrc", f"registry=http://{DENIED}:{evil.port}/\n")
    run = shop.run("--", *INSTALL)
    assert run.returncode != 0
    assert evil.accepts == 0
    assert {record["host"] for record in run.events("egress", verdict="deny")} == {DENIED}
    shown = f"~/{cloned.relative_to(shop.home.path)}"
    told = f"netsandbox: {shown} would open {DENIED}:{evil.port}; ignored until you run `netsandbox trust {shown}`"
    assert told in run.stderr
    trusted = shop.world.netsandbox("trust", "--yes", cloned)
    assert (trusted.returncode, f"npm fetches from {DENIED}:{evil.port}" in trusted.stdout) == (0, True)
    shop.run("--", *INSTALL)
    assert evil.accepts > 0, "the twin: what the user trusts is reached"
    reached = evil.accepts
    cloned.write_text(f"# other\nregistry=http://{DENIED}:{evil.port}/other/\n")
    shop.run("--", *INSTALL)
    assert evil.accepts > reached, "the twin: only the host is trusted"
    cloned.write_text(f"registry=http://other.{DENIED}:{evil.port}/\n")
    assert f"would open other.{DENIED}:{evil.port}; ignored" in shop.run("--", "true").stderr, "another host is new"


@pytest.mark.ordinary_user
def test_pip_installs_from_the_users_index(shop: Shop, tools: Tools) -> None:
    url = shop.serve(lambda _: registries.python_index())
    shop.write("~/config/pip/pip.conf", f"[global]\nindex-url = {url}/simple\ntrusted-host = {ALLOWED}\n")
    shop.write("requirements.txt", f"{PACKAGE}\n")
    site = tools.modules("pip")
    pip = ("env", f"PYTHONPATH={site}", shop.home.identity.python, "-m", "pip", "--disable-pip-version-check")
    install = ("--allow-read", site, "--", *pip, "install", "--no-deps", "--target", "site", "-r", "requirements.txt")
    run = shop.run(*install)
    assert run.returncode == 0, run.stderr
    assert (shop.home.work / "site" / f"{PACKAGE}-{VERSION}.dist-info").exists()
    shop.assert_only_the_registry(run)
    assert shop.run("--no-detect", *install, "--retries=0", "--no-cache-dir").returncode != 0


@pytest.mark.ordinary_user
def test_uv_installs_from_the_users_index(shop: Shop, tools: Tools) -> None:
    uv = tools.program(Path(need("uv", "uv, by pip")), shop.home.identity)
    url = shop.serve(lambda _: registries.python_index())
    shop.write("~/config/uv/uv.toml", f'[[index]]\nurl = "{url}/simple"\ndefault = true\n')
    run = shop.run(
        "uv",
        "--allow-read",
        uv,
        "--",
        uv,
        "pip",
        "install",
        "--target",
        "site",
        "--python",
        shop.home.identity.python,
        PACKAGE,
    )
    assert run.returncode == 0, run.stderr
    shop.assert_only_the_registry(run)


OLD_CARGO = {"RUSTC_BOOTSTRAP": "1", "CARGO_UNSTABLE_SPARSE_REGISTRY": "true"}  # one before 1.68 wants to be asked


def git_index(root: Path) -> Callable[[str], Handler]:
    """A registry of crates whose index is a git repository below *root*."""

    def make(url: str) -> Handler:
        files, _ = registries.crate_index(url)
        git("init", "-q", "-b", "master", "index", cwd=root)
        for name, data in files.items():
            (root / "index" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "index" / name).write_bytes(data)
        git("add", ".", cwd=root / "index")
        git("commit", "-q", "-m", "first", cwd=root / "index")
        index, crates = smart_http(root), registries.crates(url)

        def respond(method: str, target: str, headers: dict[str, str], body: bytes) -> registries.Reply:
            answer: Handler = crates if target.startswith("/dl/") else index
            return answer(method, target, headers, body)

        return respond

    return make


@pytest.mark.ordinary_user
@pytest.mark.parametrize("kind", ["sparse", "git"])
def test_cargo_fetches_from_the_users_registry(shop: Shop, tools: Tools, short_tmp: Path, kind: str) -> None:
    """By git's own program: Cargo's sends a Host without the port over plain HTTP, which the proxy refuses."""
    toolchain = tools.rust(shop.home.identity)
    url = shop.serve(registries.crates if kind == "sparse" else git_index(short_tmp))
    place = f"sparse+{url}/index/" if kind == "sparse" else f"{url}/index"
    sources = '[source.crates-io]\nreplace-with = "own"\n[source.own]\n'
    shop.write("~/.cargo/config.toml", f'{sources}registry = "{place}"\n[net]\ngit-fetch-with-cli = true\n')
    shop.write("Cargo.toml", f'[package]\nname = "shop"\nversion = "0.1.0"\n[dependencies]\n{PACKAGE} = "1"\n')
    shop.write("src/lib.rs", "")
    environment = {**toolchain, **OLD_CARGO}
    run = shop.run("--", "cargo", "fetch", env=environment)
    assert run.returncode == 0, run.stderr
    shop.assert_only_the_registry(run)
    assert not (shop.home.path / ".cargo" / "registry").exists(), "what a session downloads is its project's"
    asked = shop.server.accepts
    again = shop.run("--", "cargo", "build", "--offline", env=environment)
    assert (again.returncode, shop.server.accepts) == (0, asked), again.stderr


@pytest.mark.ordinary_user
def test_go_downloads_from_the_users_proxy(shop: Shop) -> None:
    need("go", "golang-go")
    url = shop.serve(lambda _: registries.go_proxy())
    shop.write("go.mod", f"module shop\n\nrequire {MODULE} v{VERSION}\n")
    environment = {"GOPROXY": url, "GOSUMDB": "off"}
    run = shop.run("--", "go", "mod", "download", MODULE, env=environment)
    assert run.returncode == 0, run.stderr
    shop.assert_only_the_registry(run)
    kept = shop.home.path / "go" / "pkg" / "mod" / f"{MODULE}@v{VERSION}" / "go.mod"
    assert not kept.exists(), "what a session downloads is its project's"
    assert shop.run("--", "cat", str(kept), env=environment).returncode == 0


@pytest.mark.ordinary_user
@pytest.mark.usefixtures("repository")
def test_git_clones_from_a_host_of_the_users_settings(shop: Shop, repository: Path) -> None:  # noqa: F811
    url = shop.serve(lambda _: smart_http(repository.parent))
    shop.write("~/.gitconfig", f'[credential "{url}"]\n\tusername = me\n')
    clone = ("git", "clone", "-q", f"{url}/project.git", "copy")
    run = shop.run("git", "--", *clone)
    assert run.returncode == 0, run.stderr
    assert (shop.home.work / "copy" / "file").read_text() == "from the repository\n"
    shop.assert_only_the_registry(run)
    assert shop.run("--", *clone[:-1], "other").returncode != 0, "the twin: nobody named the profile"


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
def test_a_command_changes_no_profile_and_no_cached_value(world: World) -> None:
    """The next run would read them (INV-8)."""
    home = world.netsandbox.home()
    own = home.path / "config" / "netsandbox" / "profiles" / "base.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[network]\ndeny_domains = ["a.test"]\n')
    for folder in (own, own.parent, own.parent.parent):
        os.chown(folder, home.identity.uid, home.identity.gid)
    assert world.netsandbox("explain", "a.test").returncode == 1
    cached = {file: file.read_bytes() for file in (home.state / "netsandbox" / "cache").iterdir()}
    assert cached
    tries = (
        f"echo > {own}",
        f"rm {own}",
        f"mv {own.parent} {own.parent}.away",
        f"echo > {own.parent}/node.toml",
        *(f"echo > {file}" for file in cached),
    )
    run = world.netsandbox("run", "--", "sh", "-c", f"{'; '.join(f'({each}) 2>&1' for each in tries)}; echo end")
    assert run.stdout.endswith("end\n"), run.stderr
    assert {file: file.read_bytes() for file in cached} == cached
    assert own.read_text() == '[network]\ndeny_domains = ["a.test"]\n'
    assert not (own.parent / "node.toml").exists()
    assert world.netsandbox("explain", "a.test").returncode == 1


@pytest.mark.parametrize("mode", ["offline", "localhost"])
def test_a_mode_by_its_name_closes_what_a_detected_profile_opens(shop: Shop, mode: str) -> None:
    need("npm", "npm")
    url = shop.serve(registries.npm)
    shop.write("~/.npmrc", f"registry={url}/\n")
    shop.write("package.json", '{"name": "shop", "private": true}\n')
    names = ("--upstream-dns", shop.world.authority.address)
    run = shop.world.netsandbox("run", *names, mode, "--", *INSTALL, timeout=180)
    assert run.returncode != 0
    assert shop.server.accepts == 0
