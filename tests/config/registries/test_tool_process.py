from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.config.registries.tool_process import MAX_OUTPUT, is_inside, output, safe_path, start, tool_environment
from netsandbox.config.trust import trust
from tests.config.registries.conftest import Scene
from tests.rig.processes import is_gone
from tests.rig.waiting import wait_for

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def shell(script: str, timeout: float = 20.0, data: bytes = b"") -> bytes | None:
    process = start(["/bin/sh", "-c", script], ENVIRONMENT, data)
    return None if process is None else output(process, timeout)


def test_a_program_runs_in_the_root_and_its_output_is_read() -> None:
    assert shell("pwd; cat", data=b"why?\n") == b"/\nwhy?\n"


@pytest.mark.parametrize("script", ["echo x; exit 3", "kill -9 $$", f"head -c {MAX_OUTPUT + 1} /dev/zero", "yes"])
def test_failure_and_floods_are_no_answer(script: str) -> None:
    assert shell(script) is None


def test_a_question_that_nobody_reads_does_no_harm() -> None:
    assert shell("exec 0<&-; echo x", data=b"?" * 4096) == b"x\n"


def test_what_cannot_be_started_is_no_answer(tmp_path: Path) -> None:
    assert start([str(tmp_path)], {}) is start(["/nonexistent"], {}) is start(["a\0b"], {}) is start([""], {}) is None


@pytest.mark.parametrize(
    "script",
    ["sleep 1000 & echo $! > {0}; wait", "sleep 1000 & echo $! > {0}", "exec >&-; sleep 1000 & echo $! > {0}; wait"],
)
def test_a_program_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path, script: str) -> None:
    file = tmp_path / "pid"
    printed = shell(script.format(file), timeout=2.0)
    assert printed is None
    child = int(file.read_text())
    wait_for(lambda: is_gone(child))


def test_the_projects_directories_are_not_searched(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "node_modules" / ".bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(project / "node_modules")
    path = f"bin:.::{project}/node_modules/.bin:{tmp_path}/link/.bin:/usr/bin:{project}-other"
    assert safe_path(path, str(project)) == ["/usr/bin", f"{project}-other"]
    assert is_inside(str(project), str(project))
    assert not is_inside(str(tmp_path), str(project))
    assert is_inside("/usr/bin", "/")


def test_no_variable_tells_the_tool_what_to_answer(tmp_path: Path) -> None:
    outer = {
        "PATH": f"/usr/bin:{tmp_path}",
        "HOME": "/home/me",
        "PYENV_ROOT": "/opt/pyenv",
        "npm_config_registry": "https://a.example",
        "PIP_INDEX_URL": "https://a.example",
        "GOPROXY": "https://a.example",
        "NODE_OPTIONS": "--require ./evil.js",
        "LD_PRELOAD": "evil.so",
        "PYTHONPATH": ".",
        "API_TOKEN": "hunter2",
    }
    (tmp_path / "home" / ".rustup").mkdir(parents=True)
    seen = tool_environment(outer, str(tmp_path), str(tmp_path / "home"))
    assert seen["PATH"] == "/usr/bin"
    assert "HOME" not in seen, "its settings would answer in the tool's place"
    assert seen["RUSTUP_HOME"] == f"{tmp_path}/home/.rustup", "the tools that lie in it are found"
    assert "RBENV_ROOT" not in seen
    assert seen["PYENV_ROOT"] == "/opt/pyenv"
    assert not {
        "npm_config_registry",
        "PIP_INDEX_URL",
        "GOPROXY",
        "NODE_OPTIONS",
        "LD_PRELOAD",
        "PYTHONPATH",
        "API_TOKEN",
    } & set(seen)


@pytest.mark.parametrize("tool", ["npm", "yarn", "pnpm", "pip", "uv", "cargo", "go", "gem", "mvn", "pdm"])
def test_a_tool_of_the_project_is_never_run_and_its_twin_outside_is(scene: Scene, tool: str) -> None:
    inside = scene.tool(tool, f"{scene.trace.command}; echo https://inside.example", scene.project / "bin")
    (scene.bin / "link").symlink_to(scene.project / "bin")
    scene.environment["PATH"] = f"{scene.project}/bin:{scene.bin}/link:{scene.bin}"
    assert scene.discovery().program(tool) is None
    scene.discover(tool)
    assert scene.trace.lines() == []
    outside = scene.tool(tool, f"pwd > {scene.trace.path}")
    for path in (inside, outside):
        trust(str(path), path.read_bytes())
    scene.discover(tool)
    if tool != "mvn":  # only its files are read
        where, *_ = scene.trace.lines()
        assert where.endswith("/work")
        assert not Path(where).exists()
        assert not where.startswith(str(scene.project))


def test_a_tool_that_is_a_link_into_the_project_is_not_run(scene: Scene) -> None:
    inside = scene.tool("npm", "echo https://inside.example", scene.project)
    (scene.bin / "npm").symlink_to(inside)
    assert scene.discovery().program("npm") is None
