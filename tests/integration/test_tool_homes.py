"""uvx and pipx run a package in a session although the host has tools in their folders, which they lock and write at
each call. The host's tools stay as they are, and what a session made of them is gone with it."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_closed_files import own
from tests.integration.test_everyday_tools import content, plainly
from tests.rig.tools import Tools
from tests.rig.world import need

pytestmark = [
    pytest.mark.ordinary_user,
    pytest.mark.backend("namespaces", "broker"),
]

WHEEL = "words-1-py3-none-any.whl"
FILES = {
    "words.py": "def main():\n    print('words ran')\n",
    "words-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: words\nVersion: 1\n",
    "words-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "words-1.dist-info/entry_points.txt": "[console_scripts]\nwords = words:main\n",
}


@pytest.fixture
def home(netsandbox: Any) -> Any:
    """A project with a wheel in it that has a program."""
    home = netsandbox.home()
    with zipfile.ZipFile(home.work / WHEEL, "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
        wheel.writestr("words-1.dist-info/RECORD", "".join(f"{name},,\n" for name in FILES))
    own(home.work / WHEEL, home)
    return home


@pytest.fixture
def uv(home: Any, tools: Tools) -> str:
    return tools.program(Path(need("uv", "uv, by pip")), home.identity)


@pytest.fixture
def pipx(home: Any, tools: Tools, uv: str) -> tuple[str, ...]:
    """With uv as its installer, which needs no registry for a wheel that is here."""
    site = tools.of_pip("pipx", home.identity)
    path = f"PATH={Path(uv).parent}:{home.identity.path}"
    return ("env", path, f"PYTHONPATH={site}", "PIPX_DEFAULT_BACKEND=uv", home.identity.python, "-m", "pipx")


@pytest.mark.parametrize("moved", [False, True])
def test_uvx_runs_a_package_where_the_host_has_tools(
    netsandbox: Any, home: Any, uv: str, outside: Path, moved: bool
) -> None:
    env = {"UV_TOOL_DIR": str(outside / "tools"), "UV_TOOL_BIN_DIR": str(outside / "bin")} if moved else {}
    if moved:
        own(outside, home)
    plainly(home, uv, "tool", "install", "--offline", "--python", netsandbox.python, f"./{WHEEL}", **env)
    folder = outside / "tools" if moved else home.path / ".local/share/uv/tools"
    before = content(folder)
    assert before
    run = netsandbox(
        *("run", "--allow-read", uv, "--", uv, "tool", "run", "--offline", "--python", netsandbox.python),
        *("--from", f"./{WHEEL}", "words"),
        env=env,
        timeout=120,
    )
    assert (run.returncode, run.stdout) == (0, "words ran\n"), run.stderr
    assert "denied" not in run.stderr
    assert content(folder) == before


def test_pipx_runs_a_package_where_the_host_has_tools(
    netsandbox: Any, home: Any, pipx: tuple[str, ...], uv: str, tools: Tools
) -> None:
    """PIPX_HOME: then what `pipx run` keeps is in the same folder."""
    folder = home.path / ".local/pipx"
    env = {"PIPX_HOME": str(folder)}
    plainly(home, *pipx, "install", "--python", netsandbox.python, f"./{WHEEL}", **env)
    before = content(folder)
    assert before
    shown = ("--allow-read", tools.of_pip("pipx", home.identity), "--allow-read", uv)
    command = ("run", *shown, "--", *pipx)
    run = netsandbox(
        *command, "run", "--python", netsandbox.python, "--spec", f"./{WHEEL}", "words", env=env, timeout=180
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("words ran\n")
    assert content(folder) == before
    own_tools = netsandbox(*command, "list", env=env, timeout=120)
    assert own_tools.returncode == 0, own_tools.stderr


def test_tools_of_the_host_run_inside_and_a_change_reaches_neither_the_host_nor_a_later_session(
    netsandbox: Any, home: Any, uv: str
) -> None:
    plainly(home, uv, "tool", "install", "--offline", "--python", netsandbox.python, f"./{WHEEL}")
    module = next((home.path / ".local/share/uv/tools").rglob("words.py"))
    path = {"PATH": f"{home.path}/.local/bin:{home.identity.path}"}
    plant = f"words; echo 'print(\"planted\")' >> {module} && words"
    first = netsandbox("run", "--", "sh", "-c", plant, env=path)
    assert first.stdout.startswith("words ran\n"), first.stderr
    assert module.read_text() == FILES["words.py"]
    later = netsandbox("run", "--", "words", env=path)
    assert later.stdout == "words ran\n", later.stderr


def test_no_line_opens_the_hosts_programs(netsandbox: Any, home: Any, uv: str) -> None:
    """The twin of the tests above: what the host runs is changed by no session, and no option is proposed for it."""
    plainly(home, uv, "tool", "install", "--offline", "--python", netsandbox.python, f"./{WHEEL}")
    program = home.path / ".local/bin/words"
    install = ("tool", "install", "--offline", "--force", "--python", netsandbox.python, f"./{WHEEL}")
    run = netsandbox("run", "--allow-read", uv, "--", uv, *install, timeout=120)
    assert run.returncode != 0
    assert "--allow-write" not in run.stderr
    assert program.is_symlink()
    assert shutil.which("words", path=str(program.parent)) is not None
