"""The programs that measure localhost: they reach what they say, and count what they say."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.rig.ports import free_port

WRK = """\
Running 2s test @ http://127.0.0.1:20000/small
  1 threads and 16 connections
  Latency Distribution
     50%  120.00us
     99%    1.25ms
  24691 requests in 2.00s, 7.06MB read
Requests/sec:  12345.60
Transfer/sec:      3.53MB
"""


@pytest.fixture
def compiled(bench, tmp_path):
    """`compiled("stream")` is the path of that program."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")

    def build(name):
        source = bench("place").BENCH / f"{name}.c"
        program = tmp_path / name
        strict = ["-Wall", "-Wextra", "-Werror"]
        subprocess.run(
            ["gcc", "-std=gnu11", "-O2", "-pthread", *strict, "-o", str(program), str(source), "-ldl"], check=True
        )
        return str(program)

    return build


@pytest.fixture
def started():
    running = []

    def start(*argv, **how):
        running.append(subprocess.Popen(argv, stdout=subprocess.PIPE, **how))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def said(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30).stdout


def test_without_the_library_both_ways_are_measured_alike(compiled):
    port = str(free_port())
    found = json.loads(said(compiled("interposer"), "connects", "127.0.0.1", port, "127.0.0.1", port, "3"))
    assert [len(found[way]) for way in ("hooked", "real")] == [3, 3]
    assert min(found["hooked"] + found["real"]) > 0


def test_each_port_is_bound_twice(compiled):
    found = json.loads(said(compiled("interposer"), "binds", str(free_port()), "1"))
    assert (len(found["new"]), len(found["again"])) == (1, 1)


def test_a_stream_is_whole_in_both_directions_and_through_the_relay(bench, compiled, started):
    program = compiled("stream")
    server, relay = free_port(), free_port()
    started(program, "serve", str(server))
    started(program, "relay", str(relay), str(server))
    await_port = bench("processes").await_port
    assert await_port(server)
    assert await_port(relay)
    for port in (server, relay):
        for letter in "DU":
            assert float(said(program, "fetch", "127.0.0.1", str(port), letter, "3000001")) > 0


def test_a_named_server_tells_its_name(bench, compiled, started):
    port = free_port()
    process = started(compiled("stream"), "name", str(port), "one")
    assert process.stdout.readline() == b"up\n"
    assert bench("crowd")._ask(port) == "one"
    assert bench("crowd")._ask(free_port()) is None


def test_who_knocks_is_let_in_once_somebody_listens(compiled, started):
    program, port = compiled("stream"), free_port()
    client = started(program, "knock", "127.0.0.1", str(port), "10")
    server = started(program, "listen", stdin=subprocess.PIPE)
    server.stdin.write(b"%d\n" % port)
    server.stdin.flush()
    assert int(server.stdout.readline()) <= int(client.communicate(timeout=15)[0]) + 1_000_000


def test_the_figures_of_wrk_are_read(bench):
    assert bench("publishing").read_wrk(WRK) == (12345.6, 1.25, 24691)


@pytest.mark.parametrize("line", ["  Non-2xx or 3xx responses: 4\n", "  Socket errors: connect 0, read 3\n"])
def test_a_run_of_wrk_with_failures_has_no_figures(bench, line):
    assert bench("publishing").read_wrk(WRK + line) == (None, None, 0)


def test_a_peer_with_a_long_name_is_called_by_a_short_one(bench):
    figures = bench("figures")
    series, result = figures.Series(), figures.Result("r")
    series.add("ours", 2.0)
    series.add("the other way, which has a long name", 1.0)
    result.compare(series, "ours", "ms", "the other way, which has a long name", "the other")
    assert (result.rows[0].against, result.rows[0].ratio.median) == ("the other", 2)
