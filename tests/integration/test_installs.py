"""The wheels of a release: no compiler and no newer C library is needed, and a fresh account can install them.

One wheel is built here, for this machine. `make release` lets the same tests check all that it built.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netsandbox import __version__
from tests.rig.account import Identity
from tests.rig.mac_wheel import ROOT, build, copy_sources
from tests.rig.mach_o_reader import lief
from tests.rig.workshop import make_home, remove_folder

pytestmark = [
    pytest.mark.open_files,
    pytest.mark.skipif(
        sys.platform != "linux", reason="a Mac's wheel is tested by tests/interpose/test_macos_wheel.py"
    ),
    pytest.mark.ordinary_user(only=True),
]

RELEASE = os.environ.get("NETSANDBOX_RELEASE")  # a folder of `make release`
HERE = f"manylinux_2_17_{os.uname().machine}"
MACHINES = {"x86_64": "X86_64", "aarch64": "AARCH64"}
LIBRARIES = {
    "manylinux": {"libc.so.6", "libdl.so.2", "ld-linux-aarch64.so.1"},
    "musllinux": {"libc.so"},
}
PROGRAMS = ("netsandbox", "netsandbox-init", "netsandbox-broker")
LOADED = ("_native.abi3.so", "libnetsandbox_interpose.so")
# No compiler, no pip, no other Python.
TOOLS = (
    *("sh", "awk", "basename", "cat", "dirname", "env", "id", "ln", "ls", "mkdir", "readlink", "rm", "sed", "true"),
    *("uname", "touch", "tr", "ldconfig"),
)
MARKS = ".local/share/netsandbox/"  # what an installation must not trust, for the next one
INSTALL = ROOT / "scripts" / "install.sh"


@pytest.fixture(scope="module")
def wheels(workshop: Path) -> list[Path]:
    if RELEASE:
        return [Path(shutil.copy(path, workshop)) for path in sorted(Path(RELEASE).glob("*linux*.whl"))]
    if os.uname().machine not in MACHINES:
        pytest.skip(f"no wheel is released for {os.uname().machine}")
    pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
    return [build(copy_sources(workshop / "a tree"), workshop / "dist", HERE)]


@pytest.fixture(scope="module")
def wheel(wheels: list[Path]) -> Path:
    """The one for this machine."""
    (found,) = (path for path in wheels if HERE in path.name)
    return found


def native_files(wheel: Path, folder: Path) -> Iterator[Path]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if archive.read(name).startswith(b"\x7fELF"):
                yield Path(archive.extract(name, folder / wheel.stem))


def test_what_is_compiled_asks_for_no_more_than_the_tag_allows(wheels: list[Path], tmp_path: Path) -> None:
    assert len(wheels) == (4 if RELEASE else 1)
    for wheel in wheels:
        _, python, abi, platform = wheel.stem.rsplit("-", 3)
        family, major, minor, machine = platform.split("_", 3)
        assert (python, abi) == ("cp311", "abi3")
        files = {path.name: path for path in native_files(wheel, tmp_path)}
        assert set(files) == {*PROGRAMS, *LOADED}
        for name, path in files.items():
            binary = lief().ELF.parse(str(path))
            assert binary.header.machine_type.name == MACHINES[machine]
            versions = {aux.name for one in binary.symbols_version_requirement for aux in one.get_auxiliary_symbols()}
            if name in PROGRAMS or family == "musllinux":
                assert versions == set()
            assert not binary.has_interpreter
            assert set(binary.libraries) <= (set() if name in PROGRAMS else LIBRARIES[family])
            numbers = [tuple(map(int, version.removeprefix("GLIBC_").split("."))) for version in versions]
            assert all(number <= (int(major), int(minor)) for number in numbers), versions


def test_nothing_in_them_tells_where_they_were_built(wheels: list[Path], tmp_path: Path, workshop: Path) -> None:
    for wheel in wheels:
        for path in native_files(wheel, tmp_path):
            content = path.read_bytes()
            places = str(ROOT), str(workshop), f"{Path.home()}/"
            assert [place for place in places if place.encode() in content] == []


def test_they_bring_the_pytest_plugin(wheels: list[Path]) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (listed,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
            assert "[pytest11]\nnetsandbox = netsandbox.testing.plugin\n" in archive.read(listed).decode()
            assert "netsandbox/testing/plugin.py" in archive.namelist()


# A fresh account


@pytest.fixture
def home(identity: Identity) -> Iterator[Path]:
    folder = make_home(identity.uid, identity.gid)
    for inner in folder.iterdir():
        inner.rmdir()
    yield folder
    remove_folder(folder)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(identity: Identity, home: Path, workshop: Path) -> Run:
    """A command of the account, which has no settings, and no compiler on its PATH."""
    tools = workshop / "tools"
    tools.mkdir(exist_ok=True)
    for name in TOOLS:
        found = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
        if found and not (tools / name).is_symlink():
            (tools / name).symlink_to(found)
    base = {"HOME": str(home), "PATH": f"{home}/.local/bin:{tools}", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}

    def done(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*identity.prefix, *command],
            cwd=home,
            env={**base, "PYTHON": identity.python, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    if done(identity.python, "-I", "-c", "import ensurepip").returncode != 0:
        pytest.skip(f"{identity.python} has no venv module (package python3-venv)")
    return done


@pytest.fixture
def script(workshop: Path) -> Path:
    return Path(shutil.copy(INSTALL, workshop))


def files_left(home: Path) -> set[str]:
    """Without the logs, and what the tests and pip's cache left."""
    state = ".local/state/netsandbox/"
    found = {str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir()}
    assert any(name.startswith(f"{state}sessions/") and name.endswith("audit.jsonl") for name in found)
    return {name for name in found if not name.startswith((f"{state}sessions/", MARKS, ".cache/"))}


@pytest.mark.usefixtures("user_namespaces")
def test_the_script_installs_upgrades_and_removes_all_but_the_logs(
    script: Path, wheel: Path, home: Path, run: Run
) -> None:
    done = run("sh", script, wheel)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert f"version {__version__} is installed: {home}/.local/bin/netsandbox\n" in done.stderr
    assert "PATH" not in done.stderr
    assert (home / ".local/share/man/man1/netsandbox.1").read_bytes() == (ROOT / "docs" / "netsandbox.1").read_bytes()
    session = run("netsandbox", "run", "-q", "--", "true")
    assert session.returncode == 0, session.stderr
    assert run("netsandbox", "man").stdout.startswith("NETSANDBOX(1)\n")

    (stale,) = (home / ".local/share/netsandbox-venv/lib").glob("python3*/site-packages/netsandbox/cli/man.py")
    stale.unlink()
    again = run("sh", script, wheel)
    assert again.returncode == 0, again.stderr
    assert stale.exists()

    removed = run("sh", script, "--uninstall")
    assert removed.returncode == 0, removed.stderr
    assert removed.stdout.startswith("The logs are kept in ~/.local/state/netsandbox.\nThe list of folders that")
    assert files_left(home) == set()
    assert removed.stderr.endswith("netsandbox: netsandbox is removed\n")
    nothing = run("sh", script, "--uninstall").stderr
    assert nothing == f"netsandbox: nothing is installed in {home}/.local/share/netsandbox-venv\n"


def test_an_installation_that_fails_leaves_no_environment(script: Path, home: Path, run: Run) -> None:
    done = run("sh", script, "no-such-package")
    assert done.returncode == 1
    assert "no-such-package could not be installed in " in done.stderr
    assert not (home / ".local/share/netsandbox-venv").exists()


@pytest.mark.usefixtures("user_namespaces")
def test_uv_installs_it_and_uninstall_names_uvs_command(
    wheel: Path, home: Path, run: Run, identity: Identity, workshop: Path
) -> None:
    from uv import find_uv_bin

    folder, without = workshop / "uv-program", workshop / "overrides.txt"  # other tests may have linked uv there
    folder.mkdir(exist_ok=True)
    uv = Path(shutil.copy(find_uv_bin(), folder))
    without.write_text("cffi; python_version < '3'\ndnslib; python_version < '3'\n")  # nothing is downloaded
    options = ("--offline", "--no-index", "--overrides", without, "--python", identity.python)
    done = run(uv, "tool", "install", *options, wheel)
    assert done.returncode == 0, done.stderr
    session = run("netsandbox", "run", "-q", "--", "true")
    assert session.returncode == 0, session.stderr
    assert run("netsandbox", "man").stdout.startswith("NETSANDBOX(1)\n")
    assert "\nNow remove the package: uv tool uninstall netsandbox\n" in run("netsandbox", "uninstall", "--yes").stdout
    assert run(uv, "tool", "uninstall", "netsandbox").returncode == 0
    assert {name for name in files_left(home) if "/uv/" not in name} == set()


def test_the_script_says_what_is_missing_and_touches_no_file_of_others(script: Path, home: Path, run: Run) -> None:
    done = run("sh", script, PYTHON="")
    assert done.returncode == 1
    assert "Python 3.11 or newer with its venv module is needed" in done.stderr
    foreign = home / ".local" / "bin" / "netsandbox"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("of another installer")
    done = run("sh", script)
    assert (done.returncode, foreign.read_text()) == (1, "of another installer")
    assert "was not made by this script; remove it first" in done.stderr
    assert "is no option" in run("sh", script, "--remove").stderr
    assert "run this without sudo" in run("sh", script, HOME="/proc").stderr
    assert not (home / ".local" / "share").exists()


NOTING_PYTHON = """\
#!/bin/sh
for last; do :; done
case "$*" in
    *'-m venv'*) mkdir -p "$last/bin" && ln -sf "$0" "$last/bin/python" ;;
    *'-m pip'*) echo "$last" >>"$HOME/sources" && exit 1 ;;
esac
"""


@pytest.mark.attack(215)
def test_a_folder_of_the_programs_name_is_not_what_the_script_installs(script: Path, home: Path, run: Run) -> None:
    """It may be started in a project, whose files would then be run."""
    python = home / "python"
    python.write_text(NOTING_PYTHON)
    python.chmod(0o755)
    (home / "netsandbox").mkdir()
    for sources in ((), ("netsandbox",)):
        assert "could not be installed" in run("sh", script, *sources, PYTHON=str(python)).stderr
    assert (home / "sources").read_text().splitlines() == ["netsandbox", f"{home}/netsandbox"]


def test_the_script_is_plain_sh() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    scripts = [INSTALL, *(ROOT / "scripts" / "action").iterdir()]
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert done.stdout == ""


# The GitHub Action: its steps as a runner starts them, with inputs as variables

ACTION = (ROOT / "action.yml").read_text("utf-8")
STEPS = re.findall(r"^      run: '(.*)'$", ACTION, re.M)
DEFAULTS = dict(re.findall(r"^        (NETSANDBOX_\w+): \$\{\{ inputs\.([\w-]+) \}\}$", ACTION, re.M))
CLEAN = """
git init -q . && git add . && git -c user.name=a -c user.email=a@example.com commit -qm x --allow-empty && git status
id && getent passwd root && python3 -m venv --without-pip v && python3 -m unittest 2>&1 | tail -1
command -v npm && npm init -y && npm ls
python3 -m pip --version || true
curl --version
"""


@pytest.fixture
def action(run: Run, home: Path, wheel: Path, workshop: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The second step with these inputs, after the first one."""
    place = workshop / "action"
    if not place.exists():
        shutil.copytree(ROOT / "scripts", place / "scripts")
    shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    files = {f"GITHUB_{name}": str(home / name.lower()) for name in ("PATH", "OUTPUT", "STEP_SUMMARY")}
    base = {
        **files,
        "GITHUB_ACTION_PATH": str(place),
        "RUNNER_TEMP": str(home / "temp"),
        "CI": "true",
        "PATH": "/usr/bin:/bin",
    }
    made = run("mkdir", home / "temp", home / "work", PATH="/bin")
    assert made.returncode == 0, made.stderr
    installed = run(*shell, STEPS[0], **base, NETSANDBOX_SOURCE=str(wheel))
    assert installed.returncode == 0, installed.stderr
    base["PATH"] = f"{(home / 'path').read_text().strip()}:{base['PATH']}"

    def step(**inputs: str) -> subprocess.CompletedProcess[str]:
        given = {name: inputs.get(of.replace("-", "_"), "") for name, of in DEFAULTS.items()}
        return run("env", "-C", str(home / "work"), *shell, STEPS[1], **base, **given)

    return step


def test_no_input_of_the_action_becomes_text_of_a_script() -> None:
    """Attack: `allow: $(curl …)`. Each use of an input is the whole value of a variable or of a setting."""
    uses = [line.strip() for line in ACTION.splitlines() if "${{" in line]
    assert all(re.fullmatch(r"[\w-]+: \$\{\{ (inputs|steps\.run\.outputs)\.[\w-]+ \}\}", use) for use in uses)
    assert len(STEPS) == ACTION.count(" run: ") == 2


@pytest.mark.usefixtures("user_namespaces")
def test_the_action_runs_a_command_and_fails_if_it_was_refused_something(
    action: Callable[..., subprocess.CompletedProcess[str]], home: Path
) -> None:
    clean = action(run=CLEAN, fail_on_denied="true")
    assert clean.returncode == 0, clean.stdout + clean.stderr  # the C library's own sockets are no denials
    hostile = 'echo "::error::mine"; getent hosts example.org || true; echo "$NETSANDBOX_RUN" > left'
    refused = action(run=hostile, allow="example.com\n\n$(touch injected)", options="--name x", fail_on_denied="true")
    assert refused.returncode == 2
    assert "$(touch injected)" in refused.stderr
    refused = action(run=hostile, allow="example.com\nexample.net", options="--name x\n  -v", fail_on_denied="true")
    assert refused.returncode == 1, refused.stderr
    began, _, rest = refused.stdout.partition("::error::mine")
    word = began.strip().removeprefix("::stop-commands::")
    assert len(word) == 32
    assert f"\n::{word}::\n::error::netsandbox refused something" in rest
    assert "example.org" in refused.stdout
    assert "example.com, example.net" in refused.stderr
    assert (home / "work/left").read_text() == "\n"
    assert "\n    Denied" in (home / "step_summary").read_text()
    log = Path((home / "output").read_text().splitlines()[-1].removeprefix("audit-log="))
    assert '"example.org"' in log.read_text()
    assert action(run=hostile, fail_on_denied="false").returncode == 0
    assert action(run="exit 7", fail_on_denied="true").returncode == 7
    assert not (home / "work/injected").exists()
