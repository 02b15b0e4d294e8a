"""A real browser without a window, driven by the DevTools protocol over two pipes: no port, no package of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from typing import Any

import pytest

from tests.rig.patience import WaitedInVain
from tests.rig.workshop import make_folder, remove_folder

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = (
    "--headless",
    "--no-sandbox",  # it runs as root here, and in containers
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--ignore-certificate-errors",  # servers of tests have certificates of a test's authority
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0


class BrowserError(AssertionError):
    """The browser answered a call with an error."""


class Browser:
    """Tabs of one profile: they share cookies as a person's tabs do."""

    def __init__(self, program: str) -> None:
        self._profile = make_folder()
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._number = 0
        self._unread = b""
        # The browser's ends are wanted at 3 and 4; the shell puts them there, wherever they are now.
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        command = ["bash", "-c", shell, "bash", program, *SWITCHES, f"--user-data-dir={self._profile}", "about:blank"]
        home = str(self._profile)
        environment = {"HOME": home, "PATH": os.environ["PATH"], "TMPDIR": home}
        self._process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def open(self, url: str) -> Tab:
        """A new tab that begins to load URL."""
        target = self.call("Target.createTarget", url=url)["targetId"]
        return Tab(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while (answer := self._read(deadline)).get("id") != self._number:
            continue
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        with contextlib.suppress(OSError, BrowserError, WaitedInVain, pytest.fail.Exception):
            self.call("Browser.close")
        for fd in (self._in, self._out):
            os.close(fd)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        remove_folder(self._profile)

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if not select.select([self._in], [], [], max(0, deadline - time.monotonic()))[0]:
                raise WaitedInVain("the browser does not answer")
            data = os.read(self._in, 1 << 16)
            if not data:
                pytest.fail(f"the browser ended with {self._process.wait(10)}")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        options = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self._browser.call("Runtime.evaluate", self._session, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """The first value of EXPRESSION that is true; a page that is being loaded has none."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            # Between two pages a tab has no place where an expression could be evaluated, and the browser says so.
            with contextlib.suppress(BrowserError):
                if value := self.evaluate(expression):
                    return value
            time.sleep(0.05)
        raise WaitedInVain(
            f"{expression} did not become true; the page says {self.evaluate('document.body.innerText')!r}"
        )


def started() -> Browser:
    """A browser; without one the test is skipped. The caller closes it."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium (package chromium)")
    return Browser(program)
