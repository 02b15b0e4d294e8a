"""The program `netsandbox` runs our package, whatever the environment and the working directory offer in its place.

Hole H3: with PYTHONPATH=. a folder `netsandbox/` of the project ran instead of ours, with no sandbox at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from netsandbox import __version__
from tests.rig.mac_wheel import copy_sources

BUILD = "import sys; from hatchling.build import build_{0}; print(build_{0}(sys.argv[1]))"
VERSION = f"netsandbox {__version__}\n"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a Mac's launcher is built on Linux and not run there")


def install(installer: list[str], wheel: Path, folder: Path) -> Path:
    """The launcher in a new environment at *folder*."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    command = [word.format(python=python) for word in installer]
    done = subprocess.run([*command, "--no-deps", str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "netsandbox"


PIP = [sys.executable, "-m", "pip", "--python", "{python}", "-q", "install", "--no-index"]
UV = [sys.executable, "-m", "uv", "pip", "install", "--offline", "--python", "{python}"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_sources(tmp_path_factory.mktemp("a tree") / "source")


def build(sources: Path, kind: str, folder: Path) -> Path:
    command = [sys.executable, "-c", BUILD.format(kind), str(folder)]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For this machine alone, by its own compiler, as `pip install .` makes it."""
    return build(sources, "wheel", tmp_path_factory.mktemp("a wheel"))


@pytest.fixture(scope="module")
def launchers(sources: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every way to have the program; folders with spaces in their names."""
    folder = tmp_path_factory.mktemp("some environments")
    editable = build(sources, "editable", folder / "editable wheel")
    pip = install(PIP, wheel, folder / "by pip")
    link = folder / "bin" / "netsandbox"
    link.parent.mkdir()
    link.symlink_to(pip)
    clone = install(UV, editable, folder / "a clone")
    return {"pip": pip, "pipx": link, "uv": install(UV, wheel, folder / "by uv"), "editable": clone}


@pytest.fixture(params=["pip", "pipx", "uv", "editable"])
def launcher(request: pytest.FixtureRequest, launchers: dict[str, Path]) -> Path:
    return launchers[request.param]


def run(
    launcher: Path, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), **(env or {})}
    return subprocess.run(
        [launcher, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_folder_as_standard_input_is_one_clear_line(launchers: dict[str, Path], tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        done = subprocess.run(
            [launchers["editable"], "ps"], stdin=folder, capture_output=True, text=True, check=False, timeout=60
        )
    finally:
        os.close(folder)
    line = "netsandbox: standard input is a directory; redirect it, for instance from /dev/null\n"
    assert (done.returncode, done.stderr) == (1, line)


def test_a_wheel_carries_programs_as_programs_and_what_man_and_editors_read(wheel: Path, sources: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        programs = {entry.filename for entry in archive.infolist() if entry.external_attr >> 16 & 0o111}
        carried = {name for name in archive.namelist() if name.startswith("netsandbox_interpose/")}
        schema = archive.read("netsandbox/config/netsandbox.schema.json")
        (page,) = (name for name in archive.namelist() if name.endswith(".data/data/share/man/man1/netsandbox.1"))
        manual, shown = archive.read(page), archive.read("netsandbox/cli/netsandbox.1")
    assert "-cp311-abi3-linux_" in wheel.name
    assert schema == (sources / "netsandbox" / "config" / "netsandbox.schema.json").read_bytes()
    assert manual == shown == (sources / "docs" / "netsandbox.1").read_bytes()
    assert "netsandbox/backends/namespaces/native/netsandbox-init" in programs
    assert len({name for name in programs if name.endswith(".data/scripts/netsandbox")}) == 1
    assert "netsandbox/cli/native/netsandbox" not in programs
    assert {Path(name).name for name in carried} == {
        *("__init__.py", "library.py", "_native.pyi", "port-map", "_native.abi3.so", "libnetsandbox_interpose.so")
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with everything that an interpreter may be led to run; each writes the canary file."""
    plant = f"open({str(tmp_path / 'canary')!r}, 'a').write(__name__)\n"
    folder = tmp_path / "project"
    package = folder / "netsandbox"
    (package / "cli").mkdir(parents=True)
    for file in (
        *(package / "__init__.py", package / "__main__.py", package / "cli" / "__init__.py"),
        *(package / "cli" / "main.py", folder / "netsandbox.py", folder / "startup.py"),
        *(folder / f"{name}.py" for name in ("sitecustomize", "usercustomize", "os", "encodings", "fcntl", "_socket")),
        *(folder / f"{name}.py" for name in ("json", "tomllib", "select", "resource", "dnslib", "_cffi_backend")),
    ):
        file.write_text(plant)
    user = folder / ".local" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    user.mkdir(parents=True)
    (user / "planted.pth").write_text(f"import os; {plant}")
    (user / "usercustomize.py").write_text(plant)
    return folder


@pytest.mark.attack(215)
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"PYTHONPATH": "."},
        {"PYTHONPATH": ""},
        {"PYTHONPATH": "{project}"},
        {"PYTHONHOME": "."},
        {"PYTHONHOME": "{project}", "PYTHONPATH": "{project}"},
        {"PYTHONSTARTUP": "startup.py", "PYTHONINSPECT": "1"},
        {"PYTHONUSERBASE": "{project}/.local"},
        {"PYTHONEXECUTABLE": "{project}/python", "__PYVENV_LAUNCHER__": "{project}/python"},
        {"PYTHONPLATLIBDIR": "{project}", "PYTHONPYCACHEPREFIX": "{project}"},
        {"PYTHONBREAKPOINT": "netsandbox.planted", "PYTHONWARNINGS": "error::netsandbox.Planted"},
    ],
    ids=lambda environment: "+".join(environment) or "cwd",
)
def test_nothing_of_the_project_is_run_in_our_place(launcher: Path, project: Path, environment: dict[str, str]) -> None:
    environment = {name: value.format(project=project) for name, value in environment.items()}
    for arguments in (["--version"], ["explain", "example.com", "--json"]):
        done = run(launcher, *arguments, cwd=project, env=environment)
        assert "Traceback" not in done.stderr
        assert '"example.com"' in done.stdout or done.stdout == VERSION, done.stderr
    assert not (project.parent / "canary").exists()


def test_without_the_plants_it_works_the_same(launcher: Path, tmp_path: Path) -> None:
    done = run(launcher, "--version", cwd=tmp_path, env={"PYTHONPATH": "."})
    assert (done.returncode, done.stdout, done.stderr) == (0, VERSION, "")


@pytest.mark.usefixtures("user_namespaces")
def test_a_session_starts_and_its_command_has_the_environment_untouched(
    launcher: Path, project: Path, short_tmp: Path
) -> None:
    show = ("sh", "-c", 'echo "$PYTHONPATH" "$PYTHONHOME"')
    env = {"PYTHONPATH": ".", "PYTHONHOME": "x", "HOME": str(short_tmp)}
    done = run(launcher, "run", "-q", "--", *show, cwd=project, env=env)
    assert (done.returncode, done.stdout) == (0, ". x\n"), done.stderr
    assert not (project.parent / "canary").exists()


@pytest.mark.attack(149)
@pytest.mark.usefixtures("user_namespaces")
def test_a_session_cannot_write_the_bytecode_that_the_python_api_would_run(
    launchers: dict[str, Path], short_tmp: Path
) -> None:
    """The launcher ignores PYTHONPYCACHEPREFIX; an interpreter that imports our package does not."""
    launcher, prefix = launchers["pip"], short_tmp / "bytecode"
    (packages,) = (launcher.parent.parent / "lib").glob("python3*/site-packages")
    ours = f"{prefix}{packages}/netsandbox"
    plant = f"mkdir -p '{ours}'; echo forged > '{ours}/forged.pyc'; echo done"
    done = run(launcher, "run", "-q", "--", "sh", "-c", plant, cwd=short_tmp, env={"PYTHONPYCACHEPREFIX": str(prefix)})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert not list(prefix.rglob("forged*"))


def test_run_as_a_module_it_is_what_the_environment_says_and_isolates_itself_afterwards(
    launchers: dict[str, Path], project: Path, tmp_path: Path
) -> None:
    """Documented: `python -m netsandbox` finds the package as Python finds every package. Ours, once found, starts
    again in isolation, so that no other module of the folder is imported."""
    python = launchers["pip"].parent / "python"
    assert run(python, "-m", "netsandbox", "--version", cwd=tmp_path).stdout == VERSION
    run(python, "-m", "netsandbox", "--version", cwd=project)
    assert (project.parent / "canary").exists()
    (project.parent / "canary").unlink()
    isolated = run(python, "-I", "-m", "netsandbox", "--version", cwd=project, env={"PYTHONPATH": "."})
    assert isolated.stdout == VERSION
    shutil.rmtree(project / "netsandbox")
    for name in ("netsandbox", "os", "encodings", "sitecustomize", "usercustomize"):
        (project / f"{name}.py").unlink(missing_ok=True)
    assert run(python, "-m", "netsandbox", "explain", "example.com", cwd=project).returncode == 1
    assert not (project.parent / "canary").exists()


def test_a_launcher_without_an_installation_says_what_to_do(launchers: dict[str, Path], tmp_path: Path) -> None:
    alone = Path(shutil.copy(launchers["pip"], tmp_path / "netsandbox"))
    done = run(alone, "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "no Python 3.11 or newer with the package was found beside" in done.stderr


def test_an_interpreter_of_the_system_serves_an_installation_that_has_none(
    launchers: dict[str, Path], tmp_path: Path
) -> None:
    """As `pip install --user` and Debian's /usr/local have it."""
    version = next((f"3.{minor}" for minor in range(11, 20) if os.access(f"/usr/bin/python3.{minor}", os.X_OK)), None)
    if version is None:
        pytest.skip("/usr/bin has no Python 3.11 or newer")
    home = launchers["pip"].parents[1] / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for folder in ("lib/python{}/site-packages", "lib64/python{}/site-packages", "lib/python{}/dist-packages"):
        prefix = tmp_path / folder.replace("/", "-")
        shutil.copytree(home, prefix / folder.format(version))
        (prefix / "bin").mkdir()
        own = shutil.copy(launchers["pip"], prefix / "bin" / "netsandbox")
        done = run(Path(own), "--version", cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, VERSION, "")
