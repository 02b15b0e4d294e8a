"""The user's own settings of package managers hold inside of a session, and the credentials beside them are not there.
Each tool itself says what it obeys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_profiles import Shop, shop  # noqa: F401 (a fixture)
from tests.rig.tools import Tools
from tests.rig.world import need

pytestmark = [
    pytest.mark.ordinary_user(only=True),
    pytest.mark.backend("namespaces", "broker"),
]

CANARY = "canary-4d1f7a"
NPMRC = f"//registry.test/:_authToken={CANARY}\nignore-scripts=true\n_password={CANARY}\n"
# The file of the user, its text, a command, what it prints inside, and what it prints without the file.
TOOLS = {
    "npm": ("~/.npmrc", NPMRC, ("npm", "config", "get", "ignore-scripts"), "true", "false"),
    "pnpm": ("~/config/pnpm/rc", NPMRC, ("pnpm", "config", "get", "ignore-scripts"), "true", "undefined"),
    "yarn": (
        "~/.yarnrc.yml",
        f"npmAuthToken: {CANARY}\nenableScripts: false\nchecksumBehavior: reset\n",
        ("yarn", "config", "get", "checksumBehavior"),  # scripts are off by default in yarn 4
        "reset",
        "throw",
    ),
    "pip": (
        "~/config/pip/pip.conf",
        f"[global]\npassword = {CANARY}\nrequire-hashes = true\n",
        ("PYTHON", "-m", "pip", "config", "get", "global.require-hashes"),
        "true",
        "",
    ),
    "uv": (
        "~/config/uv/uv.toml",
        f'exclude-newer = "2024-02-03T00:00:00Z"\n[[index]]\nname = "x"\nurl = "https://u:{CANARY}@h.test/simple"\n',
        ("UV", "--show-settings", "pip", "list"),
        "2024-02-03",
        "",
    ),
}


def command(tool: str, words: tuple[str, ...], shop: Shop, tools: Tools) -> tuple[tuple[str, ...], dict[str, str]]:  # noqa: F811
    """What runs the tool, options of `run` included, and variables for it."""
    identity = shop.home.identity
    if tool in ("pnpm", "yarn"):
        package = "pnpm@9" if tool == "pnpm" else "@yarnpkg/cli-dist@4"
        return ("--", *words), {"PATH": f"{tools.of_npm(package, identity)}:{identity.path}"}
    if tool == "pip":
        site = tools.modules("pip")
        return ("--allow-read", site, "--", "env", f"PYTHONPATH={site}", identity.python, *words[1:]), {}
    if tool == "uv":
        uv = tools.program(Path(need("uv", "uv, by pip")), identity)
        return ("--allow-read", uv, "--", uv, *words[1:]), {}
    need("npm", "npm")
    return ("--", *words), {}


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "yarn"])
def test_a_setting_of_the_user_holds_inside_and_its_token_is_not_there(shop: Shop, tools: Tools, tool: str) -> None:  # noqa: F811
    assert_it_holds(shop, tools, tool)


@pytest.mark.backend("namespaces")
def test_a_setting_of_yarn_holds_inside_and_its_token_is_not_there(shop: Shop, tools: Tools) -> None:  # noqa: F811
    """Not with the broker: yarn looks for its file in all folders above, where Landlock refuses the user's."""
    assert_it_holds(shop, tools, "yarn")


def assert_it_holds(shop: Shop, tools: Tools, tool: str) -> None:  # noqa: F811
    shop.server = shop.world.forbidden
    name, text, words, inside, without = TOOLS[tool]
    asked, variables = command(tool, words, shop, tools)
    shop.write("package.json", '{"name": "shop", "private": true}\n')
    before = shop.run("--no-detect", *asked, env=variables)
    assert inside not in before.stdout if tool == "uv" else before.stdout.strip().endswith(without), before.stdout
    file = shop.write(name, text)
    run = shop.run("--no-detect", *asked, env=variables)
    assert inside in run.stdout, (run.stdout, run.stderr)
    shown = f"~/{file.relative_to(shop.home.path)}"
    read = shop.run("--no-detect", "--", "sh", "-c", f'cat "${{XDG_CONFIG_HOME%/config}}"{shown[1:]} {file}; echo end')
    assert CANARY not in read.stdout
    assert read.stdout.endswith("end\n")
    assert file.read_text() == text
    denied = shop.run("--no-detect", "--deny-read", str(file), *asked, env=variables)
    assert inside not in denied.stdout, "the twin: a deny rule hides it"


def test_a_file_that_is_not_understood_is_told_and_not_shown(shop: Shop) -> None:  # noqa: F811
    shop.server = shop.world.forbidden
    file = shop.write("~/config/uv/uv.toml", f'exclude-newer = "x\ntoken = "{CANARY}"\n')
    run = shop.run("-v", "--no-detect", "--", "sh", "-c", f'cat {file} "$XDG_CONFIG_HOME"/uv/uv.toml; true')
    assert (run.returncode, run.stdout) == (0, "")
    assert "uv.toml does not hold in this session" in run.stderr


def test_bundlers_settings_hold_without_the_logins_of_hosts(shop: Shop) -> None:  # noqa: F811
    """Read as Bundler does, by the home of the session."""
    text = f'---\nBUNDLE_PATH: "vendor"\nBUNDLE_GEMS__EXAMPLE__COM: "me:{CANARY}"\n'
    file = shop.write("~/.bundle/config", text)
    run = shop.world.netsandbox("run", "--no-detect", "--", "sh", "-c", f"cat ~/.bundle/config; cat {file}; true")
    assert 'BUNDLE_PATH: "vendor"' in run.stdout, run.stderr
    assert CANARY not in run.stdout
    assert file.read_text() == text
