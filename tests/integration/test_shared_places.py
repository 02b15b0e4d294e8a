"""Sessions at the same time share what they hide and hold; the end of one, however it comes, opens nothing to another
and leaves nothing on the host."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

SECRET = "canary-9d20"
# Says what it sees and what it can move, as often as it is asked.
LOOK = """
import errno, os, sys
def tried(action):
    try:
        return action()
    except OSError as error:
        return errno.errorcode[error.errno]
home = os.environ["HOME"]
for _ in sys.stdin:
    print(os.listdir(home + "/.ssh"), tried(lambda: open(home + "/.netrc").read()),
          tried(lambda: os.rename(home + "/.ssh", home + "/other")), tried(lambda: os.unlink(home + "/.kube")),
          tried(lambda: os.unlink(home + "/.netrc")), "seen", flush=True)
"""
CLOSED = b"[] EACCES EBUSY EBUSY EBUSY seen"


def look(session: Any) -> bytes:
    session.process.stdin.write(b"\n")
    session.process.stdin.flush()
    found: bytes = session.read_until(b"seen")
    return found.strip()


@pytest.fixture
def places(netsandbox: Any) -> Path:
    """A folder, a file and a link with secrets behind them."""
    home: Path = netsandbox.home().path
    (home / ".ssh").mkdir()
    (home / "kube").mkdir()
    (home / ".ssh" / "id").write_text(SECRET)
    (home / "kube" / "config").write_text(SECRET)
    (home / ".netrc").write_text(SECRET)
    (home / ".kube").symlink_to("kube")
    for path in (".ssh", ".ssh/id", ".netrc", "kube", "kube/config"):
        os.chown(home / path, netsandbox.identity.uid, netsandbox.identity.gid)
    return home


@pytest.mark.attack(154)
def test_154_a_session_that_is_killed_opens_no_secret_to_another_and_leaves_no_mount(
    netsandbox: Any, leftovers: Any, places: Path
) -> None:
    before = leftovers()
    command = ("run", "--", netsandbox.python, "-c", LOOK)
    first, second = (netsandbox.spawn(*command, stdin=-1) for _ in range(2))
    assert [look(first), look(second)] == [CLOSED, CLOSED]
    watch = leftovers.watch(first)
    first.signal(signal.SIGKILL)
    first.wait()
    watch.assert_gone(within=10)
    assert look(second) == CLOSED
    third = netsandbox.spawn(*command, stdin=-1)
    assert look(third) == CLOSED
    for session in (second, third):
        session.process.stdin.close()
        assert session.wait() == 0
    assert not {kind: left for kind, left in (leftovers() - before).items() if kind == "mounts"}
    assert (places / ".ssh" / "id").read_text() == (places / ".kube" / "config").read_text() == SECRET
    assert (places / ".netrc").read_text() == SECRET
