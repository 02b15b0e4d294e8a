"""Programs that talk over Unix sockets work inside a session with their defaults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_closed_files import put
from tests.rig.tools import Tools
from tests.rig.world import need

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]


def shell(netsandbox: Any, text: str, *options: str, **env: str) -> str:
    """What the script printed; its commands must succeed."""
    run = netsandbox("run", *options, "--", "sh", "-ec", text, env=env, timeout=60)
    assert run.returncode == 0, (run.stdout, run.stderr)
    out: str = run.stdout
    return out


def test_redis(netsandbox: Any) -> None:
    need("redis-server", "redis-server")
    text = """
redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --daemonize yes >/dev/null
for turn in 1 2 3 4 5 6 7 8 9 10; do redis-cli -s redis.sock ping 2>/dev/null | grep -q PONG && break; sleep 0.3; done
redis-cli -s redis.sock set n 42 && redis-cli -s redis.sock get n
redis-cli -s redis.sock shutdown nosave
"""
    assert shell(netsandbox, text).split() == ["OK", "42"]


def test_tmux(netsandbox: Any) -> None:
    need("tmux", "tmux")
    text = """
tmux -f /dev/null new-session -d 'echo from-tmux >made; tmux wait-for -S done; sleep 20'
tmux wait-for done
tmux list-sessions -F '#{session_windows}'
tmux kill-server
cat made
"""
    assert shell(netsandbox, text).split() == ["1", "from-tmux"]


MULTIPROCESSING = """
import multiprocessing as m
def double(n): return n * 2
if __name__ == "__main__":
    with m.get_context("forkserver").Pool(2) as pool: print(sum(pool.map(double, range(10))))
    with m.Manager() as manager:
        kept = manager.dict(a=1); kept["b"] = 2
        print(sorted(kept.items()))
"""


def test_multiprocessing(netsandbox: Any) -> None:
    put(netsandbox.home(), "work/many.py", MULTIPROCESSING)
    assert shell(netsandbox, f"{netsandbox.python} many.py") == "90\n[('a', 1), ('b', 2)]\n"


def test_tsx(netsandbox: Any, tools: Tools) -> None:
    home = netsandbox.home()
    put(home, "work/hello.ts", "const n: number = 42; console.log(n)\n")
    folder = tools.of_npm("tsx@4", home.identity)
    run = netsandbox("run", "--allow-read", Path(folder).parent, "--", f"{folder}/tsx", "hello.ts", timeout=60)
    assert run.stdout == "42\n", run.stderr


WSGI = 'def app(env, start): start("200 OK", []); return [b"from-gunicorn"]\n'


def test_gunicorn(netsandbox: Any, tools: Tools) -> None:
    home = netsandbox.home()
    need("curl", "curl")
    put(home, "work/wsgi.py", WSGI)
    folder = tools.of_pip("gunicorn", home.identity)
    text = f"""
PYTHONPATH={folder} {netsandbox.python} -m gunicorn -b unix:app.sock wsgi:app --pid app.pid 2>log &
curl -s --retry 20 --retry-connrefused --retry-all-errors --retry-delay 1 --unix-socket app.sock http://x/
kill $(cat app.pid)
"""
    assert shell(netsandbox, text, "--allow-read", folder) == "from-gunicorn"


def test_dmypy(netsandbox: Any, tools: Tools) -> None:
    home = netsandbox.home()
    put(home, "work/one.py", "n: int = 42\n")
    folder = tools.of_pip("mypy", home.identity)
    text = f"""
export PYTHONPATH={folder}
{netsandbox.python} -m mypy.dmypy run -- one.py
{netsandbox.python} -m mypy.dmypy stop
"""
    said = shell(netsandbox, text, "--allow-read", folder)
    assert "no issues found in 1 source file" in said


def test_ssh_agent(netsandbox: Any) -> None:
    need("ssh-agent", "openssh-client")
    text = """
eval "$(ssh-agent -s)" >/dev/null
ssh-keygen -q -t ed25519 -N '' -C made-inside -f key
ssh-add -q key
ssh-add -l
ssh-agent -k >/dev/null
"""
    assert "made-inside" in shell(netsandbox, text)


def test_gpg_agent(netsandbox: Any) -> None:
    need("gpg-agent", "gpg-agent")
    text = """
gpg --batch --quiet --passphrase '' --quick-gen-key me@example.org ed25519 sign
echo signed >text
gpg --batch --quiet --clearsign text
gpg --verify text.asc 2>&1
gpgconf --kill gpg-agent
"""
    assert "Good signature" in shell(netsandbox, text)


def test_dbus_daemon(netsandbox: Any) -> None:
    need("dbus-daemon", "dbus-daemon")
    need("dbus-send", "dbus-bin")
    text = """
dbus-daemon --session --fork --address="unix:path=$PWD/bus" --print-pid >pid
export DBUS_SESSION_BUS_ADDRESS="unix:path=$PWD/bus"
dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames
kill $(cat pid)
"""
    assert "org.freedesktop.DBus" in shell(netsandbox, text)


POSTGRES = """
initdb -D data -A peer -N >/dev/null
pg_ctl -D data -w -t 30 -o "-k /tmp" start >log || { cat log; exit 1; }
psql -h /tmp -d postgres -Atc "create table t (n int); insert into t values (42); select n from t"
pg_ctl -D data -m immediate stop >/dev/null
"""


@pytest.mark.ordinary_user(only=True)
def test_postgresql(netsandbox: Any) -> None:
    """As root it refuses to run. It listens on localhost too, and asks the kernel for the account of its peer. Debian's
    folder for its socket belongs to another account, with a session or without."""
    home = netsandbox.home()
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    programs = str(folders[-1]) if folders else os.path.dirname(need("initdb", "postgresql"))
    env = {"PATH": f"{programs}:{home.identity.path}"}
    assert "42" in shell(netsandbox, POSTGRES, **env).split()


def test_chromium(netsandbox: Any) -> None:
    home, chromium = netsandbox.home(), need("chromium", "chromium")
    put(home, "work/page.html", "<p id=p></p><script>document.getElementById('p').textContent = 6 * 7</script>")
    text = f"{chromium} --headless --no-sandbox --disable-gpu --dump-dom file://$PWD/page.html"
    assert '<p id="p">42</p>' in shell(netsandbox, text)
