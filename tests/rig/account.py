"""Who runs a session: the caller, and, when the caller is root, an ordinary account as well.

A test marked `ordinary_user` runs twice under root: once as root, once as the account `netsandbox-test`; with
`only=True` as that account only. For anyone else it runs once, as himself. The account cannot read a checkout or an
interpreter in the home of root, so the product is staged in a directory that it can read and run by an interpreter that
it can execute.

What is run is compiled beforehand, as an installation is. The product staged for the account is read-only for it, so
its bundles of bytecode (`runtime/imports.py`) are written here: without them a start takes four times as long.
"""

from __future__ import annotations

import compileall
import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.workshop import ROOT

ACCOUNT = "netsandbox-test"
PACKAGES = (
    "netsandbox",
    "proxy/netsandbox_proxy",
    "dns/netsandbox_dns",
    "portmap/netsandbox_portmap",
    "interpose/netsandbox_interpose",
)
# The Python that runs the product, where it is not the one that runs the tests (scripts/other-pythons).
PRODUCT_PYTHON = os.environ.get("NETSANDBOX_TEST_PYTHON") or sys.executable
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INTERPRETERS = (
    "/usr/bin/python3.13",
    "/usr/bin/python3.12",
    "/usr/bin/python3.11",
    "/usr/local/bin/python3",
    "/usr/bin/python3",
)
# The subcommands that tests start most.
BUNDLED = (
    ("run", "--", "true"),
    ("ps", "--json"),
    ("explain", "example.com:443"),
    ("audit", "show"),
    ("trust", "--list"),
)


@dataclass(frozen=True)
class Identity:
    """An account with the interpreter, the import path and the PATH that work for it."""

    name: str
    uid: int
    gid: int
    python: str
    pythonpath: str
    path: str

    @property
    def command(self) -> list[str]:
        """The command line as the installed launcher starts it; `python -m netsandbox` would start Python twice."""
        package = Path(self.pythonpath.partition(os.pathsep)[0], "netsandbox")
        return [self.python, "-I", "-S", str(package / "__main__.py")]

    @property
    def is_caller(self) -> bool:
        return self.uid == os.geteuid()

    @property
    def popen(self) -> dict[str, object]:
        """Keyword arguments that make subprocess run as this account."""
        if self.is_caller:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    @property
    def prefix(self) -> list[str]:
        """Words that do the same before a command: to start a process as another account, subprocess copies that of the
        tests, which is large."""
        ids = (f"--reuid={self.uid}", f"--regid={self.gid}")
        return [] if self.is_caller else ["/usr/bin/setpriv", *ids, "--clear-groups"]


def import_path() -> str:
    return os.pathsep.join(str(ROOT / Path(package).parent) for package in PACKAGES)


@pytest.fixture(scope="session")
def caller() -> Identity:
    """The account that runs the tests."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=2)
    path = f"{Path(sys.executable).parent}:{SYSTEM_PATH}"
    name = pwd.getpwuid(os.geteuid()).pw_name
    return Identity(name, os.geteuid(), os.getegid(), PRODUCT_PYTHON, import_path(), path)


@pytest.fixture(scope="session")
def ordinary_user(caller: Identity, workshop: Path) -> Identity:
    """An account without privileges: the caller himself, unless he is root."""
    if caller.uid != 0:
        return caller
    entry = _account()
    site = _stage(workshop / "site")
    python = next((c for c in (PRODUCT_PYTHON, *INTERPRETERS) if _runs(c, entry)), None)
    if python is None:
        pytest.skip(f"no Python 3.11 or newer that the account {ACCOUNT} can execute")
    subprocess.run([python, "-m", "compileall", "-qq", str(site)], check=False)
    identity = Identity(ACCOUNT, entry.pw_uid, entry.pw_gid, python, str(site), SYSTEM_PATH)
    _write_bundles(identity, workshop)
    return identity


def _write_bundles(identity: Identity, workshop: Path) -> None:
    """A start by root adds to the bundles the modules that it needs."""
    with tempfile.TemporaryDirectory(dir=workshop) as home:
        for arguments in BUNDLED:
            subprocess.run(
                [*identity.command, *arguments],
                env={"HOME": home, "XDG_STATE_HOME": home, "XDG_RUNTIME_DIR": home, "PATH": SYSTEM_PATH},
                cwd=home,
                capture_output=True,
                check=False,
                timeout=60,
            )


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        pass
    useradd = shutil.which("useradd", path=SYSTEM_PATH)
    if useradd is None:
        pytest.skip("useradd is missing, so no ordinary account can be made (package passwd)")
    nowhere = ("--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin")
    command = [useradd, "--system", "--user-group", *nowhere, ACCOUNT]
    with open(__file__) as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # another worker may make it at this moment
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        pytest.skip(f"useradd failed: {made.stderr.strip()}")


def _stage(site: Path) -> Path:
    site.mkdir(mode=0o755)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, site / Path(package).name)  # with the bytecode that `caller` made
    spec = importlib.util.find_spec("dnslib")
    if spec is not None and spec.origin is not None:
        shutil.copytree(Path(spec.origin).parent, site / "dnslib")
    for path in (site, *site.rglob("*")):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.stat().st_mode & 0o100 else 0o044))
    return site


def _runs(python: str, entry: pwd.struct_passwd) -> bool:
    check = "import sys; raise SystemExit(sys.version_info < (3, 11))"
    try:
        done = subprocess.run(
            [python, "-c", check], user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd="/", env={}, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


@pytest.fixture
def identity(request: pytest.FixtureRequest) -> Identity:
    """The account that this run of the test speaks for."""
    chosen: Identity = request.getfixturevalue(getattr(request, "param", "caller"))
    return chosen


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("ordinary_user")
    if mark is not None and "identity" in metafunc.fixturenames and os.geteuid() == 0:
        accounts = {"ordinary_user": "user"} if mark.kwargs.get("only") else {"caller": "root", "ordinary_user": "user"}
        metafunc.parametrize("identity", list(accounts), indirect=True, ids=list(accounts.values()))
