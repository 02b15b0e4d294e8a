"""How programs come to trust a session's CA: by the list that is shown over the system's, by variables, by Java's key
store. Each row of the table in docs/inspection.md is run here; the server's requests tell who came through."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netsandbox.policy.trust_places import VARIABLES
from tests.integration.test_inspection import Inspecting
from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority
from tests.rig.command import CommandLine
from tests.rig.https_canary import https_canary
from tests.rig.tools import Tools
from tests.rig.trusting_programs import JAVA, PROGRAMS, UNCLEAR, environment, folder_of
from tests.rig.workshop import ROOT
from tests.rig.world import ALLOWED

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp"),
    pytest.mark.usefixtures("user_namespaces"),
]
pytest.importorskip("mitmproxy")

EACH = """
export PYTHONPATH=$MODULES
for name in */; do
    (cd $name && echo "== $name" && sh ./command) 2>&1 </dev/null
done
"""
UNSET = " ".join(f"-u {name.decode()}" for name in (*VARIABLES, b"UV_SYSTEM_CERTS"))


class Trial:
    """A session that runs every program once, each in a folder of its own."""

    def __init__(self, netsandbox: CommandLine, tools: Tools, inspecting: Inspecting) -> None:
        self._home = netsandbox.home()
        self._tools = tools
        self._inspecting = inspecting

    def came_through(self, before: str = "") -> tuple[set[str], str]:
        """The programs whose request reached the server; *before* is put before each command."""
        server, identity = self._inspecting.server, self._home.identity
        server.requests.clear()
        for program in PROGRAMS:
            url = f"{self._inspecting.url}/{folder_of(program)}"
            words = [word.replace("URL", url).replace("PYTHON", identity.python) for word in program.command]
            self._put(f"{folder_of(program)}/command", f"{before} {' '.join(map(quoted, words))}\n")
        self._put("java/Get.java", JAVA)
        variables = environment(self._tools, identity)
        rules = ["--allow-http", f"{self._inspecting.url}/**"]
        for path in (*variables["MODULES"].split(":"), variables["UV"]):
            rules += ["--allow-read", path]
        run = self._inspecting.run("sh", "-c", EACH, rules=(*rules,), variables=variables, timeout=240)
        reached = {request.split("/")[1] for request in server.requests}
        return {each.name for each in PROGRAMS if folder_of(each) in reached}, run.stdout + run.stderr

    def _put(self, name: str, text: str) -> None:
        path = self._home.work / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.parent.chmod(0o777)


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


@pytest.fixture
def trial(netsandbox: CommandLine, tools: Tools, authority: Authority, ca: CertificateAuthority) -> Iterator[Trial]:
    with https_canary(ca.issue(ALLOWED)) as server:
        yield Trial(netsandbox, tools, Inspecting(netsandbox, authority, ca, server))


@pytest.mark.ordinary_user(only=True)
def test_every_program_trusts_the_session(trial: Trial) -> None:
    """In the default mode of files."""
    came, output = trial.came_through()
    assert came == {each.name for each in PROGRAMS}, output


@pytest.mark.ordinary_user(only=True)
def test_some_trust_the_file_alone(trial: Trial) -> None:
    came, output = trial.came_through(f"env {UNSET}")
    assert came - UNCLEAR == {each.name for each in PROGRAMS if each.by_file}, output


@pytest.mark.open_files
@pytest.mark.backend("broker")
def test_some_trust_the_variables_alone(trial: Trial) -> None:
    """The backend `broker` can show nothing over the system's files."""
    came, output = trial.came_through()
    assert came == {each.name for each in PROGRAMS if each.by_variable}, output


@pytest.mark.open_files
def test_the_page_has_this_table() -> None:
    page = Path(ROOT / "docs" / "inspection.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+?) \| (yes|) ?\| (yes|) ?\|$", page, re.MULTILINE)
    shown = {name: (file == "yes", variable == "yes") for names, file, variable in rows for name in names.split(", ")}
    assert shown == {each.name: (each.by_file, each.by_variable) for each in PROGRAMS}
