"""Protected shells and env hand the library on, though dyld takes it from them: real chains of real programs, on Linux,
where programs/dyld.c takes it away (attack 98). Each chain ends in a server that listens on port 3000."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interpose.conftest import PROGRAMS, SOURCES
from tests.rig.mac_doors import compile_library

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")

TCP = 6
SERVER = {
    "node": """require("net").createServer().listen(3000, "127.0.0.1", function () {
      console.log("serves", this.address().port, process.argv.slice(2).join());
      this.close();
    });""",
    "python3": """import socket, sys
with socket.create_server(("127.0.0.1", 3000)) as server:
    print("serves", server.getsockname()[1], ",".join(sys.argv[1:]))""",
}
SHELL = "import subprocess; subprocess.run({!r}, shell=True, check=True)"


class Desk:
    """A project whose programs are not the system's: the tools are reached by links of its own."""

    def __init__(self, folder: Path, library: Path, session: Any) -> None:
        self.folder, self.library, self.session = folder, library, session
        self.tools = folder / "tools"
        self.scripts = folder / "node_modules" / ".bin"
        self.tools.mkdir()
        self.scripts.mkdir(parents=True)
        for tool in ("node", "npm", "make"):
            if found := shutil.which(tool):
                (self.tools / tool).symlink_to(found)
        (self.tools / "python3").symlink_to(sys.executable)
        self.script("serve", "#!/usr/bin/env python3\n" + SERVER["python3"])
        self.script("split", "#!/usr/bin/env -S python3 -B\n" + SERVER["python3"])
        self.script("nodeserve", "#!/usr/bin/env node\n" + SERVER["node"])

    def script(self, name: str, text: str) -> None:
        (self.scripts / name).write_text(text)
        (self.scripts / name).chmod(0o755)

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.scripts}:{self.tools}:/usr/bin:/bin"
        injected = {"LD_PRELOAD": str(self.library), "NETSANDBOX_PORT_MAP": str(self.session.path)}
        quiet = {"npm_config_update_notifier": "false", "npm_config_cache": str(self.folder / "cache")}
        environment = {**os.environ, **injected, **quiet, "PATH": path, "HOME": str(self.folder)}
        command = [str(self.tools / tool), *arguments]
        return subprocess.run(
            command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=120
        )

    def expect(self, done: subprocess.CompletedProcess[str], arguments: str = "") -> None:
        """The server came up, and asked the session for its port."""
        assert f"serves 3000 {arguments}".strip() in done.stdout, done.stderr
        assert self.session.requests == [(3000, "127.0.0.1", TCP)]


@pytest.fixture
def desk(tmp_path: Path, bridge_library: Path, stand_in: Callable[..., Any]) -> Desk:
    return Desk(tmp_path, bridge_library, stand_in("port"))


@pytest.fixture(scope="session")
def without_bridge(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same library, but that it changes no arguments."""
    sources = tmp_path_factory.mktemp("unbridged") / "src"
    shutil.copytree(SOURCES, sources)
    text = (sources / "shell_bridge.c").read_text()
    assert text.count("    return 1;\n}\n#endif") == 1
    (sources / "shell_bridge.c").write_text(text.replace("    return 1;\n}\n#endif", "    return 0;\n}\n#endif"))
    return compile_library(compiler, sources, sources.parent, "-DNS_BRIDGE", str(PROGRAMS / "dyld.c"))


COMMANDS = [
    "serve",
    "exec serve",
    "split",
    "python3 node_modules/.bin/serve",
    "true && FOO=1 serve 2>&1 | cat",
    "cd tools; serve > ../out; cat ../out",
    "if true; then python3 node_modules/.bin/serve; fi",
    "cat <<end; python3 node_modules/.bin/serve\n$HOME\nend\n",
    "# a comment\npython3 node_modules/.bin/serve",
]


@pytest.mark.attack(98)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_for_the_shell_keeps_the_library(desk: Desk, command: str) -> None:
    desk.expect(desk.run("python3", "-c", SHELL.format(command)))


@pytest.mark.parametrize("command", COMMANDS[:5])
def test_without_the_bridge_it_is_lost(
    tmp_path: Path, without_bridge: Path, stand_in: Callable[..., Any], command: str
) -> None:
    """So that the tests here are known to be able to fail: the stand-in for dyld does take it away."""
    desk = Desk(tmp_path, without_bridge, stand_in("port"))
    desk.run("python3", "-c", SHELL.format(command))
    assert desk.session.requests == []


@pytest.mark.attack(98)
@pytest.mark.parametrize(
    "command",
    [
        ["{}/node_modules/.bin/serve", "a", "b c"],
        ["{}/node_modules/.bin/split", "a", "b c"],
        ["serve", "a", "b c"],
        ["/usr/bin/env", "python3", "node_modules/.bin/serve", "a", "b c"],
        ["/usr/bin/env", "-i", "PATH={}/tools", "python3", "node_modules/.bin/serve", "a", "b c"],
        ["/usr/bin/env", "-u", "LD_PRELOAD", "sh", "-c", 'serve "$@"', "zero", "a", "b c"],
        ["/bin/sh", "-ec", 'serve "$@"', "zero", "a", "b c"],
    ],
)
def test_env_and_its_scripts_keep_the_library(desk: Desk, command: list[str]) -> None:
    words = [word.format(desk.folder) for word in command]
    desk.expect(desk.run("python3", "-c", f"import subprocess; subprocess.run({words!r})"), "a,b c")


@pytest.mark.parametrize(
    "code",
    [
        'cp.exec("nodeserve a", (e, out) => console.log(out))',
        'cp.spawn("nodeserve", ["a"], {shell: true, stdio: "inherit"})',
        'cp.spawn("nodeserve", ["a"], {stdio: "inherit"})',
        'console.log(cp.execSync("true && nodeserve a").toString())',
    ],
)
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_children_of_node_keep_it(desk: Desk, code: str) -> None:
    desk.expect(desk.run("node", "-e", f'const cp = require("child_process"); {code}'), "a")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_what_make_runs_keeps_it(desk: Desk) -> None:
    (desk.folder / "Makefile").write_text("all:\n\t@true; serve a\n")
    desk.expect(desk.run("make"), "a")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.parametrize("start", ["dev", "outer", "outermost"])
def test_npm_run_keeps_it_however_deep(desk: Desk, start: str) -> None:
    scripts = {"dev": "nodeserve a", "outer": "FOO=1 npm run dev", "outermost": "true && npm run outer"}
    (desk.folder / "package.json").write_text(json.dumps({"name": "desk", "version": "1.0.0", "scripts": scripts}))
    desk.expect(desk.run("python3", "-c", f"import subprocess; subprocess.run(['npm', 'run', {start!r}])"), "a")
