from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.discovery import Discovery
from netsandbox.config.registries.python import default_in
from tests.config.registries.conftest import Scene
from tests.config.registries.test_node import Expected, Files, check
from tests.rig.certificates import CertificateAuthority
from tests.rig.package_index import PackageIndex
from tests.rig.world import need

PIP_HELP = "echo '  -i, --index-url <url>  Base URL (default'; echo '     https://default.example/simple). This'"


def conf(name: str, key: str = "index-url", section: str = "global") -> str:
    return f"[{section}]\n{key} = https://{name}.example/simple\n"


MANY = "[global]\nextra-index-url =\n  https://a.example/simple\n  https://b.example/simple\n"
PIP: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"default": False}),
    ({"~/.config/pip/pip.conf": conf("user")}, {}, {"user": False}),
    ({"~/.pip/pip.conf": conf("legacy"), "~/.config/pip/pip.conf": conf("user")}, {}, {"user": False}),
    ({"~/.pip/pip.conf": conf("legacy")}, {}, {"legacy": False}),
    ({"~/x/pip/pip.conf": conf("user")}, {"XDG_CONFIG_HOME": "~/x"}, {"user": False}),
    ({"~/.config/pip/pip.conf": conf("user"), "~/v/pip.conf": conf("venv")}, {"VIRTUAL_ENV": "~/v"}, {"venv": False}),
    ({".venv/pip.conf": conf("venv")}, {"VIRTUAL_ENV": ".venv"}, {"venv": True, "default": False}),
    ({"~/.config/pip/pip.conf": conf("user"), "~/own": conf("own")}, {"PIP_CONFIG_FILE": "~/own"}, {"own": False}),
    (
        {"~/.config/pip/pip.conf": conf("user"), "own": conf("own")},
        {"PIP_CONFIG_FILE": "own"},
        {"own": True, "default": False},
    ),
    ({"~/.config/pip/pip.conf": conf("user")}, {"PIP_CONFIG_FILE": "/dev/null"}, {"default": False}),
    ({"~/v/pip.conf": conf("venv")}, {"PIP_CONFIG_FILE": "/dev/null", "VIRTUAL_ENV": "~/v"}, {"default": False}),
    ({"~/.config/pip/pip.conf": conf("user")}, {"PIP_INDEX_URL": "https://env.example"}, {"env": False}),
    ({}, {"PIP_EXTRA_INDEX_URL": "https://a.example https://b.example"}, {"a": False, "b": False, "default": False}),
    ({}, {"PIP_FIND_LINKS": "/wheels wheels https://a.example/x"}, {"a": False, "default": False}),
    ({}, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "https://a.example/x"}, {"a": False}),
    ({"/etc/pip.conf": conf("system")}, {}, {"system": False}),
    ({"/etc/xdg/pip/pip.conf": conf("system")}, {}, {"system": False}),
    ({"/etc/pip.conf": conf("system"), "~/.pip/pip.conf": conf("user")}, {}, {"user": False}),
    ({"~/x/pip/pip.conf": conf("system")}, {"XDG_CONFIG_DIRS": "relative:~/x"}, {"system": False}),
    ({"~/.config/pip/pip.conf": MANY}, {}, {"a": False, "b": False, "default": False}),
    ({"~/.config/pip/pip.conf": MANY}, {"PIP_EXTRA_INDEX_URL": "https://c.example"}, {"c": False, "default": False}),
    ({"~/.config/pip/pip.conf": conf("i", section="install")}, {}, {"i": False, "default": False}),
    ({"~/.config/pip/pip.conf": conf("i", section="search")}, {}, {"default": False}),
    ({"~/.config/pip/pip.conf": conf("user", "index_url")}, {}, {"user": False}),
    ({"~/.config/pip/pip.conf": "[global]\nno-index = true\n"}, {}, {}),
    ({"~/.config/pip/pip.conf": "[global]\nno-index = false\n"}, {}, {"default": False}),
]


def at_home(scene: Scene, variables: dict[str, str]) -> dict[str, str]:
    return {name: value.replace("~", str(scene.home)) for name, value in variables.items()}


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started to ask for a page: tables are long. Real indexes are asked further below."""
    monkeypatch.setattr(Discovery, "page", lambda *_: None)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("files", "variables", "wanted"), PIP)
def test_pip(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("pip", PIP_HELP)
    check(scene, "pip", files, at_home(scene, variables), wanted)


INDEX = '[[index]]\nname = "x"\nurl = "https://{}.example/simple"\n'
DEFAULT = INDEX + "default = true\n"
USER = "~/.config/uv/uv.toml"
UV: list[tuple[Files, dict[str, str], Expected]] = [
    ({}, {}, {"default": False}),
    ({USER: DEFAULT.format("user")}, {}, {"user": False}),
    ({USER: INDEX.format("user")}, {}, {"user": False, "default": False}),
    ({"/etc/uv/uv.toml": DEFAULT.format("system")}, {}, {"system": False}),
    ({"/etc/uv/uv.toml": DEFAULT.format("system"), USER: DEFAULT.format("user")}, {}, {"user": False}),
    ({USER: 'index-url = "https://user.example"'}, {}, {"user": False}),
    ({USER: '[pip]\nextra-index-url = ["https://user.example"]'}, {}, {"user": False, "default": False}),
    ({USER: 'find-links = ["https://user.example", "wheels"]'}, {}, {"user": False, "default": False}),
    ({"uv.toml": DEFAULT.format("project"), USER: DEFAULT.format("user")}, {}, {"project": True, "user": False}),
    (
        {"uv.toml": INDEX.format("project"), USER: INDEX.format("user")},
        {},
        {"project": True, "user": False, "default": False},
    ),
    ({"pyproject.toml": '[[tool.uv.index]]\nurl = "https://project.example"'}, {}, {"project": True, "default": False}),
    (
        {"uv.toml": DEFAULT.format("a"), "pyproject.toml": '[[tool.uv.index]]\nurl = "https://b.example"'},
        {},
        {"a": True, "default": False},
    ),
    ({"pyproject.toml": 'index-url = "https://no.example"'}, {}, {"default": False}),
    ({"uv.toml": DEFAULT.format("project")}, {"UV_DEFAULT_INDEX": "https://env.example"}, {"env": False}),
    ({}, {"UV_INDEX_URL": "https://env.example"}, {"env": False}),
    ({}, {"UV_INDEX": "one=https://a.example https://b.example"}, {"a": False, "b": False, "default": False}),
    ({USER: DEFAULT.format("user"), "~/own.toml": ""}, {"UV_CONFIG_FILE": "~/own.toml"}, {"default": False}),
    (
        {USER: DEFAULT.format("user"), "~/own-uv.toml": DEFAULT.format("own")},
        {"UV_CONFIG_FILE": "~/own-uv.toml"},
        {"own": False},
    ),
    ({USER: DEFAULT.format("user")}, {"UV_NO_CONFIG": "1"}, {"default": False}),
    ({"~/.config/pip/pip.conf": conf("no")}, {"PIP_INDEX_URL": "https://no.example"}, {"default": False}),
]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("files", "variables", "wanted"), UV)
def test_uv(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("uv", "echo '--index-url <URL> The index (by default: <https://default.example/simple>) [env: X]'")
    check(scene, "uv", files, at_home(scene, variables), wanted)


SOURCE = '[[{}]]\nname = "x"\nurl = "https://project.example/simple"\n'
OTHERS: list[tuple[str, Files, dict[str, str], Expected]] = [
    ("poetry", {}, {}, {"default": False}),
    ("poetry", {"pyproject.toml": SOURCE.format("tool.poetry.source")}, {}, {"project": True, "default": False}),
    ("poetry", {"pyproject.toml": "tool.poetry.source = 3"}, {}, {"default": False}),
    ("pipenv", {"Pipfile": SOURCE.format("source")}, {}, {"project": True, "default": False}),
    (
        "pipenv",
        {"Pipfile": SOURCE.format("source")},
        {"PIPENV_PYPI_MIRROR": "https://m.example"},
        {"m": False, "project": True},
    ),
    ("pipenv", {}, {"PIP_INDEX_URL": "https://env.example"}, {"env": False}),
    ("pdm", {}, {}, {"default": False}),
    ("pdm", {"pyproject.toml": SOURCE.format("tool.pdm.source")}, {}, {"project": True, "default": False}),
    ("pdm", {"~/.config/pdm/config.toml": '[pypi]\nurl = "https://user.example"'}, {}, {"user": False}),
    (
        "pdm",
        {"~/.config/pdm/config.toml": '[pypi.x]\nurl = "https://user.example"'},
        {},
        {"user": False, "default": False},
    ),
    ("pdm", {"pdm.toml": '[pypi]\nurl = "https://project.example"'}, {}, {"project": True, "default": False}),
    (
        "pdm",
        {"pdm.toml": '[pypi]\nurl = "https://project.example"'},
        {"PDM_PYPI_URL": "https://env.example"},
        {"env": False},
    ),
]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("tool", "files", "variables", "wanted"), OTHERS)
def test_poetry_pipenv_and_pdm(
    scene: Scene, tool: str, files: Files, variables: dict[str, str], wanted: Expected
) -> None:
    scene.tool("pip", PIP_HELP)
    check(scene, tool, files, variables, wanted)


def test_pdm_is_queried_before_pip(scene: Scene) -> None:
    scene.tool("pip", PIP_HELP)
    scene.tool("pdm", "echo https://own.example/simple")
    check(scene, "pdm", {}, {}, {"own": False})


def real_default(command: list[str], environment: dict[str, str]) -> str:
    """The host that the tool's own help names."""
    text = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True).stdout
    return "".join(text.split()).partition("https://")[2].partition("/")[0]


def test_the_real_pip_names_its_default(scene: Scene) -> None:
    scene.real("pip")
    environment = {key: scene.environment[key] for key in ("PATH", "PYENV_ROOT") if key in scene.environment}
    named = real_default(["pip", "download", "--isolated", "--help"], {**environment, "HOME": str(scene.home)})
    answer = scene.discover("pip")
    assert answer.patterns() == (f"{named}:443",)
    assert not answer.complete  # nobody could be asked for links
    assert any("could not be asked where its files are" in note for note in answer.notes)


def test_the_real_pip_reads_files_as_we_do(scene: Scene) -> None:
    scene.real("pip")
    scene.write(
        "~/.config/pip/pip.conf", MANY + "index_url: https://c.example/simple\n[install]\nindex-url=https://d.example\n"
    )
    environment = {key: scene.environment[key] for key in ("PATH", "PYENV_ROOT") if key in scene.environment}
    run = subprocess.run(
        ["pip", "config", "list"],
        cwd="/",
        env={**environment, "HOME": str(scene.home)},
        capture_output=True,
        text=True,
        check=True,
    )
    named = {
        word.rstrip("'").partition("https://")[2].partition("/")[0]
        for word in run.stdout.replace("\\n", " ").split()
        if "https://" in word
    }
    assert named == {f"{name}.example" for name in "abcd"}
    assert {pattern.removesuffix(":443") for pattern in scene.discover("pip").patterns()} == named


def test_the_real_uv_names_its_default(scene: Scene) -> None:
    uv = need("uv", "uv, by pip")
    (scene.bin / "uv").symlink_to(Path(uv).resolve())
    environment = {"PATH": os.environ["PATH"], "HOME": str(scene.home)}
    help_text = subprocess.run(
        [uv, "pip", "install", "--help"], cwd="/", env=environment, capture_output=True, text=True, check=True
    ).stdout
    (registry,) = scene.discover("uv").registries
    assert f"https://{registry.pattern.removesuffix(':443')}/" in help_text


PAGES = {
    "/simple/six/": (
        200,
        "text/html",
        b'<a href="https://files.example/six.whl">six</a> <a href="http://10.0.0.1/x">x</a>',
    ),
    "/json/six/": (
        200,
        "application/vnd.pypi.simple.v1+json",
        json.dumps({"files": [{"url": "https://cdn.example/x"}]}).encode(),
    ),
}


@pytest.mark.parametrize(("path", "files"), [("simple", "files.example:443"), ("json/", "cdn.example:443")])
def test_an_index_is_queried_for_the_hosts_of_its_files(
    scene: Scene, ca: CertificateAuthority, path: str, files: str
) -> None:
    with PackageIndex(ca.issue("index.example"), PAGES) as index:
        scene.environment.update(
            https_proxy=index.proxy, PIP_CERT=str(ca.cert), PIP_INDEX_URL=f"https://index.example/{path}"
        )
        answer = scene.hosts("pip")
        assert answer.patterns() == ("index.example:443", files)
        assert answer.complete
        assert scene.hosts("pip") == answer
        assert len(index.requests) == 1


def test_a_projects_index_is_never_queried(scene: Scene, ca: CertificateAuthority) -> None:
    with PackageIndex(ca.issue("index.example"), PAGES) as index:
        scene.environment.update(https_proxy=index.proxy, http_proxy=index.proxy, SSL_CERT_FILE=str(ca.cert))
        scene.write("uv.toml", DEFAULT.format("index"))
        assert scene.found("uv") == {"index.example:443": True}
        assert index.tunnels == []
        scene.write("~/.config/uv/uv.toml", DEFAULT.format("index"))
        assert scene.found("uv") == {"index.example:443": False, "files.example:443": False}
        assert index.tunnels == ["index.example:443"]


def test_an_index_without_tls_is_not_queried(scene: Scene, ca: CertificateAuthority) -> None:
    with PackageIndex(ca.issue("index.example"), PAGES) as index:
        scene.environment.update(http_proxy=index.proxy, PIP_INDEX_URL="http://index.example/simple")
        answer = scene.discover("pip")
        assert answer.patterns() == ("index.example:80",)
        assert any("links are not followed" in note for note in answer.notes)
        assert index.tunnels == index.requests == []


@given(
    st.lists(
        st.sampled_from(["--index-url", "default", "(default ", "https://a.example", ")", " ", "\n", "--x", "."])
    ).map("".join)
    | st.text()
)
def test_the_default_in_a_help_is_in_the_help(text: str) -> None:
    url = default_in(text)
    assert url in text
    assert url == "" or url.startswith("https://")
