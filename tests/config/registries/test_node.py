from __future__ import annotations

import subprocess

import pytest

from tests.config.registries.conftest import Scene

Files = dict[str, str]
Expected = dict[str, bool]


def check(scene: Scene, tool: str, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    """Each host with whether only the project names it."""
    for path, text in files.items():
        scene.write(path, text)
    scene.environment.update(variables)
    assert scene.found(tool) == {f"{name}.example:443": project for name, project in wanted.items()}


def npmrc(name: str, key: str = "registry") -> str:
    return f"{key} = https://{name}.example/npm/\n"


NPM: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"default": False}),
    ({"~/.npmrc": npmrc("user")}, {}, {"user": False}),
    ({".npmrc": npmrc("project")}, {}, {"project": True, "default": False}),
    ({".npmrc": npmrc("project"), "~/.npmrc": npmrc("user")}, {}, {"project": True, "user": False}),
    ({"../.npmrc": npmrc("above"), ".npmrc": npmrc("project")}, {}, {"project": True, "default": False}),
    ({"../.npmrc": npmrc("above")}, {}, {"above": True, "default": False}),
    ({".npmrc": npmrc("project")}, {"npm_config_registry": "https://env.example"}, {"env": False}),
    ({"~/.npmrc": npmrc("user")}, {"NPM_CONFIG_REGISTRY": "https://env.example"}, {"env": False}),
    ({"~/.npmrc": npmrc("user")}, {"npm_config_registry": ""}, {"user": False}),
    ({"~/.npmrc": npmrc("old") + npmrc("new")}, {}, {"new": False}),
    ({"~/.npmrc": npmrc("scope", "@acme:registry")}, {}, {"scope": False, "default": False}),
    ({".npmrc": npmrc("scope", "@acme:registry")}, {}, {"scope": True, "default": False}),
    ({"~/.npmrc": "[section]\n" + npmrc("user")}, {}, {"default": False}),
    ({"~/.npmrc": "registry=https://${HOST}.example"}, {"HOST": "var"}, {"var": False}),
    ({".npmrc": "registry=https://${HOST}.example"}, {"HOST": "var"}, {"default": False}),
    ({".npmrc": "registry=${WHERE}/npm"}, {"WHERE": "https://var.example"}, {"var": True, "default": False}),
    ({"~/etc/npmrc": npmrc("global")}, {"npm_config_prefix": "~"}, {"global": False}),
    ({"~/etc/npmrc": npmrc("global"), "~/.npmrc": "prefix=~"}, {}, {"global": False}),
    ({"~/n/etc/npmrc": npmrc("global"), "~/.npmrc": "prefix=${BASE}/n"}, {"BASE": "~"}, {"global": False}),
    ({"~/etc/npmrc": npmrc("no"), "own": "prefix=~"}, {"npm_config_userconfig": "own"}, {"default": False}),
    ({"~/own": npmrc("user"), "~/.npmrc": npmrc("no")}, {"NPM_CONFIG_USERCONFIG": "~/own"}, {"user": False}),
    ({"own": npmrc("inside")}, {"NPM_CONFIG_USERCONFIG": "own"}, {"inside": True, "default": False}),
    ({"~/own": npmrc("global")}, {"npm_config_globalconfig": "~/own"}, {"global": False}),
    ({"~/.npmrc": "registry=*"}, {}, {}),
    ({"~/.npmrc": "registry=http://localhost:4873/"}, {}, {}),
]


@pytest.mark.parametrize(("files", "variables", "wanted"), NPM)
def test_npm(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("npm", "echo https://default.example/")
    at_home = {name: value.replace("~", str(scene.home)) for name, value in variables.items()}
    check(scene, "npm", {path: text.replace("~", str(scene.home)) for path, text in files.items()}, at_home, wanted)


def test_the_file_that_npm_was_packed_with(scene: Scene) -> None:
    program = scene.tool("npm-cli.js", "echo https://default.example", scene.home / "npm" / "bin")
    (scene.bin / "npm").symlink_to(program)
    check(scene, "npm", {"~/npm/npmrc": npmrc("packed")}, {}, {"packed": False})


def test_a_prefix_below_the_home(scene: Scene) -> None:
    check(scene, "npm", {"~/.npmrc": "prefix=~/n", "~/n/etc/npmrc": npmrc("global")}, {}, {"global": False})


def test_a_registry_on_this_machine_is_a_note_that_names_the_option(scene: Scene) -> None:
    scene.write("~/.npmrc", "registry=http://localhost:4873/")
    answer = scene.discover("npm")
    assert any(f"{scene.home}/.npmrc:1" in note and "--connect-host 4873" in note for note in answer.notes)


def test_the_real_npm_prints_the_same_as_in_an_empty_home(scene: Scene) -> None:
    scene.real("npm", "node")
    environment = {"PATH": scene.environment["PATH"], "HOME": str(scene.home)}
    said = subprocess.run(
        ["npm", "config", "get", "registry"], cwd="/", env=environment, capture_output=True, text=True, check=True
    )
    (registry,) = scene.discover("npm").registries
    assert said.stdout.strip().rstrip("/") == f"https://{registry.pattern.removesuffix(':443')}"
    assert not registry.project


@pytest.mark.parametrize(
    "line",
    [
        "registry=https://${PLACE}.example/",
        '"registry" = "https://${PLACE}.example/"',
        "registry = https://${PLACE}.example/ ; why",
        "registry = https://${NONE?}${PLACE}.example/",
        "registry = https://old.example/\nregistry = https://${PLACE}.example/",
    ],
)
def test_the_real_npm_understands_a_users_file_as_we_do(scene: Scene, line: str) -> None:
    scene.real("npm", "node")
    scene.write("~/.npmrc", f"; first\n{line}\n[section]\nregistry = https://section.example/\n")
    scene.environment["PLACE"] = "here"
    environment = {"PATH": scene.environment["PATH"], "HOME": str(scene.home), "PLACE": "here"}
    command = ["npm", "config", "get", "registry"]
    said = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "https://here.example/"
    assert scene.discover("npm").patterns() == ("here.example:443",)


YARN: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"later": False}),
    ({".yarnrc.yml": 'npmRegistryServer: "https://project.example"\n'}, {}, {"project": True, "later": False}),
    ({"~/.yarnrc.yml": "npmRegistryServer: https://user.example\n"}, {}, {"user": False}),
    (
        {"~/.yarnrc.yml": "npmScopes:\n  a:\n    npmRegistryServer: https://scope.example\n"},
        {},
        {"scope": False, "later": False},
    ),
    ({"~/.yarnrc.yml": "npmScopes:\n  a:\n    npmPublishRegistry: https://no.example\n"}, {}, {"later": False}),
    (
        {".yarnrc.yml": "npmRegistryServer: https://project.example\n"},
        {"YARN_NPM_REGISTRY_SERVER": "https://env.example"},
        {"env": False},
    ),
    (
        {".rc": "npmRegistryServer: https://project.example"},
        {"YARN_RC_FILENAME": ".rc"},
        {"project": True, "later": False},
    ),
    ({"~/.yarnrc": 'registry "https://user.example"\n'}, {}, {"user": False, "later": False}),
    ({"~/.yarnrc": '"@a:registry" "https://user.example"\n'}, {}, {"user": False, "later": False}),
    ({"/etc/yarnrc": 'registry "https://system.example"\n'}, {}, {"system": False, "later": False}),
    ({".yarnrc": "registry https://project.example\n"}, {}, {"project": True, "later": False}),
    ({"~/.npmrc": npmrc("npm"), "~/.yarnrc": 'registry "https://user.example"\n'}, {}, {"npm": False, "later": False}),
]


@pytest.mark.parametrize(("files", "variables", "wanted"), YARN)
def test_yarn(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("yarn", '[ "$3" = npmRegistryServer ] && echo https://later.example')
    check(scene, "yarn", files, variables, wanted)


def test_the_first_yarn_is_queried_by_its_own_key(scene: Scene) -> None:
    scene.tool("yarn", '[ "$3" = registry ] && echo https://first.example || echo undefined')
    check(scene, "yarn", {}, {}, {"first": False})
    scene.trusted("~/.npmrc", npmrc("user"))
    check(scene, "yarn", {}, {}, {"user": False})


PNPM: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"default": False}),
    ({"~/.npmrc": npmrc("user")}, {}, {"user": False}),
    ({"~/.npmrc": npmrc("user"), "~/.config/pnpm/rc": npmrc("own")}, {}, {"own": False}),
    ({"~/.config/pnpm/config.yaml": "registry: https://own.example"}, {}, {"own": False}),
    (
        {"pnpm-workspace.yaml": "registries:\n  default: https://project.example\n  '@a': https://scope.example\n"},
        {},
        {"project": True, "scope": True, "default": False},
    ),
    (
        {"pnpm-workspace.yaml": "registry: https://project.example\n"},
        {"pnpm_config_registry": "https://env.example"},
        {"env": False},
    ),
]


@pytest.mark.parametrize(("files", "variables", "wanted"), PNPM)
def test_pnpm(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("pnpm", "echo https://default.example")
    check(scene, "pnpm", files, variables, wanted)


def test_pnpm_without_an_answer_is_as_npm(scene: Scene) -> None:
    scene.tool("npm", "echo https://default.example")
    check(scene, "pnpm", {}, {}, {"default": False})


BUN: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"default": False}),
    ({"~/.npmrc": npmrc("user")}, {}, {"user": False}),
    ({"~/.bunfig.toml": 'install.registry = "https://own.example"\n', "~/.npmrc": npmrc("user")}, {}, {"own": False}),
    ({"~/.bunfig.toml": '[install.registry]\nurl = "https://own.example"\ntoken = "x"\n'}, {}, {"own": False}),
    ({"~/.bunfig.toml": "install.registry = 3\n"}, {}, {"default": False}),
    ({"bunfig.toml": 'install.registry = "https://project.example"\n'}, {}, {"project": True, "default": False}),
    (
        {"bunfig.toml": '[install.scopes]\n"@a" = "https://project.example"\nb = {url = "https://b.example"}\n'},
        {},
        {"project": True, "b": True, "default": False},
    ),
    (
        {"bunfig.toml": 'install.registry = "https://project.example"\n'},
        {"BUN_CONFIG_REGISTRY": "https://env.example"},
        {"env": False},
    ),
    (
        {"~/.bunfig.toml": '[install.scopes]\n"@a" = "https://own.example"\n', ".npmrc": npmrc("p", "@a:registry")},
        {},
        {"own": False, "default": False},
    ),
]


@pytest.mark.parametrize(("files", "variables", "wanted"), BUN)
def test_bun(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("npm", "echo https://default.example")
    check(scene, "bun", files, variables, wanted)


def test_playwright_downloads_from_its_variables_or_from_what_it_prints(scene: Scene) -> None:
    line = "  Download url:        https://cdn.example/chromium.zip"
    scene.tool(
        "playwright", f"echo 'browser: chromium'; echo '{line}'; echo '  Download fallback 1: https://two.example/x'"
    )
    assert scene.discover("playwright").patterns() == ("cdn.example:443", "two.example:443")
    scene.environment["PLAYWRIGHT_FIREFOX_DOWNLOAD_HOST"] = "https://fox.example"
    assert scene.discover("playwright").patterns() == ("fox.example:443", "cdn.example:443", "two.example:443")
    scene.environment["PLAYWRIGHT_DOWNLOAD_HOST"] = "https://mirror.example"
    assert scene.discover("playwright").patterns() == ("fox.example:443", "mirror.example:443")
