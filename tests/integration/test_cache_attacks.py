"""A session leaves code in what other projects, or the host, take packages from: caches, and files with a second name
in one. Real package managers, and a registry on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from tests.integration.test_profiles import INSTALL, Shop, shop  # noqa: F401 (a fixture)
from tests.rig import registries
from tests.rig.command import Run
from tests.rig.registries import PACKAGE, VERSION
from tests.rig.tools import Tools
from tests.rig.world import need

pytestmark = [pytest.mark.broker_as_root, pytest.mark.ordinary_user]

# A registry inside of the session that npm uses as its proxy: so npm itself files the answers under the real URL.
STAND_IN = """
import http.server, subprocess, sys
url, document, tarball, *command = sys.argv[1:]
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(tarball if self.path.endswith(".tgz") else document, "rb") as file:
            data = file.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "public, max-age=31557600, immutable")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
import threading
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.call([*command, "--noproxy=", f"--proxy=http://127.0.0.1:{server.server_address[1]}"]))
"""
# In pnpm's store the list of a package's files, which is named by the official digest, leads to another file.
REWRITE = """
import glob, hashlib, base64, json, os, sys
store, planted = sys.argv[1:]
data = open(planted, "rb").read()
digest = hashlib.sha512(data)
integrity = "sha512-" + base64.b64encode(digest.digest()).decode()
for path in glob.glob(f"{store}/v*/files/*/*-index.json") + glob.glob(f"{store}/v*/index/*/*.json"):
    found = json.load(open(path))
    found["files"]["package.json"].update(integrity=integrity, size=len(data))
    found["requiresBuild"] = True
    os.unlink(path)
    json.dump(found, open(path, "w"))
    name = digest.hexdigest()
    target = f"{path[:path.rindex('/v')]}/{path[len(store) + 1:].partition('/')[0]}/files/{name[:2]}/{name[2:]}"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    open(target, "wb").write(data)
    print("rewritten")
"""


def planted_manifest() -> bytes:
    scripts = {"postinstall": 'echo ran > "$INIT_CWD/PLANTED"'}
    return json.dumps({"name": PACKAGE, "version": VERSION, "scripts": scripts}).encode()


def folder(shop: Shop, name: str, **files: bytes | str) -> Path:  # noqa: F811
    """A project of its own."""
    shop.write(f"{name}/package.json", json.dumps({"name": name, "version": "1.0.0", "private": True}))
    for file, data in files.items():
        path = shop.write(f"{name}/{file}", "")
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return shop.home.work / name


def assert_honest(run: Run, project: Path) -> None:
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert not (project / "PLANTED").exists(), "a script that another project's session planted has run"
    found = json.loads((project / "node_modules" / PACKAGE / "package.json").read_text())
    assert found == {"name": PACKAGE, "version": VERSION}


@pytest.mark.attack(280)
@pytest.mark.backend("namespaces", "broker")
def test_what_a_session_files_in_the_cache_of_npm_reaches_no_other_project(shop: Shop) -> None:  # noqa: F811
    need("npm", "npm")
    url = shop.serve(registries.npm)
    shop.write("~/.npmrc", f"registry={url}/\n")
    tarball = registries.packed({"package/package.json": planted_manifest()})
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}"
    version = {**json.loads(planted_manifest()), "dist": {"tarball": f"{url}/{PACKAGE}.tgz", "integrity": integrity}}
    version["hasInstallScript"] = True
    document = {"name": PACKAGE, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version}}
    evil = folder(shop, "evil", document=json.dumps(document), tarball=tarball, stand_in=STAND_IN)
    install = (*INSTALL, f"--registry={url}/")
    words = (shop.home.identity.python, "stand_in", url, "document", "tarball", *install)
    planting = shop.run("--", *words, cwd=evil)
    assert planting.returncode == 0, (planting.stdout, planting.stderr)
    assert (evil / "PLANTED").exists(), "the stand-in's package was not installed"
    good = folder(shop, "good")
    assert_honest(shop.run("--", *INSTALL, cwd=good), good)
    (evil / "PLANTED").unlink()
    again = shop.run("--", "sh", "-c", 'rm -r node_modules package-lock.json && "$@"', "sh", *INSTALL, cwd=evil)
    assert again.returncode == 0, (again.stdout, again.stderr)
    assert (evil / "PLANTED").exists(), "the twin: the cache of a project is kept for it"


@pytest.mark.attack(280)
@pytest.mark.backend("namespaces", "broker")
def test_a_changed_index_in_the_store_of_pnpm_reaches_no_other_project(shop: Shop, tools: Tools) -> None:  # noqa: F811
    path = {"PATH": f"{tools.of_npm('pnpm@9', shop.home.identity)}:{shop.home.identity.path}"}
    url = shop.serve(registries.npm)
    shop.write("~/.npmrc", f"registry={url}/\n")
    evil = folder(shop, "evil", planted=planted_manifest(), rewrite=REWRITE)
    pnpm = ("pnpm", "--config.fetch-retries=0")
    honest = shop.run("pnpm", "--", *pnpm, "add", PACKAGE, cwd=evil, env=path)
    assert_honest(honest, evil)
    script = '"$0" rewrite "$npm_config_store_dir" planted && rm -r node_modules && "$@" install --frozen-lockfile'
    planting = shop.run("pnpm", "--", "sh", "-c", script, shop.home.identity.python, *pnpm, cwd=evil, env=path)
    assert planting.returncode == 0, (planting.stdout, planting.stderr)
    assert (evil / "PLANTED").exists(), "the twin: the store of a project is kept for it, and pnpm believes its index"
    lock, manifest = (evil / "pnpm-lock.yaml").read_text(), (evil / "package.json").read_text()
    good = folder(shop, "good", **{"pnpm-lock.yaml": lock, "package.json": manifest})
    assert_honest(shop.run("pnpm", "--", *pnpm, "install", "--frozen-lockfile", cwd=good, env=path), good)


def uv_project(shop: Shop, uv: str, url: str, name: str) -> Path:  # noqa: F811
    """A project whose environment uv made on the host, with links to its cache."""
    project = shop.write(f"{name}/pyproject.toml", '[project]\nname = "shop"\nversion = "1.0.0"\n').parent
    venv = shop.home.plainly([uv, "venv", "-q", "--python", shop.home.identity.python], cwd=project)
    assert venv.returncode == 0, venv.stderr
    install = (uv, "pip", "install", "-q", "--link-mode", "hardlink", "--no-deps", "--index-url", url, PACKAGE)
    done = shop.home.plainly(install, cwd=project)
    assert done.returncode == 0, done.stderr
    return next(project.glob(f".venv/lib/*/site-packages/{PACKAGE}.py"))


@pytest.mark.attack(281)
@pytest.mark.backend("namespaces", "broker")
def test_a_write_to_a_file_that_uv_linked_changes_neither_the_cache_nor_another_project(
    shop: Shop,  # noqa: F811
    tools: Tools,
) -> None:
    uv = tools.program(Path(need("uv", "uv, by pip")), shop.home.identity)
    shop.serve(lambda _: registries.python_index())
    url = f"http://127.0.0.1:{shop.server.port}/simple"
    module = uv_project(shop, uv, url, "evil")
    honest = module.read_text()
    (cached,) = (shop.home.path / ".cache" / "uv").glob(f"archive-v0/*/{PACKAGE}.py")
    assert module.samefile(cached), "the environment has no links"
    project = module.parents[4]
    script = f"echo PLANTED >> {module.relative_to(project)} && cat {module.relative_to(project)}"
    run = shop.run("-v", "--no-detect", "--", "sh", "-c", script, cwd=project)
    assert (run.returncode, cached.read_text()) == (0, honest), (run.stdout, run.stderr)
    assert "had a second name elsewhere" in run.stderr
    assert module.read_text() == f"{honest}PLANTED\n", "the twin: the project keeps what the session wrote"
    assert uv_project(shop, uv, url, "good").read_text() == honest
    again = shop.run("-v", "--no-detect", "--", "true", cwd=project)
    assert "second name" not in again.stderr, "once"
    added = shop.write("~/.cache/uv/archive-v0/x/added.py", honest)
    (module.parent / "added.py").hardlink_to(added)
    run = shop.run("--no-detect", "--", "sh", "-c", f"echo PLANTED >> {module.parent}/added.py", cwd=project)
    assert (run.returncode, added.read_text()) == (0, honest), "what the host installs later"


@pytest.mark.attack(281)
@pytest.mark.backend("namespaces", "broker")
def test_a_write_to_an_object_of_a_clone_does_not_change_the_repository_that_it_was_cloned_from(
    shop: Shop,  # noqa: F811
) -> None:
    shop.server = shop.world.forbidden
    source, clone = shop.write("source/file", "honest\n").parent, shop.home.work / "clone"
    for words in (("init", "-q"), ("add", "file"), ("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c")):
        assert shop.home.plainly(["git", *words], cwd=source).returncode == 0
    assert shop.home.plainly(["git", "clone", "-q", "--local", str(source), str(clone)]).returncode == 0
    objects = {path: path.read_bytes() for path in (source / ".git/objects").glob("??/*")}
    assert all(path.stat().st_nlink == 2 for path in objects), "the clone has no links"
    script = "chmod -R u+w .git/objects && for each in .git/objects/??/*; do echo PLANTED > $each; done"
    run = shop.run("--", "sh", "-c", script, cwd=clone)
    assert run.returncode == 0, run.stderr
    assert {path: path.read_bytes() for path in objects} == objects
    assert all(path.read_text() == "PLANTED\n" for path in (clone / ".git/objects").glob("??/*")), "the twin"
