"""Everyday tools work with the default files, as root and as an ordinary user: compilers, test runners, databases,
and package managers with a warm cache of the host.

What a session adds to a cache stays inside and is kept; what the host's cache has is taken from it. A registry that
counts its visitors is the witness.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_closed_files import own, put
from tests.rig import registries
from tests.rig.account import Identity
from tests.rig.ports import free_port
from tests.rig.registries import PACKAGE, VERSION
from tests.rig.tools import Tools
from tests.rig.world import ALLOWED, World, need

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

OFFLINE = "--offline"
STORE = ".local/share/pnpm/store"


@pytest.fixture
def pnpm(tools: Tools, identity: Identity) -> str:
    return tools.of_npm("pnpm@9", identity)


@pytest.fixture
def npm_registry(world: World) -> Any:
    port = free_port()
    return world.canary.http(port=port, handler=registries.npm(f"http://127.0.0.1:{port}"))


def project(home: Any, **files: str) -> None:
    for name, text in files.items():
        put(home, f"work/{name.replace('__', '.')}", text)


def plainly(home: Any, *command: str, **env: str) -> None:
    """Run a tool on the host, without a session."""
    done = subprocess.run(
        command,
        cwd=home.work,
        env=home.environment(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **home.identity.popen,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)


def content(folder: Path) -> dict[str, float]:
    return {str(file.relative_to(folder)): file.lstat().st_mtime for file in folder.rglob("*") if file.is_file()}


def test_npm_takes_packages_from_the_hosts_cache(netsandbox: Any, npm_registry: Any) -> None:
    npm, home = need("npm", "npm"), netsandbox.home()
    url = f"http://127.0.0.1:{npm_registry.port}/"
    words = ("install", "--no-audit", "--no-fund", "--no-update-notifier", "--registry", url, PACKAGE)
    project(home, package__json='{"name": "shop", "private": true}')
    plainly(home, npm, *words)
    shutil.rmtree(home.work / "node_modules")
    visits, cache = npm_registry.accepts, content(home.path / ".npm" / "_cacache")
    run = netsandbox("run", "--", "npm", *words, OFFLINE, timeout=120)
    assert run.returncode == 0, run.stderr
    assert json.loads((home.work / "node_modules" / PACKAGE / "package.json").read_text())["version"] == VERSION
    assert npm_registry.accepts == visits
    assert content(home.path / ".npm" / "_cacache") == cache


def test_pnpm_takes_packages_from_the_hosts_store_and_makes_none_in_the_project(
    netsandbox: Any, npm_registry: Any, pnpm: str
) -> None:
    home = netsandbox.home()
    path = {"PATH": f"{pnpm}:{home.identity.path}", "npm_config_registry": f"http://127.0.0.1:{npm_registry.port}/"}
    project(home, package__json='{"name": "shop", "private": true}')
    plainly(home, "pnpm", "add", PACKAGE, **path)
    assert (home.path / STORE).is_dir()
    shutil.rmtree(home.work / "node_modules")
    visits, store = npm_registry.accepts, content(home.path / STORE)
    run = netsandbox("run", "-v", "--", "pnpm", "install", OFFLINE, "--frozen-lockfile", env=path, timeout=120)
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert json.loads((home.work / "node_modules" / PACKAGE / "package.json").read_text())["version"] == VERSION
    assert npm_registry.accepts == visits
    assert content(home.path / STORE) == store
    assert not (home.work / ".pnpm-store").exists()
    assert "warn" not in run.stderr.lower()
    changed = home.work / "node_modules" / PACKAGE / "package.json"
    assert os.stat(changed).st_nlink == 1, "a copy: what a session writes to it changes no other project"


def test_pnpm_works_where_no_store_is_yet(netsandbox: Any, world: World, pnpm: str) -> None:
    """Its folder is a toolchain, which is read-only."""
    home = netsandbox.home()
    put(home, ".local/share/pnpm/pnpm", "#!/bin/sh\n")
    port = free_port()
    url = f"http://{ALLOWED}:{port}"
    world.canary.http(port=port, handler=registries.npm(url))
    path = {"PATH": f"{pnpm}:{home.identity.path}", "npm_config_registry": f"{url}/"}
    project(home, package__json='{"name": "shop", "private": true}')
    run = netsandbox("run", *world.options(port), "pnpm", "--", "pnpm", "add", PACKAGE, env=path, timeout=120)
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert not (home.work / ".pnpm-store").exists()
    assert (home.work / "node_modules" / PACKAGE).exists()


def test_uv_takes_packages_from_the_hosts_cache(netsandbox: Any, world: World, tools: Tools) -> None:
    home = netsandbox.home()
    uv = tools.program(Path(need("uv", "uv, by pip")), home.identity)
    port = free_port()
    index = world.canary.http(port=port, handler=registries.python_index())
    url = f"http://127.0.0.1:{port}/simple"
    install = (uv, "pip", "install", "--target", "site", "--default-index", url, "--python", netsandbox.python, PACKAGE)
    plainly(home, *install)
    shutil.rmtree(home.work / "site")
    visits, cache = index.accepts, content(home.path / ".cache" / "uv")
    run = netsandbox("run", "uv", "--allow-read", uv, "--", *install, OFFLINE, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "warning" not in run.stderr, "uv warns if it has to find out that links fail"
    assert (home.work / "site" / f"{PACKAGE}-{VERSION}.dist-info").exists()
    assert index.accepts == visits
    assert content(home.path / ".cache" / "uv") == cache


# Where no tool is found, none is asked for its registries, which takes most of a session's start.
NO_TOOLS = {"PATH": "/nonexistent"}
MOVED = {
    "CARGO_HOME": ("rust", "registry"),
    "GOCACHE": ("go", "."),
    "GOPATH": ("go", "pkg"),
    "PIP_CACHE_DIR": ("python", "."),
    "npm_config_cache": ("node", "_cacache"),
    "UV_CACHE_DIR": ("uv", "."),
    "XDG_CACHE_HOME": ("python", "pip"),
}


@pytest.mark.parametrize(
    ("variable", "there"), [*((name, True) for name in MOVED), ("CARGO_HOME", False), ("PIP_CACHE_DIR", False)]
)
def test_a_moved_cache_is_used_and_kept_inside(netsandbox: Any, outside: Path, variable: str, there: bool) -> None:
    """F: moved caches were read-only."""
    home = netsandbox.home()
    profile, name = MOVED[variable]
    folder = outside / "moved" / name
    if there:
        folder.mkdir(parents=True)
        (folder / "old").write_text("of the host\n")
        for each in (folder / "old", folder, *folder.parents):
            if each.is_relative_to(outside):
                own(each, home)
    script = f'/bin/mkdir -p {folder} && echo new > {folder}/new && /bin/cat {folder}/old {folder}/new; echo "end=$?"'
    value = {variable: str(outside / "moved"), **NO_TOOLS}
    first = netsandbox("run", profile, "--", "/bin/sh", "-c", script, env=value)
    assert first.stdout == ("of the host\nnew\nend=0\n" if there else "new\nend=1\n"), first.stderr
    assert not (folder / "new").exists()
    assert netsandbox("run", profile, "--", "/bin/cat", f"{folder}/new", env=value).stdout == "new\n"
    if there:
        bare = netsandbox("run", "--no-detect", "--", "/bin/cat", f"{folder}/old", env=value)
        assert "of the host" not in bare.stdout, "the twin: nobody named the profile"


def test_a_moved_cache_is_written_in_the_mode_readable(netsandbox: Any, outside: Path) -> None:
    home = netsandbox.home()
    for folder in (outside / "cargo", outside / "cargo" / "registry"):
        folder.mkdir()
        own(folder, home)
    script = f"echo x > {outside}/cargo/registry/x; echo x > {outside}/cargo/x"
    value = {"CARGO_HOME": str(outside / "cargo"), **NO_TOOLS}
    netsandbox("run", "--files", "readable", "rust", "--", "/bin/sh", "-c", script, env=value)
    assert (outside / "cargo" / "registry" / "x").exists()
    assert not (outside / "cargo" / "x").exists()


@pytest.mark.parametrize("variable", ["CARGO_HOME", "PIP_CACHE_DIR"])
def test_a_variable_that_names_too_much_opens_nothing(netsandbox: Any, variable: str) -> None:
    home = netsandbox.home()
    plan = put(home, "plan.md", "canary-7f1e")
    for value in (str(home.path), str(home.path.parent), "/"):
        run = netsandbox("run", "rust", "python", "--", "/bin/cat", str(plan), env={variable: value, **NO_TOOLS})
        assert (run.returncode, "canary" in run.stdout) == (1, False)


def test_a_cache_variable_in_the_project_means_the_project(netsandbox: Any) -> None:
    home = netsandbox.home()
    value = {"PIP_CACHE_DIR": str(home.work / "cache"), **NO_TOOLS}
    script = "/bin/mkdir cache && echo x > cache/x"
    assert netsandbox("run", "python", "--", "/bin/sh", "-c", script, env=value).returncode == 0
    assert (home.work / "cache" / "x").read_text() == "x\n"


def test_files_that_a_project_shares_with_its_own_store_are_no_news(netsandbox: Any) -> None:
    home = netsandbox.home()
    stored = put(home, "work/node_modules/.pnpm-store/v11/file", "x")
    (home.work / "node_modules/p").mkdir()
    os.link(stored, home.work / "node_modules/p/package.json")
    assert "second name" not in netsandbox("run", "--", "true").stderr
    assert stored.stat().st_nlink == 2


def test_make_and_a_compiler(netsandbox: Any) -> None:
    home = netsandbox.home()
    need("gcc", "gcc")
    need("make", "make")
    project(
        home,
        Makefile="hello: hello.c\n\tcc -o hello hello.c\n",
        hello__c='#include <stdio.h>\nint main(void) { puts("hi"); }\n',
    )
    run = netsandbox("run", "--", "sh", "-c", "make && ./hello")
    assert run.stdout.endswith("hi\n"), run.stderr


def test_pytest(netsandbox: Any, tools: Tools) -> None:
    site = tools.modules("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
    project(netsandbox.home(), test_one__py="def test_it(tmp_path): (tmp_path / 'x').touch()\n")
    # In an editable installation a session does not see our own plugin for pytest.
    alone = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH={site}"
    script = f"{alone} exec {netsandbox.python} -m pytest -q -p no:cacheprovider test_one.py"
    run = netsandbox("run", "--allow-read", site, "--", "sh", "-c", script)
    assert "1 passed" in run.stdout, (run.stdout, run.stderr)


def test_java_with_maven(netsandbox: Any) -> None:
    home = netsandbox.home()
    need("mvn", "maven")
    fields = "<modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId><version>1</version>"
    project(home, pom__xml=f"<project>{fields}<packaging>pom</packaging></project>")
    own_home = {"MAVEN_OPTS": f"-Duser.home={home.path}"}  # Java asks the password file
    run = netsandbox("run", "--", "mvn", "-q", "-o", "validate", env=own_home, timeout=120)
    assert run.returncode == 0, (run.stdout, run.stderr)


def test_gpg_makes_its_folder_in_the_private_home(netsandbox: Any) -> None:
    home = netsandbox.home()
    need("gpg", "gnupg")
    put(home, ".gnupg/private-keys-v1.d/key", "canary-7f1e")
    run = netsandbox("run", "--", "sh", "-c", f"gpg --batch --list-keys && ls -R {home.path}/.gnupg")
    assert run.returncode == 0, run.stderr
    assert "pubring" in run.stdout + run.stderr
    assert "private-keys-v1.d" not in run.stdout
    assert not list((home.path / ".gnupg").glob("pubring*"))


POSTGRES = """
initdb -D data -A trust --no-sync >/dev/null || exit 1
pg_ctl -D data -w -t 30 -o "-p 5432 -k '' -F" start >log || { cat log; exit 1; }
psql -h 127.0.0.1 -d postgres -Atc "create table t (n int); insert into t values (42); select n from t"
pg_ctl -D data -m immediate stop >/dev/null
"""


@pytest.mark.ordinary_user(only=True)
def test_postgresql_keeps_its_files_in_the_project(netsandbox: Any) -> None:
    """It refuses to run as root."""
    home = netsandbox.home()
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    programs = str(folders[-1]) if folders else os.path.dirname(need("initdb", "postgresql"))
    run = netsandbox("run", "--", "sh", "-c", POSTGRES, env={"PATH": f"{programs}:{home.identity.path}"}, timeout=120)
    assert "42" in run.stdout.split(), (run.stdout, run.stderr)
    assert (home.work / "data" / "PG_VERSION").exists()


AGENT = """
import json, os, pathlib, sys
path = pathlib.Path(os.environ.get("CLAUDE_CONFIG_DIR") or pathlib.Path.home(), ".claude.json")
settings = json.loads(path.read_text()) if path.exists() else {}
print("starts", settings.get("numStartups", 0), "servers", *settings.get("mcpServers", {}))
settings["numStartups"] = settings.get("numStartups", 0) + 1
settings.setdefault("mcpServers", {}).update({name: {"command": "evil"} for name in sys.argv[1:]})
new = path.with_name(".claude.json.new")
new.write_text(json.dumps(settings))
try:
    new.replace(path)
except OSError:
    path.write_text(json.dumps(settings))
"""


@pytest.mark.parametrize("moved", [False, True], ids=["home", "moved"])
def test_an_agent_keeps_its_settings_and_plants_no_command(netsandbox: Any, moved: bool) -> None:
    """F: `claude mcp add -s user` said that it was done, and nothing was kept."""
    home = netsandbox.home()
    host = put(
        home, ".claude/.claude.json" if moved else ".claude.json", '{"numStartups": 3, "mcpServers": {"mine": {}}}'
    )
    put(home, ".claude/settings.json", "{}")
    project(home, agent__py=AGENT)
    value = {"CLAUDE_CONFIG_DIR": str(home.path / ".claude")} if moved else {}
    agent = ("run", "claude", "--", netsandbox.python, "agent.py")
    first = netsandbox(*agent, "planted", env=value)
    assert first.stdout == "starts 3 servers mine\n", first.stderr
    assert "does not get mcpServers.planted" in first.stderr
    assert json.loads(host.read_text()) == {"numStartups": 4, "mcpServers": {"mine": {}}}
    second = netsandbox(*agent, env=value)
    assert second.stdout == "starts 4 servers mine planted\n", second.stderr
    elsewhere = put(home, "elsewhere/agent.py", AGENT).parent
    third = netsandbox(*agent, env=value, cwd=elsewhere)
    assert third.stdout == "starts 5 servers mine\n", "another project has nothing of it"


def agent(netsandbox: Any, world: World, folder: str, script: str) -> Any:
    """A real agent, which reaches nothing: the names of its vendor have no address here."""
    path = {"PATH": f"{folder}:{netsandbox.identity.path}"}
    words = ("--upstream-dns", world.authority.address, os.path.basename(script.split(maxsplit=1)[0]))
    run = netsandbox("run", *words, "--", "sh", "-c", script, env=path, timeout=120)
    assert run.returncode == 0, (run.stdout, run.stderr)
    return run


def test_claude_starts_and_keeps_its_settings(netsandbox: Any, world: World, tools: Tools) -> None:
    home = netsandbox.home()
    folder = tools.of_npm("@anthropic-ai/claude-code@2", home.identity)
    host = put(home, ".claude.json", '{"numStartups": 3}')
    first = agent(netsandbox, world, folder, "claude --version && claude mcp add -s user mine -- false")
    assert "Claude Code" in first.stdout
    assert "does not get mcpServers.mine" in first.stderr
    assert "mine" in agent(netsandbox, world, folder, "claude mcp get mine").stdout
    settings = json.loads(host.read_text())
    assert settings["numStartups"] == 3
    assert settings["userID"], "the twin: what commands nothing is the host's too"
    assert "mcpServers" not in settings


def test_codex_starts_and_keeps_its_login(netsandbox: Any, world: World, tools: Tools) -> None:
    home = netsandbox.home()
    folder = tools.of_npm("@openai/codex@0", home.identity)
    settings = put(home, ".codex/config.toml", 'model = "trial"\n')
    login = "codex --version && echo sk-trial | codex login --with-api-key && codex mcp add mine -- false"
    assert "codex-cli" in agent(netsandbox, world, folder, login).stdout
    assert "sk-trial" in (home.path / ".codex" / "auth.json").read_text()
    assert "API key" in agent(netsandbox, world, folder, "codex login status").stderr
    assert settings.read_text() == 'model = "trial"\n', "its commands run without a sandbox"
    assert "mine" in agent(netsandbox, world, folder, "codex mcp list").stdout, "trust in a folder is kept there too"
    models = world.canary.http(status=400)
    options = ("--upstream-dns", world.authority.address, "--connect-host", str(models.port))
    provider = f"model_providers.none={{name='none',base_url='http://127.0.0.1:{models.port}/v1'}}"
    refusing = ("--skip-git-repo-check", "-c", "model_provider=none", "-c", provider)
    run = ("run", *options, "codex", "--", "codex", "exec", *refusing)
    for words, sandbox in (((), "danger-full-access"), (("-s", "read-only"), "read-only")):
        told = netsandbox(*run, *words, "hello", env={"PATH": f"{folder}:{netsandbox.identity.path}"}, timeout=120)
        assert f"\nsandbox: {sandbox}" in told.stderr, "the session is its sandbox, unless the user names another one"
