from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config import cache
from netsandbox.config.registries.lookup import Registry, ToolRegistries
from netsandbox.config.registries.tools import TOOLS
from netsandbox.errors import UsageError
from tests.config.registries.conftest import Scene
from tests.config.registries.test_discovery import hostile
from tests.rig.file_clock import trust_place

ROOT = Path(__file__).resolve().parents[3]
SECRET = "hunter2"


def test_a_tool_that_nobody_knows_is_an_error_that_names_the_others(scene: Scene) -> None:
    with pytest.raises(UsageError, match="npm, yarn"):
        scene.hosts("make")


@pytest.mark.parametrize("tool", TOOLS)
def test_without_files_variables_and_tools_there_is_a_note_and_nothing_else(scene: Scene, tool: str) -> None:
    answer = scene.discover(tool)
    assert answer.registries == ()
    assert f"no registry of {tool} is known; allow it with --allow-domain" in answer.notes


FILES = {
    "npm": ".npmrc",
    "yarn": ".yarnrc.yml",
    "pnpm": "pnpm-workspace.yaml",
    "bun": "bunfig.toml",
    "pip": "venv/pip.conf",
    "uv": "uv.toml",
    "poetry": "pyproject.toml",
    "pipenv": "Pipfile",
    "pdm": "pdm.toml",
    "cargo": ".cargo/config.toml",
    "bundle": "Gemfile",
    "mvn": "pom.xml",
    "gradle": "gradle/wrapper/gradle-wrapper.properties",
}


@pytest.mark.parametrize("kind", ["giant", "endless", "pipe", "folder", "loop"])
@pytest.mark.parametrize("tool", FILES)
def test_a_hostile_file_is_passed_over_with_a_note(scene: Scene, tool: str, kind: str) -> None:
    scene.environment["VIRTUAL_ENV"] = str(scene.project / "venv")
    file = scene.project / FILES[tool]
    file.parent.mkdir(parents=True, exist_ok=True)
    hostile(file.parent, kind).rename(file) if kind != "loop" else file.symlink_to(file)
    answer = scene.discover(tool)
    assert answer.registries == ()
    assert any(FILES[tool] in note and "passed over" in note for note in answer.notes)


PLAIN = """registry @a:registry = " ' [ ] [[ ]] . index url source tool.uv tool.poetry install registries global
index-url npmRegistryServer https://a.example http://u:p@b.example:1/ https://* ${PATH} ${ <repository> <url> </url> #
repositories maven ( ) uri mavenCentral replace-with crates-io { } true default pypi \\ \0 \x1b é"""
WORDS = st.sampled_from([*PLAIN.split(), ": ", "- ", "\n", "npmScopes:\n  a:\n    "])


@pytest.mark.parametrize("tool", FILES)
def test_no_file_of_a_project_stops_a_run_or_counts(scene: Scene, tool: str) -> None:
    scene.environment["VIRTUAL_ENV"] = str(scene.project / "venv")
    file = scene.project / FILES[tool]
    file.parent.mkdir(parents=True, exist_ok=True)

    @given(st.binary() | st.lists(WORDS).map(lambda words: "".join(words).encode()))
    def whatever(content: bytes) -> None:
        file.write_bytes(content)
        answer = scene.discover(tool)
        assert answer.patterns() == ()
        assert all(pattern.rpartition(":")[0].encode() in content for pattern in answer.patterns(project=True))
        assert all(note.isprintable() for note in answer.notes)

    whatever()


def test_the_tool_is_queried_once_and_again_after_a_change(scene: Scene) -> None:
    scene.tool("npm", f"{scene.trace.command}; echo https://a.example/")
    first = scene.hosts("npm")
    assert first.patterns() == ("a.example:443",)
    assert scene.hosts("npm") == first
    assert len(scene.trace.lines()) == 1
    scene.trusted("~/.npmrc", "@b:registry=https://b.example")
    assert scene.hosts("npm").patterns() == ("b.example:443", "a.example:443")
    scene.environment["NPM_CONFIG_FUND"] = "false"
    scene.hosts("npm")
    assert len(scene.trace.lines()) == 2
    program = scene.tool("npm", "echo https://c.example/")
    assert scene.hosts("npm").patterns() == ("b.example:443",)
    trust_place(program.parent)
    assert scene.hosts("npm").patterns() == ("b.example:443", "c.example:443")


def test_a_damaged_cache_is_queried_anew(scene: Scene) -> None:
    scene.tool("npm", f"{scene.trace.command}; echo https://a.example/")
    first = scene.hosts("npm")
    (file,) = Path(cache.folder()).iterdir()
    file.write_bytes(file.read_bytes().replace(b"a.example", b"e.example"))
    assert scene.hosts("npm") == first
    assert len(scene.trace.lines()) == 2


def test_a_folder_by_another_name_is_the_same_folder(scene: Scene) -> None:
    scene.tool("npm", f"{scene.trace.command}; echo https://a.example/")
    scene.hosts("npm")
    link = scene.home / "link"
    link.symlink_to(scene.project)
    scene.project = link
    scene.hosts("npm")
    assert len(scene.trace.lines()) == 1


def test_credentials_are_neither_kept_nor_shown(scene: Scene) -> None:
    url = f"https://user:{SECRET}@a.example/{SECRET}/"
    scene.write("~/.npmrc", f"registry={url}\n@x:registry=https://u:{SECRET}@*/\n//a.example/:_authToken={SECRET}\n")
    scene.write(".npmrc", f"@y:registry=https://{SECRET}@10.0.0.1/\n")
    scene.environment.update(PIP_INDEX_URL=url, UV_INDEX=url, GOPROXY=url, PIPENV_PYPI_MIRROR=url, PDM_PYPI_URL=url)
    scene.environment["CARGO_REGISTRIES_MINE_INDEX"] = f"sparse+{url}"
    for tool in ("npm", "yarn", "pnpm", "bun", "pip", "uv", "pipenv", "pdm", "go", "cargo"):
        answer = scene.hosts(tool)
        assert "a.example:443" in answer.patterns()
        assert SECRET not in repr(answer)
    kept = list(Path(cache.folder()).iterdir())
    assert len(kept) == 10
    assert not any(SECRET.encode() in file.read_bytes() for file in kept)


def test_a_registry_of_the_user_is_not_listed_as_the_projects(scene: Scene) -> None:
    scene.write(".npmrc", "registry=https://a.example\n@x:registry=https://b.example")
    scene.write("~/.npmrc", "registry=https://a.example")
    listed = [(each.pattern, each.project) for each in scene.discover("npm").registries]
    assert sorted(listed) == [("a.example:443", False), ("b.example:443", True)]


def test_a_warm_answer_imports_nothing_heavy(scene: Scene) -> None:
    scene.tool("npm", "echo https://a.example/")
    first = scene.hosts("npm")
    script = """
import os, sys
before = set(sys.modules)
from netsandbox.config.registries.lookup import hosts
place, home, *words = sys.argv[1:]
answer = hosts("npm", place, dict(word.split("=", 1) for word in words), home)
print(answer.patterns()[0], *sorted(set(sys.modules) - before))
"""
    words = [f"{name}={value}" for name, value in scene.environment.items()]
    run = subprocess.run(
        [sys.executable, "-S", "-c", script, str(scene.project), str(scene.home), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    pattern, *modules = run.stdout.split()
    assert pattern == first.patterns()[0]
    assert "netsandbox.config.cache" in modules
    heavy = {
        "tomllib",
        "subprocess",
        "urllib",
        "json",
        "re",
        "typing",
        "socket",
        "hashlib",
        "select",
        "importlib",
        "stat",
    }
    assert not heavy & set(modules)
    assert not {"netsandbox.config.registries.discovery", "netsandbox.config.registries.tool_process"} & set(modules)


def test_only_what_the_project_does_not_say_is_taken_unless_it_is_wanted():
    answer = ToolRegistries(
        (
            Registry("a.example:443", "A", False),
            Registry("b.example:443", "B", True),
            Registry("a.example:443", "C", True),
        ),
        (),
        (),
    )
    assert answer.patterns() == ("a.example:443",)
    assert answer.patterns(project=True) == ("a.example:443", "b.example:443")
